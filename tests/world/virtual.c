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
#define NOWHERE SIZE_MAX

typedef struct event {
    double at_s;
    uint64_t order;
    void (*act)(void *a, uint64_t b);
    void *a;
    uint64_t b;
    size_t *place; /* where its place in the heap is kept; NULL: nowhere */
} event;

/* A stack, and what it waits for. The first thread of a process is the process. */
typedef struct thread {
    process *process;
    void *(*body)(void *argument);
    void *argument;
    bool ended, waits, woken, missed; /* woken: an event that ends the wait is on its way;
                                         missed: it was to run while the process was stopped */
    uint64_t ticket;                  /* of the wait under way */
    size_t timer;                     /* place of the event that ends it at its time; NOWHERE */
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

typedef struct place {
    ucontext_t context; /* where it begins */
    bool begun;
    void *left_at[5]; /* where it goes on */
    char *stack;
    void *fake_stack;
} place;

static place places[THREADS_MAX]; /* of each thread, kept from run to run */
static place scheduler = {.begun = true};
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
    world.now_s = first_s;
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

uint32_t world_below(uint32_t limit) {
    return (uint32_t)(world_draw() % limit);
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
        printf("%12.6f %-10s %llu %llu %llx\n", world.now_s - first_s, what, (unsigned long long)a,
               (unsigned long long)b, (unsigned long long)c);
}

void world_say(uint32_t rank, const char *text) {
    fold(rank);
    fold(sl_checksum(text, strlen(text)));
    if (world.verbose && text[0] != '\0')
        printf("%12.6f agent %u: %s\n", world.now_s - first_s, rank, text);
}

uint64_t world_hash(void) {
    return world.hash;
}

/* ---- events: a heap ---- */

static bool is_before(const event *a, const event *b) {
    return a->at_s < b->at_s || (a->at_s == b->at_s && a->order < b->order);
}

static void put(size_t i, event e) {
    world.heap[i] = e;
    if (e.place != NULL)
        *e.place = i;
}

static void raise_from(size_t i, event e) {
    for (; i > 0 && is_before(&e, &world.heap[(i - 1) / 2]); i = (i - 1) / 2)
        put(i, world.heap[(i - 1) / 2]);
    put(i, e);
}

static void sink_from(size_t i, event e) {
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < world.count && is_before(&world.heap[child + 1], &world.heap[child]))
            child++;
        if (child >= world.count || is_before(&e, &world.heap[child]))
            break;
        put(i, world.heap[child]);
        i = child;
    }
    put(i, e);
}

static event take_event(size_t i) {
    const event taken = world.heap[i], last = world.heap[--world.count];
    if (taken.place != NULL)
        *taken.place = NOWHERE;
    if (i == world.count)
        return taken;
    if (i > 0 && is_before(&last, &world.heap[(i - 1) / 2]))
        raise_from(i, last);
    else
        sink_from(i, last);
    return taken;
}

static void make_room(void) {
    if (world.count < world.room)
        return;
    world.room = world.room > 0 ? 2 * world.room : EVENTS_MIN;
    event *heap = world_allocate(world.room * sizeof *heap);
    if (world.count > 0)
        memcpy(heap, world.heap, world.count * sizeof *heap);
    world_free(world.heap);
    world.heap = heap;
}

static void give_event(event e) {
    make_room();
    if (e.at_s < world.now_s)
        e.at_s = world.now_s;
    e.order = world.order++;
    raise_from(world.count++, e);
}

void world_at(double at_s, void (*act)(void *a, uint64_t b), void *a, uint64_t b) {
    give_event((event){.at_s = at_s, .act = act, .a = a, .b = b});
}

void world_run(double until_s, bool (*done)(void)) {
    while (world.count > 0 && world.heap[0].at_s <= until_s && !done()) {
        const event e = take_event(0);
        world.now_s = e.at_s;
        e.act(e.a, e.b);
    }
}

/* ---- processes ---- */

process *process_current(void) {
    return world.current;
}

/* The sanitizer knows what swapcontext does; without it that would cost two system calls, for masks
 * of signals. */
#ifdef __SANITIZE_ADDRESS__
static void leap(place *from, place *to) {
    swapcontext(&from->context, &to->context);
}
#else
__attribute__((noinline)) static void leap(place *from, place *to) {
    if (__builtin_setjmp(from->left_at) != 0)
        return;
    if (to->begun)
        __builtin_longjmp(to->left_at, 1);
    to->begun = true;
    setcontext(&to->context);
}
#endif

static int number_of(const thread *of) {
    return (int)(of - world.threads);
}

static void switch_to(thread *to) {
    place *there = &places[number_of(to)];
    world.current = to->process;
    world.running = to;
    __sanitizer_start_switch_fiber(&scheduler.fake_stack, there->stack, STACK_BYTES);
    leap(&scheduler, there);
    __sanitizer_finish_switch_fiber(scheduler.fake_stack, NULL, NULL);
    world.current = NULL;
    world.running = NULL;
}

static void switch_back(bool for_ever) {
    place *here = &places[number_of(world.running)];
    __sanitizer_start_switch_fiber(for_ever ? NULL : &here->fake_stack, scheduler_stack,
                                   scheduler_stack_bytes);
    leap(here, &scheduler);
    __sanitizer_finish_switch_fiber(here->fake_stack, NULL, NULL);
}

/* One that did not end in time: its memory goes with the process. */
static bool leaves_thread(const process *p) {
    for (int i = 0; i < world.thread_count; i++)
        if (world.threads[i].process == p && i != p->main && !world.threads[i].ended)
            return true;
    return false;
}

static void end_process(process *p) {
    const size_t lost = leaves_thread(p) ? 0 : p->bytes;
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
    if (own->process->main == number_of(own))
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
    if (to->timer != NOWHERE)
        take_event(to->timer);
    switch_to(to);
}

static int new_thread(process *p, void *(*body)(void *), void *argument) {
    if (world.thread_count == THREADS_MAX)
        world_fail("more than %d threads", THREADS_MAX);
    const int number = world.thread_count++;
    thread *own = &world.threads[number];
    place *there = &places[number];
    *own =
        (thread){.process = p, .body = body, .argument = argument, .waits = true, .timer = NOWHERE};
    if (there->stack == NULL)
        there->stack = world_allocate(STACK_BYTES);
    ASAN_UNPOISON_MEMORY_REGION(there->stack, STACK_BYTES);
    getcontext(&there->context);
    there->begun = false;
    there->context.uc_stack.ss_sp = there->stack;
    there->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&there->context, begin, 0);
    world_at(world.now_s, resume, own, own->ticket);
    return number;
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
        give_event((event){
            .at_s = until_s, .act = resume, .a = own, .b = own->ticket, .place = &own->timer});
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
    arenas_clear();
    world.count = 0;
}
