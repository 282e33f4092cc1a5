/* queue.h - a GPU's streams and events, emulated with threads and counters.
 *
 * Each queue has a thread that runs its tasks in order. Two queues, or a queue and the host, are
 * ordered by counters only: raised with release order, awaited with acquire order. Nothing else
 * synchronizes. So ThreadSanitizer sees exactly the order that a GPU would guarantee, and reports
 * two tasks that touch the same memory without an event between them. */
#ifndef SL_EMULATED_QUEUE_H
#define SL_EMULATED_QUEUE_H

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
typedef struct queue {
    struct task *first, *last; /* tasks that are done or running; the last task given */
    counter given, done;
    unsigned count; /* given */
    bool runs;
} queue;

enum { QUEUE_BYTES_MAX = 1616 }; /* bytes of a task's arguments */
typedef void task_function(void *arguments);
/* Copies the arguments. */
void queue_give(queue *q, task_function *function, const void *arguments, size_t bytes);
/* Waits until all its tasks are done. Any thread may call it. */
void queue_await(queue *q);
/* Waits for its tasks and ends its thread. */
void queue_close(queue *q);

#endif
