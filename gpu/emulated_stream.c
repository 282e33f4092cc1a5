/* emulated_stream.c - see emulated_stream.h. */
#include "gpu/emulated_stream.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
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

/* The list begins with a finished task, which the stream's thread owns. The giver touches the last
 * task only. */
struct task {
    struct task *next;
    task_function *function; /* NULL: the thread ends */
    _Alignas(max_align_t) char arguments[STREAM_BYTES_MAX];
};

static struct task *new_task(void) {
    struct task *task = calloc(1, sizeof *task);
    if (task == NULL) {
        fputs("emulated device: out of memory for a task\n", stderr);
        abort();
    }
    return task;
}

static void *run(void *stream_) {
    stream *s = stream_;
    for (unsigned n = 1;; n++) {
        counter_await(&s->given, n);
        struct task *next = s->first->next;
        free(s->first);
        s->first = next;
        const bool ends = next->function == NULL;
        if (!ends)
            next->function(next->arguments);
        counter_raise(&s->done, n);
        if (ends)
            return NULL;
    }
}

static void start(stream *s) {
    pthread_t thread;
    s->first = s->last = new_task();
    s->runs = true;
    if (pthread_create(&thread, NULL, run, s) != 0) {
        fputs("emulated device: no thread for a stream\n", stderr);
        abort();
    }
    pthread_detach(thread);
}

void stream_give(stream *s, task_function *function, const void *arguments, size_t bytes) {
    if (!s->runs)
        start(s);
    struct task *task = new_task();
    task->function = function;
    if (bytes > 0)
        memcpy(task->arguments, arguments, bytes);
    s->last->next = task;
    s->last = task;
    counter_raise(&s->given, ++s->count);
}

enum { NAMED_MAX = 64 };

stream *stream_named(const void *name) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static const void *names[NAMED_MAX];
    static stream streams[NAMED_MAX];
    static size_t count;
    pthread_mutex_lock(&mutex);
    size_t i = 0;
    while (i < count && names[i] != name)
        i++;
    if (i == NAMED_MAX) {
        fputs("emulated device: too many streams have names\n", stderr);
        abort();
    }
    names[i] = name;
    count = i < count ? count : i + 1;
    pthread_mutex_unlock(&mutex);
    return &streams[i];
}

typedef struct follow_task {
    counter *done;
    unsigned count;
} follow_task;

static void do_follow(void *arguments) {
    const follow_task *f = arguments;
    counter_await(f->done, f->count);
}

void stream_follow(stream *s, stream *other) {
    stream_give(s, do_follow, &(follow_task){&other->done, other->count}, sizeof(follow_task));
}

void stream_await(stream *s) {
    counter_await(&s->done, atomic_load_explicit(&s->given.value, memory_order_acquire));
}

void stream_sleep(double seconds) {
    const time_t whole = (time_t)seconds;
    struct timespec left = {whole, (long)(1e9 * (seconds - (double)whole))};
    while (nanosleep(&left, &left) != 0) {
    }
}

void stream_close(stream *s) {
    if (!s->runs)
        return;
    stream_give(s, NULL, NULL, 0);
    stream_await(s);
    free(s->first);
    memset(s, 0, sizeof *s);
}
