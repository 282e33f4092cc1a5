/* emulated_locked.c - see emulated_locked.h. A tree by address holds what is allocated. */
#include "gpu/emulated_locked.h"

#include <pthread.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct locked {
    const char *at;
    size_t bytes;
} locked;

static void *tree; /* of tsearch(3) */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Equal where they share a byte. */
static int by_place(const void *a_, const void *b_) {
    const locked *a = a_, *b = b_;
    return a->at + a->bytes <= b->at ? -1 : b->at + b->bytes <= a->at;
}

void locked_expect(const void *host, size_t bytes) {
    pthread_mutex_lock(&mutex);
    locked **found = tfind(&(locked){host, bytes}, &tree, by_place);
    const bool good = bytes == 0 || (found != NULL && (*found)->at <= (const char *)host &&
                                     (const char *)host + bytes <= (*found)->at + (*found)->bytes);
    pthread_mutex_unlock(&mutex);
    if (good)
        return;
    fprintf(stderr, "emulated device: %zu bytes at %p are not page-locked\n", bytes, host);
    abort();
}

void *locked_allocate(size_t bytes) {
    const size_t whole = bytes / 64 * 64 + 64;
    locked *l = malloc(sizeof *l);
    void *memory = l != NULL ? aligned_alloc(64, whole) : NULL;
    if (memory == NULL) {
        free(l);
        return NULL;
    }
    *l = (locked){memory, bytes > 0 ? bytes : 1};
    pthread_mutex_lock(&mutex);
    const bool kept = tsearch(l, &tree, by_place) != NULL;
    pthread_mutex_unlock(&mutex);
    if (kept)
        return memory;
    free(memory);
    free(l);
    return NULL;
}

void locked_release(void *memory) {
    if (memory == NULL)
        return;
    pthread_mutex_lock(&mutex);
    locked *l = *(locked **)tfind(&(locked){memory, 1}, &tree, by_place);
    tdelete(l, &tree, by_place);
    pthread_mutex_unlock(&mutex);
    free(l);
    free(memory);
}
