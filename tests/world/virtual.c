/* virtual.c - time, chance, processes; see virtual.h. */
#include "virtual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "wire/checksum.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(save, bottom, size) (void)(save), (void)(size)
#define __sanitizer_finish_switch_fiber(save, bottom, size) (void)(bottom), (void)(size)
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) (void)0
#endif

enum { STACK_BYTES = 512 << 10, EVENTS_MIN = 1024, THREADS_MAX = 1024 };

typedef struct event {
    double at_s;
    uint64_t order;
    void (*act)(void *a, uint64_t b);
    void *a;
    uint64_t b;
} event;

/* A stack, and what it waits for. The first thread of a process is the process. */
typedef struct thread {
    process *process;
    void *(*body)(void *argument);
    void *argument;
    bool ended, waits, woken, missed; /* woken: an event that ends the wait is on its way;
                                         missed: it was to run while the process was stopped */
    uint64_t ticket;                  /* of the wait under way */
    const void *what;                 /* it waits for; NULL: for a time, or to be woken */
} thread;

static struct {
    double now_s;
    uint64_t state, hash, order;
    bool verbose;
    event *heap;
    size_t count, room;
    process processes[PROCESSES_MAX];
    int process_count;
    thread threads[THREADS_MAX];
    int thread_count;
    process *current; /* on whose behalf something is done */
    thread *running;
} world;

/* Of each thread, kept from run to run. */
static struct {
    ucontext_t context;
    char *stack;
    void *fake_stack;
} places[THREADS_MAX];
static ucontext_t scheduler;
static void *scheduler_fake_stack;
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;

/* ---- time and chance ---- */

void world_open(uint64_t seed, bool verbose) {
    event *heap = world.heap;
    const size_t room = world.room;
    memset(&world, 0, sizeof world);
    world.heap = heap;
    world.room = room;
    world.state = seed * 0x9e3779b97f4a7c15u + 1;
    world.now_s = 1000;
    world.verbose = verbose;
    signals_clear();
    network_open();
}

double world_now(void) {
    return world.now_s;
}

