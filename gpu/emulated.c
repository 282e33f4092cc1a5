/* emulated.c - a device on the host, so that tests without a GPU run everything but cuda.cu.
 *
 * Each calling thread has streams, as on a GPU (emulated_stream.h). The threads of a launch run
 * one after the other, or as emulated_launch.h says. Asynchronous copies of host memory that is not
 * page-locked end the program: a GPU would copy it first, and make the caller wait. Environment:
 *   STARLING_GUARD           the host's code has no access to device memory: it crashes
 *   STARLING_FAILS_AFTER=N   each thread's operation N + 1 fails; no later operation on any stream
 *                            has an effect
 *   STARLING_AS_GPU          claims that its memory is a GPU's: a network library may refuse it
 *   STARLING_CACHE_MIB=N     the size of its second-level cache (50)
 *   STARLING_COPY_MB_S=N     copies take as long as on a bus of N MB/s in each direction
 *
 * Calls are counted (launches.h) as many as cuda.cu makes of the CUDA runtime; where that depends
 * on what the thread has used, as for a thread that has used all. */
#include <assert.h>
#include <cblas.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "gpu/device.h"
#include "gpu/emulated_arena.h"
#include "gpu/emulated_cache.h"
#include "gpu/emulated_graph.h"
#include "gpu/emulated_launch.h"
#include "gpu/emulated_locked.h"
#include "gpu/emulated_stream.h"
#include "gpu/launches.h"

enum { PRODUCT_BYTES = 1 << 16 };

/* Set at open, then constant. */
static unsigned long calls_until_failure = ULONG_MAX;
static double copy_seconds_per_byte;

static _Atomic(const char *) failed; /* name of the first operation that failed */

typedef enum way { WORK, IN, OUT, WAYS } way;

struct sl_vec_event {
    counter passed;
    unsigned set;      /* how often it was set; one thread at a time */
    unsigned notified; /* the count for which a notification was last requested */
    way way;           /* the stream on which it was last set */
};

/* The streams of one thread. */
typedef struct lane {
    struct lane *next;
    stream streams[WAYS];
    sl_vec_graph *noting; /* NULL: operations are done */
    unsigned long calls;
    bool entered;
    stream *visited; /* NULL, or another's: its work comes there */
} lane;

static _Thread_local lane mine;
static lane *lanes;
static pthread_mutex_t lanes_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t leaving;

/* The threads that signal notify_fd. */
static stream notices[WAYS];
static pthread_mutex_t notice_mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---- lanes ---- */

static void leave_lane(void *lane_) {
    lane *l = lane_;
    pthread_mutex_lock(&lanes_mutex);
    lane **at = &lanes;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    pthread_mutex_unlock(&lanes_mutex);
    for (int i = 0; i < WAYS; i++)
        stream_close(&l->streams[i]);
}

static lane *lane_of_thread(void) {
    if (!mine.entered) {
        mine.entered = true;
        pthread_mutex_lock(&lanes_mutex);
        mine.next = lanes;
        lanes = &mine;
        pthread_mutex_unlock(&lanes_mutex);
        pthread_setspecific(leaving, &mine);
    }
    return &mine;
}

static void await_lane(lane *l) {
    for (int i = 0; i < WAYS; i++)
        stream_await(&l->streams[i]);
}

/* Waits for all streams, as freeing memory on a GPU does. */
static void await_all(void) {
    pthread_mutex_lock(&lanes_mutex);
    for (lane *l = lanes; l != NULL; l = l->next)
        await_lane(l);
    pthread_mutex_unlock(&lanes_mutex);
}

/* ---- operations ---- */

static stream *work_of(lane *l) {
    return l->visited != NULL ? l->visited : &l->streams[WORK];
}

/* To the thread's stream of operations, or to what it notes. */
static void give_work(lane *l, task_function *function, const void *arguments, size_t bytes) {
    if (l->noting != NULL)
        graph_add(l->noting, function, arguments, bytes);
    else
        stream_give(work_of(l), function, arguments, bytes);
}

