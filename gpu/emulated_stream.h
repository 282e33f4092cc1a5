/* emulated_stream.h - a GPU's streams and events as threads and counters, for emulated.c.
 *
 * A stream's tasks run in their order, on a thread of its own; between two streams, and between a
 * stream and the host, there is no order but the one that was asked for. The counters are atomic
 * numbers, released when raised and acquired when awaited, and nothing else synchronizes: so that
 * what ThreadSanitizer sees as ordered is what a GPU would order, and it reports any two tasks that
 * touch the same memory without an event between them.
 */
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

/* Given tasks by one thread. All zero: its thread starts with the first task. */
typedef struct stream {
    struct task *first, *last; /* done, or under way; given last */
    counter given, done;
    unsigned count; /* given */
    bool runs;
} stream;

enum { STREAM_BYTES_MAX = 256 }; /* of a task's arguments */
typedef void task_function(void *arguments);
/* Copies the arguments. */
void stream_give(stream *s, task_function *function, const void *arguments, size_t bytes);
/* What it is given from now on comes behind what `other` has been given so far. */
void stream_follow(stream *s, stream *other);
/* Waits until all is done that it has been given; any thread may. */
void stream_await(stream *s);
/* Waits, and ends the thread. */
void stream_close(stream *s);

#endif
