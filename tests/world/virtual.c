/* virtual.c - time, chance, processes; see virtual.h. */
#include "virtual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(save, bottom, size) (void)(save), (void)(size)
#define __sanitizer_finish_switch_fiber(save, bottom, size) (void)(bottom), (void)(size)
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) (void)0
#endif

enum { STACK_BYTES = 512 << 10, EVENTS_MIN = 1024 };

typedef struct event {
    double at_s;
    uint64_t order;
    void (*act)(void *a, uint64_t b);
    void *a;
    uint64_t b;
} event;

static struct {
    double now_s;
    uint64_t state, hash, order;
    bool verbose;
    event *heap;
    size_t count, room;
    process processes[PROCESSES_MAX];
    int process_count;
    process *current;
} world;

/* Of each place in `processes`, kept from run to run. */
static struct {
    ucontext_t context;
    char *stack;
    void *fake_stack;
} places[PROCESSES_MAX];
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

static int place_of(const process *p) {
    return (int)(p - world.processes);
}

static void switch_to(process *p) {
    const int place = place_of(p);
    world.current = p;
    __sanitizer_start_switch_fiber(&scheduler_fake_stack, places[place].stack, STACK_BYTES);
    swapcontext(&scheduler, &places[place].context);
    __sanitizer_finish_switch_fiber(scheduler_fake_stack, NULL, NULL);
    world.current = NULL;
}

static void switch_back(bool for_ever) {
    const int place = place_of(world.current);
    __sanitizer_start_switch_fiber(for_ever ? NULL : &places[place].fake_stack, scheduler_stack,
                                   scheduler_stack_bytes);
    swapcontext(&places[place].context, &scheduler);
    __sanitizer_finish_switch_fiber(places[place].fake_stack, NULL, NULL);
}

static void begin(void) {
    __sanitizer_finish_switch_fiber(NULL, &scheduler_stack, &scheduler_stack_bytes);
    process *p = world.current;
    p->body(p->argument);
    p->alive = false;
    network_lose(p, false);
    world_note("ends", p->rank, (uint64_t)p->number, p->bytes);
    if (p->bytes != 0)
        world_fail("agent %u ended and left %zu bytes", p->rank, p->bytes);
    switch_back(true);
}

static void resume(void *of, uint64_t ticket) {
    process *p = of;
    if (!p->alive || !p->waits || p->ticket != ticket)
        return;
    if (p->stopped) {
        p->missed = true;
        return;
    }
    p->waits = p->woken = false;
    switch_to(p);
}

process *process_start(uint32_t rank, void (*body)(void *), void *argument) {
    if (world.process_count == PROCESSES_MAX)
        world_fail("more than %d processes", PROCESSES_MAX);
    const int place = world.process_count++;
    process *p = &world.processes[place];
    *p = (process){.rank = rank, .number = place, .alive = true, .body = body, .waits = true};
    p->argument = argument;
    if (places[place].stack == NULL)
        places[place].stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASAN_UNPOISON_MEMORY_REGION(places[place].stack, STACK_BYTES);
    getcontext(&places[place].context);
    places[place].context.uc_stack.ss_sp = places[place].stack;
    places[place].context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&places[place].context, begin, 0);
    world_note("starts", rank, (uint64_t)place, 0);
    world_at(world.now_s, resume, p, p->ticket);
    return p;
}

void process_wait(double until_s) {
    process *p = world.current;
    p->waits = true;
    p->ticket++;
    if (until_s < 1e300)
        world_at(until_s, resume, p, p->ticket);
    switch_back(false);
}

void process_wake(process *p) {
    if (!p->alive || !p->waits || p->woken)
        return;
    p->woken = true;
    world_at(world.now_s + network.slow_wake_s * world_uniform(), resume, p, p->ticket);
}

void process_stop(process *p) {
    p->stopped = true;
}

void process_go_on(process *p) {
    p->stopped = false;
    if (p->missed)
        world_at(world.now_s, resume, p, p->ticket);
    p->missed = false;
}

void process_do(process *p, void (*act)(void *), void *argument) {
    process *before = world.current;
    world.current = p;
    act(argument);
    world.current = before;
}

void world_close(void) {
    for (int i = 0; i < world.process_count; i++)
        if (world.processes[i].alive)
            process_kill(&world.processes[i], true);
    network_close();
    world.count = 0;
}
