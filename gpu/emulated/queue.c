/* queue.c - see queue.h. */
#include "gpu/emulated/queue.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void counter_raise(counter *c, unsigned to) {
    atomic_store_explicit(&c->value, to, memory_order_release);
    syscall(SYS_futex, &c->value, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static bool is_reached(unsigned now, unsigned wanted) {
    return (int)(now - wanted) >= 0;
}

bool counter_has(counter *c, unsigned reached) {
    return is_reached(atomic_load_explicit(&c->value, memory_order_acquire), reached);
}

void counter_await(counter *c, unsigned reached) {
    for (unsigned now;
         !is_reached(now = atomic_load_explicit(&c->value, memory_order_acquire), reached);)
        syscall(SYS_futex, &c->value, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
}

/* The list begins with a finished task, which the queue's thread owns. The giver touches the last
 * task only. */
struct task {
    struct task *next;
    task_function *function; /* NULL: the thread ends */
    _Alignas(max_align_t) char arguments[QUEUE_BYTES_MAX];
};

static struct task *new_task(void) {
    struct task *task = calloc(1, sizeof *task);
    if (task == NULL) {
        fputs("fake CUDA runtime: out of memory for a task\n", stderr);
        abort();
    }
    return task;
}

static void *run(void *queue_) {
    queue *q = queue_;
    for (unsigned n = 1;; n++) {
        counter_await(&q->given, n);
        struct task *next = q->first->next;
        free(q->first);
        q->first = next;
        const bool ends = next->function == NULL;
        if (!ends)
            next->function(next->arguments);
        counter_raise(&q->done, n);
        if (ends)
            return NULL;
    }
}

static void start(queue *q) {
    pthread_t thread;
    q->first = q->last = new_task();
    q->runs = true;
    if (pthread_create(&thread, NULL, run, q) != 0) {
        fputs("fake CUDA runtime: no thread for a queue\n", stderr);
        abort();
    }
    pthread_detach(thread);
}

void queue_give(queue *q, task_function *function, const void *arguments, size_t bytes) {
    if (!q->runs)
        start(q);
    struct task *task = new_task();
    task->function = function;
    if (bytes > 0)
        memcpy(task->arguments, arguments, bytes);
    q->last->next = task;
    q->last = task;
    counter_raise(&q->given, ++q->count);
}

void queue_await(queue *q) {
    counter_await(&q->done, atomic_load_explicit(&q->given.value, memory_order_acquire));
}

void queue_close(queue *q) {
    if (!q->runs)
        return;
    queue_give(q, NULL, NULL, 0);
    queue_await(q);
    free(q->first);
    memset(q, 0, sizeof *q);
}