/* splitmix64. */
uint64_t world_draw(void) {
    uint64_t z = world.state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double world_uniform(void) {
    return (double)(world_draw() >> 11) * 0x1p-53;
}

bool world_chance(double probability) {
    return probability > 0 && world_uniform() < probability;
}

static void fold(uint64_t word) {
    world.hash = (world.hash ^ word) * 0x100000001b3u;
    world.hash ^= world.hash >> 29;
}

void world_note(const char *what, uint64_t a, uint64_t b, uint64_t c) {
    uint64_t time;
    memcpy(&time, &world.now_s, sizeof time);
    fold(time);
    for (const char *at = what; *at != '\0'; at++)
        fold((uint8_t)*at);
    fold(a);
    fold(b);
    fold(c);
    if (world.verbose)
        printf("%12.6f %-10s %llu %llu %llx\n", world.now_s - 1000, what, (unsigned long long)a,
               (unsigned long long)b, (unsigned long long)c);
}

void world_say(uint32_t rank, const char *text) {
    fold(rank);
    fold(sl_checksum(text, strlen(text)));
    if (world.verbose && text[0] != '\0')
        printf("%12.6f agent %u: %s\n", world.now_s - 1000, rank, text);
}

uint64_t world_hash(void) {
    return world.hash;
}

/* ---- events: a heap ---- */

static bool is_before(const event *a, const event *b) {
    return a->at_s < b->at_s || (a->at_s == b->at_s && a->order < b->order);
}

static void swap(size_t i, size_t j) {
    const event e = world.heap[i];
    world.heap[i] = world.heap[j];
    world.heap[j] = e;
}

void world_at(double at_s, void (*act)(void *a, uint64_t b), void *a, uint64_t b) {
    if (world.count == world.room) {
        world.room = world.room > 0 ? 2 * world.room : EVENTS_MIN;
        event *heap = world_allocate(world.room * sizeof *heap);
        if (world.count > 0)
            memcpy(heap, world.heap, world.count * sizeof *heap);
        world_free(world.heap);
        world.heap = heap;
    }
    size_t i = world.count++;
    if (at_s < world.now_s)
        at_s = world.now_s;
    world.heap[i] = (event){at_s, world.order++, act, a, b};
    for (; i > 0 && is_before(&world.heap[i], &world.heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(i, (i - 1) / 2);
}

static event next_event(void) {
    const event first = world.heap[0];
    world.heap[0] = world.heap[--world.count];
    for (size_t i = 0, least;; i = least) {
        least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < world.count; child++)
            if (is_before(&world.heap[child], &world.heap[least]))
                least = child;
        if (least == i)
            return first;
        swap(i, least);
    }
}

void world_run(double until_s, bool (*done)(void)) {
    while (world.count > 0 && world.heap[0].at_s <= until_s && !done()) {
        const event e = next_event();
        world.now_s = e.at_s;
        e.act(e.a, e.b);
    }
}

/* ---- processes ---- */

process *process_current(void) {
    return world.current;
}

static int place_of(const thread *of) {
    return (int)(of - world.threads);
}

static void switch_to(thread *to) {
    const int place = place_of(to);
    world.current = to->process;
    world.running = to;
    __sanitizer_start_switch_fiber(&scheduler_fake_stack, places[place].stack, STACK_BYTES);
    swapcontext(&scheduler, &places[place].context);
    __sanitizer_finish_switch_fiber(scheduler_fake_stack, NULL, NULL);
    world.current = NULL;
    world.running = NULL;
}

static void switch_back(bool for_ever) {
    const int place = place_of(world.running);
    __sanitizer_start_switch_fiber(for_ever ? NULL : &places[place].fake_stack, scheduler_stack,
                                   scheduler_stack_bytes);
    swapcontext(&places[place].context, &scheduler);
    __sanitizer_finish_switch_fiber(places[place].fake_stack, NULL, NULL);
}

static void end_process(process *p) {
    const size_t lost = p->leaves_thread ? 0 : p->bytes;
    world_note("ends", p->rank, (uint64_t)p->number, p->bytes);
    if (lost != 0)
        world_fail("process %u ended and left %zu bytes", p->rank, lost);
    process_kill(p, false);
}

static void begin(void) {
    __sanitizer_finish_switch_fiber(NULL, &scheduler_stack, &scheduler_stack_bytes);
    thread *own = world.running;
    own->body(own->argument);
    own->ended = true;
    thread_wake(own);
    if (own->process->main == place_of(own))
        end_process(own->process);
    switch_back(true);
}

static void resume(void *of, uint64_t ticket) {
    thread *to = of;
    if (!to->process->alive || to->ended || !to->waits || to->ticket != ticket)
        return;
    if (to->process->stopped) {
        to->missed = true;
        return;
    }
    to->waits = to->woken = false;
    to->what = NULL;
    switch_to(to);
}

static int new_thread(process *p, void *(*body)(void *), void *argument) {
    if (world.thread_count == THREADS_MAX)
        world_fail("more than %d threads", THREADS_MAX);
    const int place = world.thread_count++;
    thread *own = &world.threads[place];
    *own = (thread){.process = p, .body = body, .argument = argument, .waits = true};
    if (places[place].stack == NULL)
        places[place].stack = world_allocate(STACK_BYTES);
    ASAN_UNPOISON_MEMORY_REGION(places[place].stack, STACK_BYTES);
    getcontext(&places[place].context);
    places[place].context.uc_stack.ss_sp = places[place].stack;
    places[place].context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&places[place].context, begin, 0);
    world_at(world.now_s, resume, own, own->ticket);
    return place;
}

process *process_start(uint32_t rank, void *(*body)(void *), void *argument) {
    if (world.process_count == PROCESSES_MAX)
        world_fail("more than %d processes", PROCESSES_MAX);
    const int number = world.process_count++;
    process *p = &world.processes[number];
    *p = (process){.rank = rank, .number = number, .alive = true};
    p->main = new_thread(p, body, argument);
    world_note("starts", rank, (uint64_t)number, 0);
    return p;
}

static void wait_for(const void *what, double until_s) {
    thread *own = world.running;
    own->waits = true;
    own->what = what;
    own->ticket++;
    if (until_s < 1e300)
        world_at(until_s, resume, own, own->ticket);
    switch_back(false);
}

void process_wait(double until_s) {
    wait_for(NULL, until_s);
}

static void wake(thread *of) {
    if (!of->process->alive || !of->waits || of->woken)
        return;
    of->woken = true;
    world_at(world.now_s + network.slow_wake_s * world_uniform(), resume, of, of->ticket);
}

static void wake_all(const process *p, const void *what) {
    for (int i = 0; i < world.thread_count; i++)
        if (world.threads[i].what == what && world.threads[i].process == p)
            wake(&world.threads[i]);
}

void process_wake(process *p) {
    wake_all(p, p);
}

void process_stop(process *p) {
    p->stopped = true;
}

void process_go_on(process *p) {
    p->stopped = false;
    for (int i = 0; i < world.thread_count; i++) {
        thread *of = &world.threads[i];
        if (of->process == p && of->missed) {
            of->missed = false;
            world_at(world.now_s, resume, of, of->ticket);
        }
    }
}

/* ---- threads ---- */

int thread_start(void *(*body)(void *), void *argument) {
    return new_thread(world.current, body, argument);
}

bool thread_join(int number, double until_s) {
    const thread *of = &world.threads[number];
    while (!of->ended && world.now_s < until_s)
        wait_for(of, until_s);
    return of->ended;
}

void thread_wait(const void *what, double until_s) {
    wait_for(what, until_s);
}

void thread_wake(const void *what) {
    wake_all(world.current, what);
}

void world_close(void) {
    for (int i = 0; i < world.process_count; i++)
        if (world.processes[i].alive)
            process_kill(&world.processes[i], true);
    network_close();
    world.count = 0;
}
