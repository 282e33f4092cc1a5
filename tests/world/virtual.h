/* virtual.h - a world of processes in one thread: virtual time, events in one order, memory that
 * belongs to a process and goes with it.
 *
 * A process is a stack of its own, which runs until it waits. Nothing here reads a clock or a
 * random number that does not follow from the seed, so a seed is a run, bit for bit.
 */
#ifndef VIRTUAL_H
#define VIRTUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "world/fabric.h"

enum { PROCESSES_MAX = 256 };

/* ---- time and chance ---- */

static const double first_s = 1000; /* when a world begins */

void world_open(uint64_t seed, bool verbose);
/* Kills what is left. */
void world_close(void);
double world_now(void);
/* Calls act(a, b) at that time. Of events at one time the earlier given comes first. */
void world_at(double at_s, void (*act)(void *a, uint64_t b), void *a, uint64_t b);
/* Until nothing is left to happen, or the time is over, or `done` says so. */
void world_run(double until_s, bool (*done)(void));
uint64_t world_draw(void);
uint32_t world_below(uint32_t limit);
/* In [0, 1). */
double world_uniform(void);
bool world_chance(double probability);
/* Something happened: it becomes part of the hash, and a line where it is verbose. */
void world_note(const char *what, uint64_t a, uint64_t b, uint64_t c);
/* A process says this. */
void world_say(uint32_t rank, const char *text);
uint64_t world_hash(void);
/* Memory that is the world's own, whoever runs. */
void *world_allocate(size_t bytes);
void world_free(void *memory);

/* ---- processes ---- */

typedef struct process {
    uint32_t rank;
    int number; /* of the start: a process that comes again has another */
    bool alive, stopped;
    int main;          /* its first thread */
    unsigned looks;    /* that it took while it offered the processor */
    sl_fabric *fabric; /* NULL: it has none */
    int fabric_fd;
    size_t bytes, bytes_max;
    uint32_t connections, connections_max; /* at a time */
} process;

/* Begins at once, when the world runs. */
process *process_start(uint32_t rank, void *(*body)(void *), void *argument);
/* The one that runs; NULL: none. */
process *process_current(void);
/* The thread that runs waits until the time, or until it is woken. */
void process_wait(double until_s);
/* Something happened that its loop looks at: what waits for `p` goes on. */
void process_wake(process *p);
/* Without a word: its memory is gone, its connections break. `mute`: so does its host, and nobody
 * hears of it. */
void process_kill(process *p, bool mute);
void process_stop(process *p);
void process_go_on(process *p);

/* The n-th allocation of the processes of a rank fails. */
typedef struct nth_call {
    uint32_t rank;
    uint64_t fails; /* n, from 1; 0: none */
    uint64_t made;  /* so far */
} nth_call;
extern nth_call shortage;

/* ---- threads of the process that runs ---- */

int thread_start(void *(*body)(void *), void *argument);
/* Waits for its end. False: the time came before. */
bool thread_join(int number, double until_s);
/* Waits until the time, or until another thread of the process wakes all that wait for this. */
void thread_wait(const void *what, double until_s);
void thread_wake(const void *what);

/* ---- signals: descriptors of the virtual loop ---- */

/* None are open. */
void signals_clear(void);
bool signal_is_ready(int fd);

/* ---- memory that processes share ---- */

/* None is left. */
void arenas_clear(void);

/* ---- the network ---- */

void network_open(void);
void network_close(void);
/* The process is gone. `mute`: so is its host, and nobody hears of it. */
void network_lose(process *p, bool mute);
bool fabric_has_news(const sl_fabric *fabric);

/* What the network does with connections that are established. */
typedef enum network_break {
    BREAK_RESET,     /* both ends hear of it */
    BREAK_HALF_OPEN, /* one end does; the other when it sends */
    BREAK_MUTE       /* neither does */
} network_break;
typedef struct network_habits {
    double latency_s, jitter_s;
    uint32_t slow; /* the links of this rank take slow_s longer */
    double slow_s;
    double no_room;  /* chance that a send finds no room */
    double spurious; /* chance that a poll gives nothing, though there is something */
    double corrupt;  /* chance that a message is damaged on its way */
    double slow_wake_s;
    void (*forge)(uint32_t from, uint8_t *frame, size_t bytes); /* of what is sent; NULL: none */
} network_habits;
extern network_habits network;
/* What a partition holds up comes at most so long after its end. */
static const double network_resend_s = 0.1;
/* How many were broken: between these ranks, in either direction. */
int network_break_between(uint32_t a, uint32_t b, network_break how);
void network_part(uint32_t a, uint32_t b, bool parted);
/* Somebody who is no agent connects to rank's port: greets, truly or not, and says nothing,
 * garbage, or a frame of any type. */
void network_send_stranger(uint32_t rank);
/* How long one of them was at most connected, in seconds. */
double network_longest_stay(void);

/* ---- what must never be ---- */

/* Says what and ends the run of this seed as a failure. */
void world_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