static void expect_not_noting(const char *what) {
    if (!mine.entered || mine.noting == NULL)
        return;
    fprintf(stderr, "emulated device: %s while operations are noted\n", what);
    abort();
}

/* Begins an operation. True: do it, then call leave(). */
static bool enter(const char *name, bool fails) {
    const char *none = NULL;
    if (fails)
        atomic_compare_exchange_strong_explicit(&failed, &none, name, memory_order_relaxed,
                                                memory_order_relaxed);
    if (atomic_load_explicit(&failed, memory_order_relaxed) != NULL)
        return false;
    arena_unlock();
    return true;
}

static void leave(void) {
    arena_lock();
}

/* What cuda.cu calls for it. */
static void count_calls(unsigned calls) {
    costs_count(COST_CALLS, calls);
}

static void count_wait(unsigned calls) {
    expect_not_noting("a wait");
    count_calls(calls);
    costs_count(COST_WAITS, 1);
}

/* Shall this thread's operation fail now? */
static bool counts_out(lane *l) {
    return ++l->calls > calls_until_failure;
}

typedef struct copy_task {
    sl_vec_rows rows;
    void *staged; /* copy of host memory, to be freed */
    const char *name;
    bool fails;
} copy_task;

static copy_task one_copy(lane *l, void *to, const void *from, size_t bytes, const char *name) {
    return (copy_task){.rows = {.to = to, .from = from, .bytes = bytes, .rows = 1},
                       .name = name,
                       .fails = counts_out(l)};
}

static void do_copy(void *arguments) {
    const copy_task *t = arguments;
    const sl_vec_rows *c = &t->rows;
    if (copy_seconds_per_byte > 0)
        stream_sleep((double)(c->bytes * c->rows) * copy_seconds_per_byte);
    if (enter(t->name, t->fails)) {
        for (size_t r = 0; r < c->rows; r++)
            memcpy((char *)c->to + r * c->to_step, (const char *)c->from + r * c->from_step,
                   c->bytes);
        leave();
    }
    free(t->staged);
}

typedef struct clear_task {
    void *memory;
    size_t bytes;
    bool fails;
} clear_task;

static void do_clear(void *arguments) {
    const clear_task *c = arguments;
    if (!enter("clearing memory", c->fails))
        return;
    memset(c->memory, 0, c->bytes);
    leave();
}

typedef struct event_task {
    sl_vec_event *event;
    unsigned time;
    int notify_fd;
} event_task;

static void do_raise(void *arguments) {
    const event_task *m = arguments;
    counter_raise(&m->event->passed, m->time);
}

static void do_await(void *arguments) {
    const event_task *m = arguments;
    counter_await(&m->event->passed, m->time);
}

/* A failed GPU calls nobody back. */
static void do_notify(void *arguments) {
    const event_task *m = arguments;
    if (atomic_load_explicit(&failed, memory_order_relaxed) == NULL)
        eventfd_write(m->notify_fd, 1);
}

/* ---- the device ---- */

int device_count(char text[DEVICE_TEXT_MAX]) {
    (void)text;
    return 1;
}

bool device_describe(int index, device_properties *out, char text[DEVICE_TEXT_MAX]) {
    (void)index, (void)text;
    *out = (device_properties){.name = "emulated on the host",
                               .major = 9,
                               .bytes = arena_bytes,
                               .emulated = getenv("STARLING_AS_GPU") == NULL};
    return true;
}

