/* emulated_arena.c - see emulated_arena.h. */
#include "gpu/emulated_arena.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Set at open, then constant. */
static char *arena;
static bool guarded;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static size_t used;
static unsigned under_way; /* running operations that may access the arena */

/* Block sizes are powers of two. Freed blocks are reused. */
static struct {
    char *memory;
    bool taken;
    unsigned order;
} * blocks;
static size_t block_count;

bool arena_open(bool guard) {
    guarded = guard;
    void *memory = mmap(NULL, arena_bytes, guarded ? PROT_NONE : PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    arena = memory != MAP_FAILED ? memory : NULL;
    return arena != NULL;
}

static char *take_block(unsigned order) {
    const size_t bytes = (size_t)1 << order;
    for (size_t i = 0; i < block_count; i++)
        if (!blocks[i].taken && blocks[i].order == order) {
            blocks[i].taken = true;
            return blocks[i].memory;
        }
    void *grown =
        bytes <= arena_bytes - used ? realloc(blocks, (block_count + 1) * sizeof *blocks) : NULL;
    if (grown == NULL)
        return NULL;
    blocks = grown;
    blocks[block_count].memory = arena + used;
    blocks[block_count].taken = true;
    blocks[block_count].order = order;
    used += bytes;
    return blocks[block_count++].memory;
}

void *arena_take(size_t bytes) {
    unsigned order = 8;
    while (order < 63 && (size_t)1 << order < bytes)
        order++;
    pthread_mutex_lock(&mutex);
    char *memory = take_block(order);
    pthread_mutex_unlock(&mutex);
    return memory;
}

void arena_give_back(void *memory) {
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < block_count; i++)
        if (blocks[i].memory == memory)
            blocks[i].taken = false;
    pthread_mutex_unlock(&mutex);
}

size_t arena_free_bytes(void) {
    pthread_mutex_lock(&mutex);
    size_t left = arena_bytes - used;
    for (size_t i = 0; i < block_count; i++)
        left += blocks[i].taken ? 0 : (size_t)1 << blocks[i].order;
    pthread_mutex_unlock(&mutex);
    return left;
}

bool arena_holds(const void *memory) {
    const char *at = memory;
    return at >= arena && at < arena + arena_bytes;
}

static void guard(int protection, int change) {
    if (!guarded)
        return;
    pthread_mutex_lock(&mutex);
    under_way += (unsigned)change;
    if (under_way == 0 || protection != PROT_NONE)
        mprotect(arena, used, protection);
    pthread_mutex_unlock(&mutex);
}

void arena_unlock(void) {
    guard(PROT_READ | PROT_WRITE, 1);
}

void arena_lock(void) {
    guard(PROT_NONE, -1);
}
