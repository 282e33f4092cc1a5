/* emulated_stream.h - a GPU's streams and events, emulated with threads and counters, for
 * emulated.c.
 *
 * Each stream has a thread that runs its tasks in order. Two streams, or a stream and the host,
 * are ordered by events only. An event is an atomic counter: raised with release order, awaited
 * with acquire order. Nothing else synchronizes. So ThreadSanitizer sees exactly the order that a
 * GPU would guarantee, and reports two tasks that touch the same memory without an event between
 * them. */
#ifndef SL_EMULATED_STREAM_H
#define SL_EMULATED_STREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Only rises, modulo 2^32. */
typedef struct counter {
    atomic_uint value;
} counter;

void counter_raise(counter *c, unsigned to);
bool counter_has(counter *c, unsigned reached);
void counter_await(counter *c, unsigned reached);

/* One thread gives it tasks. Zero-initialized: the first task starts its thread. */
typedef struct stream {
    struct task *first, *last; /* tasks that are done or running; the last task given */
    counter given, done;
    unsigned count; /* given */
    bool runs;
} stream;

enum { STREAM_BYTES_MAX = 1616 }; /* bytes of a task's arguments */
typedef void task_function(void *arguments);
/* Copies the arguments. */
void stream_give(stream *s, task_function *function, const void *arguments, size_t bytes);
/* A stream for each name; none of them is closed. */
stream *stream_named(const void *name);
/* Later tasks of `s` start after all tasks that `other` has so far. */
void stream_follow(stream *s, stream *other);
/* Waits until all its tasks are done. Any thread may call it. */
void stream_await(stream *s);
/* A task that takes so long. */
void stream_sleep(double seconds);
/* Waits for its tasks and ends its thread. */
void stream_close(stream *s);

#endif