bool device_open(int index, char text[DEVICE_TEXT_MAX]) {
    (void)index;
    const char *fails = getenv("STARLING_FAILS_AFTER"), *rate = getenv("STARLING_COPY_MB_S");
#ifdef __SANITIZE_THREAD__ /* it would take the guard's lock for an order between the streams */
    const bool guarded = false;
#else
    const bool guarded = getenv("STARLING_GUARD") != NULL;
#endif
    launch_open();
    calls_until_failure = fails != NULL ? strtoul(fails, NULL, 10) : ULONG_MAX;
    copy_seconds_per_byte = rate != NULL ? 1e-6 / strtod(rate, NULL) : 0;
    if (!arena_open(guarded) || pthread_key_create(&leaving, leave_lane) != 0) {
        snprintf(text, DEVICE_TEXT_MAX, "no %zu bytes of addresses", arena_bytes);
        return false;
    }
    return true;
}

int device_status(char text[DEVICE_TEXT_MAX]) {
    const char *name = atomic_load_explicit(&failed, memory_order_relaxed);
    count_calls(2);
    if (name != NULL)
        snprintf(text, DEVICE_TEXT_MAX, "%s failed: it was asked to, after %lu operations", name,
                 calls_until_failure);
    return name != NULL ? -1 : 0;
}

int device_fence(char text[DEVICE_TEXT_MAX]) {
    count_wait(2 * WAYS);
    await_lane(lane_of_thread());
    return device_status(text);
}

/* ---- memory ---- */

void *device_allocate(size_t bytes) {
    expect_not_noting("an allocation");
    void *memory = arena_take(bytes);
    if (memory != NULL)
        device_clear(memory, bytes);
    return memory;
}

void device_release(void *memory) {
    await_all();
    arena_give_back(memory);
}

size_t device_free_bytes(void) {
    return arena_free_bytes();
}

size_t device_cache_bytes(void) {
    return emulated_cache_bytes();
}

/* These threads could read host memory; those of a GPU cannot. */
void device_expect(const void *memory) {
    if (arena_holds(memory))
        return;
    fprintf(stderr, "emulated device: %p is memory of the host\n", memory);
    abort();
}

void *device_allocate_host(size_t bytes) {
    return locked_allocate(bytes);
}

void device_release_host(void *memory) {
    await_all();
    locked_release(memory);
}

void device_clear(void *memory, size_t bytes) {
    lane *l = lane_of_thread();
    count_calls(1);
    give_work(l, do_clear, &(clear_task){memory, bytes, counts_out(l)}, sizeof(clear_task));
}

/* Copies the host memory at once and does not wait, so that no order appears here that a GPU has
 * only by luck. */
void device_copy_in(void *to, const void *host, size_t bytes) {
    lane *l = lane_of_thread();
    void *staged = malloc(bytes > 0 ? bytes : 1);
    count_wait(3);
    if (staged == NULL) {
        fputs("emulated device: out of memory for a copy\n", stderr);
        abort();
    }
    memcpy(staged, host, bytes);
    copy_task task = one_copy(l, to, staged, bytes, "a copy to the device");
    task.staged = staged;
    give_work(l, do_copy, &task, sizeof task);
}

void device_copy_in_later(void *to, const void *host, size_t bytes) {
    lane *l = lane_of_thread();
    locked_expect(host, bytes);
    count_calls(1);
    const copy_task task = one_copy(l, to, host, bytes, "a copy to the device");
    give_work(l, do_copy, &task, sizeof task);
}

void device_copy(void *to, const void *from, size_t bytes) {
    lane *l = lane_of_thread();
    device_expect(to);
    device_expect(from);
    count_calls(1);
    const copy_task task = one_copy(l, to, from, bytes, "a copy on the device");
    give_work(l, do_copy, &task, sizeof task);
}

void device_copy_out(void *host, const void *from, size_t bytes) {
    lane *l = lane_of_thread();
    const copy_task task = one_copy(l, host, from, bytes, "a copy from the device");
    give_work(l, do_copy, &task, sizeof task);
    count_wait(3);
    stream_await(work_of(l));
}

/* ---- background copies and events ---- */

static void give_event(stream *s, task_function *function, sl_vec_event *event, int notify_fd) {
    stream_give(s, function, &(event_task){event, event->set, notify_fd}, sizeof(event_task));
}

