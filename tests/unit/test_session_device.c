/* test_session_device.c - sessions whose x is on a GPU: the CPU's bits, though each caller's stream
 * is behind; tensor by tensor, too; and what is refused. On the emulated device, or on a GPU. */
#include <dlfcn.h>
#include <semaphore.h>

#include "descent.h"
#include "sessions.h"
#include "starling/device.h"

enum { D = 3000, FIRST = 1001, N = 3, BYTES = D * sizeof(float), SLOW_FLOATS = 1 << 17 };
static const char ring[] =
    "{\"topology\": {\"nodes\": 3, \"family\": \"ring\", \"weights\": \"lazy\"}, "
    "\"transport\": {\"chunk_bytes\": 4096}}";
static const char choco[] =
    "{\"topology\": {\"nodes\": 3, \"family\": \"ring\"}, \"algorithm\": {\"name\": \"choco-sgd\","
    " \"compressor\": {\"name\": \"top-k\", \"fraction\": 0.1}}}";
#define ON_RING(algorithm)                                                                         \
    "{\"topology\": {\"nodes\": 3, \"family\": \"ring\"}, \"algorithm\": {" algorithm "}, "        \
    "\"transport\": {\"chunk_bytes\": 4096}, \"network\": {\"gradient_ms\": 2, \"jitter\": 0.9}}"
static const char pairs[] = ON_RING("\"name\": \"ad-psgd\"");
static const char stale[] = ON_RING("\"name\": \"d-psgd\", \"staleness\": 2");
static const char late[] = ON_RING("\"name\": \"sgp\", \"overlap_rounds\": 1");
static const char blocking[] =
    "{\"topology\": {\"nodes\": 3, \"family\": \"ring\"}, \"algorithm\": {\"name\": \"d-psgd\","
    " \"variant\": \"adapt-then-combine\"}, \"transport\": {\"chunk_bytes\": 4096}}";
static const char all_reduce[] = "{\"topology\": {\"nodes\": 3, \"family\": \"ring\"}, "
                                 "\"algorithm\": {\"name\": \"all-reduce\", \"all_reduce\": "
                                 "\"star\"}, \"transport\": {\"chunk_bytes\": 4096}}";
static const char *on_gpu[] = {"device=cuda:0", "transport.overlap=layers"};
static const sl_vec_ops *vec;

/* A peer's numbers, and on a GPU the caller's stream, which is always behind. */
typedef struct caller {
    float *x, *stepped, *slow;
    void *stream;
} caller;

typedef struct scene {
    const char *experiment;
    bool on_gpu, overlaps, in_pieces, by_layers;
    int rounds;
    float start[N][D], x[N][D], average[N][D];
    double distance[N];
} scene;
static scene *cpu, *gpu;

/* ---- the caller's side of a GPU ---- */

typedef int create_stream(void **out, unsigned flags);
typedef int begin_capture(void *stream, int mode);
typedef int end_capture(void *stream, void **graph);
typedef int destroy_graph(void *graph);

/* A function of the GPU's driver, which the emulated device has, too. */
static void *of_driver(const char *name) {
    void *plugin = dlopen(getenv("STARLING_PLUGIN"), RTLD_NOW), *found = dlsym(plugin, name);
    void *driver = found == NULL ? dlopen("libcuda.so.1", RTLD_NOW) : NULL;
    if (driver != NULL)
        found = dlsym(driver, name);
    ck_assert_msg(found != NULL, "no %s: a stream that is no stream would crash", name);
    return found; /* both stay open */
}

/* Rank 0 has the default one. */
static void *open_stream(int64_t rank) {
    enum { NON_BLOCKING = 1 };
    void *stream;
    float *first = vec->allocate(1); /* by which the thread is on the device */
    if (((create_stream *)of_driver("cuStreamCreate"))(&stream, NON_BLOCKING) != 0)
        abort();
    vec->release(first);
    return rank == 0 ? NULL : stream;
}

static caller open_caller(const scene *w, int64_t rank) {
    if (!w->on_gpu)
        return (caller){.x = calloc(D, sizeof(float))};
    caller c = {.x = vec->allocate(D),
                .stepped = vec->allocate(D),
                .slow = vec->allocate(2 * SLOW_FLOATS),
                .stream = open_stream(rank)};
    vec->fence(NULL);
    return c;
}

static void close_caller(const scene *w, caller *c) {
    if (!w->on_gpu) {
        free(c->x);
        return;
    }
    vec->release(c->x);
    vec->release(c->stepped);
    vec->release(c->slow);
}

static void read_x(const scene *w, const caller *c, float *out) {
    if (w->on_gpu) {
        vec->guest->enter(c->stream);
        vec->copy_out(out, c->x, BYTES);
        vec->guest->leave();
    } else {
        memcpy(out, c->x, BYTES);
    }
}

