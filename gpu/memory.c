/* memory.c - see memory.h. A tree by address holds the blocks and their sizes. */
#include "gpu/memory.h"

#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/device.h"

typedef struct block {
    uintptr_t at;
    size_t bytes;
} block;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *blocks; /* a tree of tsearch(3) */
static size_t limit, taken, refused;

/* The work space of one thread. */
typedef struct scratch {
    void *memory;
    size_t bytes;
} scratch;
static _Thread_local scratch mine;
static pthread_key_t leaving;
static pthread_once_t leaving_once = PTHREAD_ONCE_INIT;

static int by_address(const void *a, const void *b) {
    const uintptr_t x = ((const block *)a)->at, y = ((const block *)b)->at;
    return x < y ? -1 : x > y;
}

void memory_bound(size_t bytes) {
    pthread_mutex_lock(&mutex);
    limit = bytes;
    pthread_mutex_unlock(&mutex);
}

/* With the mutex held. */
static void *take(size_t bytes) {
    block *b = malloc(sizeof *b);
    void *memory = b != NULL && (limit == 0 || (taken <= limit && bytes <= limit - taken))
                       ? device_allocate(bytes)
                       : NULL;
    if (b == NULL || memory == NULL) {
        free(b);
        return NULL;
    }
    *b = (block){(uintptr_t)memory, bytes};
    if (tsearch(b, &blocks, by_address) == NULL) {
        device_release(memory);
        free(b);
        return NULL;
    }
    taken += bytes;
    return memory;
}

void *memory_take(size_t bytes) {
    pthread_mutex_lock(&mutex);
    void *memory = take(bytes);
    if (memory == NULL)
        refused = bytes;
    pthread_mutex_unlock(&mutex);
    return memory;
}

void memory_give_back(void *memory) {
    if (memory == NULL)
        return;
    pthread_mutex_lock(&mutex);
    block **found = tfind(&(block){.at = (uintptr_t)memory}, &blocks, by_address);
    block *b = *found;
    taken -= b->bytes;
    tdelete(b, &blocks, by_address);
    free(b);
    device_release(memory);
    pthread_mutex_unlock(&mutex);
}

static void leave(void *scratch_) {
    scratch *s = scratch_;
    memory_give_back(s->memory);
    *s = (scratch){0};
}

/* Without a key, the work space of ended threads is not freed. */
static void create_key(void) {
    pthread_key_create(&leaving, leave);
}

void *memory_scratch(size_t bytes) {
    if (bytes <= mine.bytes)
        return mine.memory;
    leave(&mine);
    mine.memory = memory_take(bytes);
    mine.bytes = mine.memory != NULL ? bytes : 0;
    pthread_once(&leaving_once, create_key);
    pthread_setspecific(leaving, &mine);
    return mine.memory;
}

void memory_describe(sl_vec_memory *out) {
    pthread_mutex_lock(&mutex);
    const size_t left = limit > taken ? limit - taken : 0;
    *out = (sl_vec_memory){.free = device_free_bytes(),
                           .limit = limit,
                           .taken = limit > 0 ? limit - left : taken,
                           .refused = refused};
    pthread_mutex_unlock(&mutex);
}

void *memory_list_take(memory_list *list, size_t bytes) {
    void *fresh = list->failed ? NULL : memory_take(bytes > 0 ? bytes : 1);
    list->failed = fresh == NULL;
    if (fresh != NULL)
        list->blocks[list->count++] = fresh;
    return fresh;
}

void memory_list_give_back(memory_list *list) {
    while (list->count > 0)
        memory_give_back(list->blocks[--list->count]);
}

/* ---- memory that others map, or have made ---- */

typedef struct shared {
    struct shared *next;
    device_share *share;
    size_t bytes, counted; /* counted: as taken by this process */
} shared;
static shared *all_shared;

static void *keep_shared(device_share *share, size_t bytes, size_t counted,
                         char text[SL_SHARE_WHY_MAX], const char *why) {
    shared *s = share != NULL ? malloc(sizeof *s) : NULL;
    if (s == NULL) {
        snprintf(text, SL_SHARE_WHY_MAX, "%.*s", SL_SHARE_WHY_MAX - 1,
                 share == NULL ? why : "out of memory");
        device_share_close(share);
        taken -= counted;
        return NULL;
    }
    *s = (shared){all_shared, share, bytes, counted};
    all_shared = s;
    return device_share_memory(share);
}

void *memory_share_open(size_t bytes, int *descriptor, char text[SL_SHARE_WHY_MAX]) {
    char why[DEVICE_TEXT_MAX] = "device_memory_gb leaves no room for it";
    pthread_mutex_lock(&mutex);
    const bool fits = limit == 0 || (taken <= limit && bytes <= limit - taken);
    taken += fits ? bytes : 0;
    void *memory = keep_shared(fits ? device_share_open(bytes, descriptor, why) : NULL, bytes,
                               fits ? bytes : 0, text, why);
    pthread_mutex_unlock(&mutex);
    return memory;
}

const void *memory_share_map(int descriptor, size_t bytes, char text[SL_SHARE_WHY_MAX]) {
    char why[DEVICE_TEXT_MAX];
    pthread_mutex_lock(&mutex);
    const void *memory = keep_shared(device_share_map(descriptor, bytes, why), bytes, 0, text, why);
    pthread_mutex_unlock(&mutex);
    return memory;
}

void memory_share_close(const void *memory) {
    pthread_mutex_lock(&mutex);
    shared **at = &all_shared;
    while (device_share_memory((*at)->share) != memory)
        at = &(*at)->next;
    shared *s = *at;
    *at = s->next;
    taken -= s->counted;
    device_share_close(s->share);
    free(s);
    pthread_mutex_unlock(&mutex);
}

bool memory_is_shared(const void *memory) {
    bool found = false;
    pthread_mutex_lock(&mutex);
    for (const shared *s = all_shared; s != NULL && !found; s = s->next)
        found = (uintptr_t)memory - (uintptr_t)device_share_memory(s->share) < s->bytes;
    pthread_mutex_unlock(&mutex);
    return found;
}