static void record_event(way on, sl_vec_event *event) {
    expect_not_noting("an event");
    event->set++;
    event->way = on;
    count_calls(1);
    give_event(&lane_of_thread()->streams[on], do_raise, event, 0);
}

void device_order_out(void) {
    lane *l = lane_of_thread();
    count_calls(2);
    stream_follow(&l->streams[OUT], &l->streams[WORK]);
}

void device_begin_copy_out(void *host, const void *from, size_t bytes) {
    lane *l = lane_of_thread();
    locked_expect(host, bytes);
    count_calls(1);
    const copy_task task = one_copy(l, host, from, bytes, "a background copy from the device");
    stream_give(&l->streams[OUT], do_copy, &task, sizeof task);
}

void device_begin_copies_in(const sl_vec_rows *copies, size_t count, sl_vec_event *after,
                            sl_vec_event *copied) {
    lane *l = lane_of_thread();
    count_calls(1 + (unsigned)count);
    give_event(&l->streams[IN], do_await, after, 0);
    for (const sl_vec_rows *c = copies; c < copies + count; c++) {
        locked_expect(c->from, (c->rows - 1) * c->from_step + c->bytes);
        const copy_task task = {*c, NULL, "a background copy to the device", counts_out(l)};
        stream_give(&l->streams[IN], do_copy, &task, sizeof task);
    }
    record_event(IN, copied);
}

sl_vec_event *device_event_open(void) {
    return calloc(1, sizeof(sl_vec_event));
}

void device_event_close(sl_vec_event *event) {
    if (event == NULL)
        return;
    await_all(); /* no thread uses it any more */
    stream_await(&notices[event->way]);
    free(event);
}

void device_event_record(sl_vec_event *event) {
    record_event(WORK, event);
}

void device_event_record_out(sl_vec_event *event) {
    record_event(OUT, event);
}

void device_event_follow(sl_vec_event *event) {
    expect_not_noting("an event");
    count_calls(1);
    give_event(&lane_of_thread()->streams[WORK], do_await, event, 0);
}

void device_event_wait(sl_vec_event *event) {
    count_wait(1);
    counter_await(&event->passed, event->set);
}

bool device_event_passed(sl_vec_event *event, int notify_fd) {
    count_calls(1);
    if (counter_has(&event->passed, event->set))
        return true;
    count_calls(1);
    if (notify_fd > 0 && event->notified != event->set) {
        event->notified = event->set;
        count_calls(2);
        costs_count(COST_BELLS, 1);
        pthread_mutex_lock(&notice_mutex);
        give_event(&notices[event->way], do_await, event, 0);
        give_event(&notices[event->way], do_notify, event, notify_fd);
        pthread_mutex_unlock(&notice_mutex);
    }
    return false;
}

/* ---- repeated operations ---- */

bool device_graph_begin(void) {
    lane_of_thread()->noting = graph_open();
    count_calls(1);
    return true;
}

sl_vec_graph *device_graph_end(void) {
    sl_vec_graph *noted = lane_of_thread()->noting;
    lane_of_thread()->noting = NULL;
    count_calls(3);
    return noted;
}

void device_graph_run(sl_vec_graph *graph) {
    launches_count(LAUNCH_graph);
    count_calls(1);
    graph_give(graph, &lane_of_thread()->streams[WORK]);
}

void device_graph_close(sl_vec_graph *graph) {
    if (graph == NULL)
        return;
    count_wait(3);
    await_lane(lane_of_thread());
    graph_close(graph);
}

/* ---- streams and memory of others ---- */

bool device_guest_owns(const void *memory, char *text, size_t text_size) {
    count_calls(1);
    snprintf(text, text_size, "memory of the host");
    return arena_holds(memory);
}

bool device_guest_is_captured(void *stream_) {
    (void)stream_; /* nobody captures here */
    count_calls(4);
    return false;
}