/* On a GPU x changes when the stream comes to it, behind long copies: after the call. */
static void write_part(const scene *w, const caller *c, const float *from, size_t at,
                       size_t count) {
    const size_t bytes = count * sizeof *from;
    if (!w->on_gpu) {
        memcpy(c->x + at, from + at, bytes);
        return;
    }
    vec->copy_in(c->stepped + at, from + at, bytes);
    vec->fence(NULL);
    vec->guest->enter(c->stream);
    for (int i = 0; i < 8; i++)
        vec->copy(c->slow, c->slow + SLOW_FLOATS, SLOW_FLOATS * sizeof(float));
    vec->copy(c->x + at, c->stepped + at, bytes);
    vec->guest->leave();
}

static void write_x(const scene *w, const caller *c, const float *from) {
    write_part(w, c, from, 0, D);
}

/* ---- what a peer does ---- */

/* What calls take: x, or NULL for its pieces. */
static int place(sl_session *s, const scene *w, const caller *c, float **out, sl_error *e) {
    float *pieces[] = {c->x, c->x + FIRST};
    *out = w->in_pieces ? NULL : c->x;
    return w->in_pieces ? sl_session_place(s, pieces, e) : 0;
}

typedef struct hook {
    sl_session *session;
    int result;
    sl_error error;
} hook;

static void *give_all(void *context) {
    hook *h = context;
    vec->release(vec->allocate(1)); /* by which the thread is on the device */
    h->result = sl_session_final(h->session, NULL, 0, &h->error);
    return NULL;
}

/* The last part's hook is on a thread of its own, as torch has one for the device. */
static int by_layers(sl_session *s, const scene *w, const caller *c, const float *x, sl_error *e) {
    hook h = {.session = s};
    pthread_t thread;
    write_part(w, c, x, FIRST, D - FIRST);
    int result = sl_session_final(s, NULL, 1, e);
    write_part(w, c, x, 0, FIRST);
    if (result != 0 || pthread_create(&thread, NULL, give_all, &h) != 0)
        return result;
    pthread_join(thread, NULL);
    *e = h.error;
    result = THEN(h.result, sl_session_await(s, NULL, 0, 1, e));
    return THEN(result, sl_session_await(s, NULL, 1, 1, e));
}

static int one_round(sl_session *s, const scene *w, const caller *c, int64_t rank, sl_error *e) {
    static _Thread_local float at[D], x[D];
    float *taken;
    read_x(w, c, at);
    memcpy(x, at, BYTES);
    if (!w->overlaps)
        descent_step(x, at, D, rank);
    int result = place(s, w, c, &taken, e);
    if (w->by_layers)
        return THEN(result, by_layers(s, w, c, x, e));
    if (!w->overlaps)
        write_x(w, c, x);
    if (!w->overlaps && result == 0)
        result = sl_session_mix(s, taken, e);
    if (w->overlaps && result == 0)
        result = sl_session_begin(s, taken, e);
    if (w->overlaps && result == 0)
        result = sl_session_end(s, taken, e);
    if (!w->overlaps)
        return result;
    read_x(w, c, x);
    descent_step(x, at, D, rank);
    write_x(w, c, x);
    return result;
}

static int go(sl_session *s, scene *w, const caller *c, int64_t rank, sl_error *e) {
    int result = w->on_gpu ? sl_session_stream(s, c->stream, e) : 0;
    float *taken = NULL;
    write_x(w, c, w->start[rank]);
    THEN(result, place(s, w, c, &taken, e));
    THEN(result, sl_session_start(s, taken, e));
    for (int k = 0; k < w->rounds && result == 0; k++)
        result = one_round(s, w, c, rank, e);
    THEN(result, sl_session_average(s, taken, w->average[rank], &w->distance[rank], e));
    THEN(result, one_round(s, w, c, rank, e));
    read_x(w, c, w->x[rank]);
    return result;
}

static int train(void *context, const sl_session_options *o, sl_error *e) {
    scene *w = context;
    sl_session *s;
    int result = sl_session_join(&s, w->experiment, D, o, e);
    if (result != 0)
        return result;
    caller c = open_caller(w, o->rank);
    result = go(s, w, &c, o->rank, e);
    result = end_session(s, result, e);
    close_caller(w, &c);
    return result;
}

static void setup(void) {
    sl_session_defaults(&options, sizeof options);
    EXPECT_WELL(sl_device_open(&vec, "cuda:0", 0, &error));
    cpu = calloc(1, sizeof *cpu);
    gpu = calloc(1, sizeof *gpu);
    *cpu = (scene){.experiment = ring, .rounds = 3};
    for (int r = 0; r < N; r++)
        descent_fill(cpu->start[r], D, r);
}