void device_guest_record(sl_vec_event *event, void *stream_) {
    event->set++;
    event->way = WORK;
    count_calls(2);
    give_event(stream_named(stream_), do_raise, event, 0);
}

void device_guest_follow(sl_vec_event *event, void *stream_) {
    count_calls(2);
    give_event(stream_named(stream_), do_await, event, 0);
}

void device_guest_enter(void *stream_) {
    lane_of_thread()->visited = stream_named(stream_);
    count_calls(1);
}

void device_guest_leave(void) {
    lane_of_thread()->visited = NULL;
    count_calls(1);
}

void device_give_way(void) {} /* streams have no priorities here */

/* ---- kernels ---- */

typedef struct launch_task {
    size_t threads;
    launch kernel;
    bool fails;
    _Alignas(max_align_t) char arguments[HOST_KERNEL_BYTES_MAX];
} launch_task;
static_assert(sizeof(launch_task) <= STREAM_BYTES_MAX, "a task's arguments fit");

static void do_launch(void *arguments) {
    const launch_task *t = arguments;
    const host_kernel *kernel = &host_kernels[t->kernel];
    if (!enter(kernel->name, t->fails))
        return;
    launch_run(kernel, t->arguments, t->threads);
    leave();
}

static void give_launch(launch kernel, const void *arguments, size_t bytes, size_t threads) {
    lane *l = lane_of_thread();
    if (threads == 0)
        return;
    launch_task task = {.threads = threads, .kernel = kernel, .fails = counts_out(l)};
    memcpy(task.arguments, arguments, bytes);
    launches_count(kernel);
    count_calls(2);
    give_work(l, do_launch, &task, offsetof(launch_task, arguments) + bytes);
}

#define LAUNCH_THREADS(name)                                                                       \
    void launch_##name(const name##_args *arguments, size_t threads) {                             \
        give_launch(LAUNCH_##name, arguments, sizeof *arguments, threads);                         \
    }
#define LAUNCH_BLOCKS(name)                                                                        \
    void launch_##name(const name##_args *arguments, uint32_t blocks) {                            \
        give_launch(LAUNCH_##name, arguments, sizeof *arguments, blocks);                          \
    }
SL_KERNELS(LAUNCH_THREADS)
SL_LAYER_KERNELS(LAUNCH_THREADS)
SL_BLOCK_KERNELS(LAUNCH_BLOCKS)
SL_LAYER_BLOCK_KERNELS(LAUNCH_BLOCKS)

/* ---- matrix products ---- */

/* OpenBLAS allocates its own memory; this is counted as for a GPU. */
size_t device_product_bytes(void) {
    return PRODUCT_BYTES;
}

bool device_open_products(void *space, char text[DEVICE_TEXT_MAX]) {
    (void)text;
    device_expect(space);
    return true;
}

typedef struct product_task {
    device_product product;
    bool fails;
} product_task;
static void do_multiply(void *arguments) {
    const product_task *t = arguments;
    const device_product *p = &t->product;
    const CBLAS_TRANSPOSE a = p->a.turned ? CblasTrans : CblasNoTrans,
                          b = p->b.turned ? CblasTrans : CblasNoTrans;
    if (!enter("a matrix product", t->fails))
        return;
    for (size_t i = 0; i < p->count; i++)
        cblas_sgemm(CblasRowMajor, a, b, (int)p->m, (int)p->n, (int)p->k, p->scale,
                    p->a.at + i * p->a.step, (int)p->a.line, p->b.at + i * p->b.step,
                    (int)p->b.line, p->add ? 1 : 0, p->c + i * p->c_step, (int)p->c_line);
    leave();
}

void device_multiply(const device_product *p) {
    lane *l = lane_of_thread();
    launches_count(LAUNCH_product);
    count_calls(1);
    device_expect(p->a.at);
    device_expect(p->b.at);
    device_expect(p->c);
    give_work(l, do_multiply, &(product_task){*p, counts_out(l)}, sizeof(product_task));
}