static void teardown(void) {
    free(cpu);
    free(gpu);
}

static sl_session_options options_of(const scene *w) {
    static const uint64_t sizes[] = {FIRST, D - FIRST};
    static const sl_session_tensor tensors[] = {{"first", &sizes[0], 1}, {"", &sizes[1], 1}};
    sl_session_options o = options;
    o.tensors = w->in_pieces ? tensors : NULL;
    o.tensor_count = w->in_pieces ? 2 : 0;
    o.overlap = w->overlaps;
    o.overrides = on_gpu;
    o.override_count = (uint64_t)w->on_gpu + w->by_layers;
    return o;
}

static void run_peers(scene *w, peer_function peer) {
    const sl_session_options o = options_of(w);
    run_agents(threads, N, peer, w, &o);
    for (int i = 0; i < N; i++)
        ck_assert_msg(threads[i].result == 0, "%d: %s", i, threads[i].error.text);
}

static void simulate(scene *w) {
    const sl_session_options o = options_of(w);
    int result = sl_simulate(w->experiment, N, train, w, &o, &error);
    ck_assert_msg(result == 0, "%s", error.text);
}

static void expect_cpu_bits(void) {
    ck_assert_mem_eq(gpu->x, cpu->x, sizeof cpu->x);
    ck_assert_mem_eq(gpu->average, cpu->average, sizeof cpu->average);
    for (int r = 0; r < N; r++)
        ck_assert_double_eq(gpu->distance[r], cpu->distance[r]);
    ck_assert_float_ne(cpu->x[0][1], cpu->start[0][1]);
}

/* ---- rounds ---- */

static const struct {
    const char *experiment;
    bool overlaps, same_start, in_pieces, by_layers;
    bool by_order; /* of what happened when: only simulations repeat it */
} forms[] = {
    {ring, false, false, false, false, false},   {ring, true, false, true, false, false},
    {choco, false, true, false, false, false},   {choco, false, true, true, false, false},
    {blocking, false, false, true, true, false}, {all_reduce, false, false, true, true, false},
    {late, false, false, false, false, false},   {late, false, true, true, false, false},
    {pairs, false, false, false, false, true},   {stale, false, true, true, false, true}};
enum { FORMS = sizeof forms / sizeof *forms };

static void take_form(int i) {
    cpu->experiment = forms[i].experiment;
    cpu->overlaps = forms[i].overlaps;
    options.same_start = forms[i].same_start;
    *gpu = *cpu;
    gpu->on_gpu = true;
    gpu->in_pieces = forms[i].in_pieces;
    gpu->by_layers = forms[i].by_layers;
    simulate(cpu);
}

FIXTURES(setup, teardown);

START_LOOP_TEST(agents_have_the_bits_of_the_cpu, FORMS) {
    take_form(_i);
    run_peers(gpu, train);
    if (forms[_i].by_order)
        ck_assert_mem_eq(gpu->average[0], gpu->average[N - 1], BYTES);
    else
        expect_cpu_bits();
    simulate(gpu);
    expect_cpu_bits();
}

/* Rank 0 has the last tensor of all before the others give their first. */
static sem_t came;
static int give_late(void *context, const sl_session_options *o, sl_error *e) {
    const scene *w = context;
    sl_session *s;
    float *taken;
    int result = sl_session_join(&s, w->experiment, D, o, e);
    if (result != 0)
        return result;
    caller c = open_caller(w, o->rank);
    write_x(w, &c, w->start[o->rank]);
    sl_session_stream(s, c.stream, e);
    THEN(result, place(s, w, &c, &taken, e));
    THEN(result, sl_session_start(s, NULL, e));
    THEN(result, sl_session_final(s, NULL, 1, e));
    if (o->rank > 0)
        sem_wait(&came);
    THEN(result, sl_session_final(s, NULL, 0, e));
    THEN(result, sl_session_await(s, NULL, 1, 1, e));
    for (int i = 1; i < N && o->rank == 0; i++)
        sem_post(&came);
    result = end_session(s, THEN(result, sl_session_await(s, NULL, 0, 1, e)), e);
    close_caller(w, &c);
    return result;
}

START_TEST(a_tensor_comes_before_the_round_is_over) {
    take_form(4);
    sem_init(&came, 0, 0);
    run_peers(gpu, give_late);
}

/* ---- what is refused ---- */

static const char alone[] = "{\"topology\": {\"nodes\": 1, \"family\": \"complete\"}, "
                            "\"device\": \"cuda:0\"}";

static int try_start(const char *experiment, float *x) {
    sl_session *s;
    options.rank = 0;
    int result = sl_session_join(&s, experiment, D, &options, &error);
    if (result != 0)
        return result;
    result = sl_session_start(s, x, &error);
    sl_session_abort(&s, NULL);
    return result;
}

START_TEST(a_number_that_is_not_finite_is_named) {
    float x[D] = {0};
    caller c = open_caller(&(scene){.on_gpu = true}, 0);
    x[D / 2] = INFINITY;
    vec->copy_in(c.x, x, BYTES);
    vec->fence(NULL);
    EXPECT_ERROR(try_start(alone, c.x), SL_EDIVERGED, "x is inf at element 1500");
}

START_TEST(a_stream_that_is_captured_is_refused) {
    enum { GLOBAL };
    sl_session *s;
    void *graph;
    options.rank = 0;
    caller c = open_caller(&(scene){.on_gpu = true}, 1);
    EXPECT_WELL(sl_session_join(&s, alone, D, &options, &error));
    EXPECT_WELL(sl_session_stream(s, c.stream, &error));
    EXPECT_WELL(sl_session_start(s, c.x, &error));
    ck_assert_int_eq(((begin_capture *)of_driver("cuStreamBeginCapture_v2"))(c.stream, GLOBAL), 0);
    EXPECT_ERROR(sl_session_mix(s, c.x, &error), SL_EINVAL,
                 "mix: the caller's stream is being captured");
    ck_assert_int_eq(((end_capture *)of_driver("cuStreamEndCapture"))(c.stream, &graph), 0);
    ck_assert_int_eq(((destroy_graph *)of_driver("cuGraphDestroy"))(graph), 0);
    EXPECT_WELL(sl_session_mix(s, c.x, &error));
    sl_session_abort(&s, NULL);
}

/* Memory that a provider knows by its address is the session's own: x may be elsewhere at end. */
START_TEST(what_may_be_registered_is_not_borrowed) {
    static const char *const ways[] = {"transport.gpu_direct=off", "transport.gpu_direct=auto"};
    float zeros[D] = {0};
    options.rank = 0;
    options.overlap = options.borrow = 1;
    options.override_count = 1;
    for (int i = 0; i < 2; i++) {
        sl_session *s;
        caller c = open_caller(&(scene){.on_gpu = true}, 0);
        vec->copy_in(c.x, zeros, BYTES);
        vec->copy_in(c.stepped, zeros, BYTES);
        vec->fence(NULL);
        options.overrides = &ways[i];
        EXPECT_WELL(sl_session_join(&s, alone, D, &options, &error));
        EXPECT_WELL(sl_session_start(s, c.x, &error));
        EXPECT_WELL(sl_session_begin(s, c.x, &error));
        ck_assert_int_eq(sl_session_end(s, c.stepped, &error), i == 0 ? SL_EINVAL : 0);
        sl_session_abort(&s, NULL);
    }
}

START_TEST(agents_of_a_host_take_its_gpus_in_turn) {
    char reason[SL_DEVICE_TEXT_MAX], found[SL_DEVICE_NAME_MAX], expected[SL_DEVICE_NAME_MAX];
    setenv("STARLING_DEVICES", "3", 1); /* of the emulated device */
    const size_t count = sl_devices_list(NULL, 0, reason);
    for (uint32_t place = 0; place < 5; place++) {
        sl_device_place(found, "cuda", place);
        snprintf(expected, sizeof expected, "cuda:%u", (unsigned)(place % count));
        ck_assert_str_eq(found, expected);
        sl_device_place(found, "cuda:7", place);
        ck_assert_str_eq(found, "cuda:7");
    }
}

/* ---- a device that fails ---- */

static bool is_alone(void) {
    const char *fork = getenv("CK_FORK");
    return fork == NULL || strcmp(fork, "no") != 0;
}

static void setup_failing(void) {
    if (is_alone())
        setenv("STARLING_FAILS_AFTER", "60", 1); /* before the emulated device opens */
    setup();
}

FIXTURES(setup_failing, teardown);

/* Each session ends, and says that it was the device. */
START_TEST(a_device_that_is_lost_is_one_error) {
    if (!is_alone() || vec->cuda_index >= 0)
        return; /* a GPU does not fail because it is asked to */
    cpu->on_gpu = true;
    cpu->rounds = 100;
    const sl_session_options o = options_of(cpu);
    run_agents(threads, N, train, cpu, &o);
    for (int r = 0; r < N; r++)
        ck_assert_msg(threads[r].result == SL_EDEVICE || threads[r].result == SL_EPEER,
                      "%d: %d, %s", r, threads[r].result, threads[r].error.text);
    ck_assert_msg(strstr(threads[0].error.text, "cuda:0: ") != NULL &&
                      strstr(threads[0].error.text, "failed: it was asked to") != NULL,
                  "%s", threads[0].error.text);
}
