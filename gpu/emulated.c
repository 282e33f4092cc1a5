/* emulated.c - a device that is the host itself, so that everything but cuda.cu is tested where there is no GPU.
 *
 * With STARLING_GUARD in the environment its memory cannot be touched between calls: code that takes a device's vector for memory of its own
 * crashes, as it would there. With STARLING_FAILS_AFTER=N everything after the first N launches and copies fails. Threads of a launch run one after the other.
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "gpu/device.h"

static const size_t arena_bytes = (size_t)1 << 34; /* of addresses */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char *arena;
static size_t used;
static bool guarded;
static unsigned long calls, calls_until_failure = ULONG_MAX;

struct device_mark {
    int nothing;
};

static void enter(void) {
    pthread_mutex_lock(&mutex);
    calls++;
    if (guarded)
        mprotect(arena, used, PROT_READ | PROT_WRITE);
}

static void leave(void) {
    if (guarded)
        mprotect(arena, used, PROT_NONE);
    pthread_mutex_unlock(&mutex);
}

int device_count(char text[DEVICE_TEXT_MAX]) {
    (void)text;
    return 1;
}

bool device_describe(int index, device_properties *out, char text[DEVICE_TEXT_MAX]) {
    (void)index;
    (void)text;
    *out = (device_properties){.name = "emulated on the host", .major = 9, .bytes = arena_bytes, .emulated = true};
    return true;
}

bool device_open(int index, char text[DEVICE_TEXT_MAX]) {
    (void)index;
    if (arena == NULL) {
        const char *fails = getenv("STARLING_FAILS_AFTER");
        guarded = getenv("STARLING_GUARD") != NULL;
        calls_until_failure = fails != NULL ? strtoul(fails, NULL, 10) : ULONG_MAX;
        void *memory = mmap(NULL, arena_bytes, guarded ? PROT_NONE : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            snprintf(text, DEVICE_TEXT_MAX, "no %zu bytes of addresses", arena_bytes);
            return false;
        }
        arena = memory;
    }
    return true;
}

int device_status(char text[DEVICE_TEXT_MAX]) {
    pthread_mutex_lock(&mutex);
    const bool failed = calls > calls_until_failure;
    pthread_mutex_unlock(&mutex);
    if (failed)
        snprintf(text, DEVICE_TEXT_MAX, "call %lu failed: it was asked to", calls_until_failure + 1);
    return failed ? -1 : 0;
}

/* Blocks have a power of two of bytes, and are used again. */
static struct {
    char *memory;
    bool taken;
    unsigned order;
} *blocks;
static size_t block_count;

static char *take_block(unsigned order) {
    const size_t bytes = (size_t)1 << order;
    for (size_t i = 0; i < block_count; i++)
        if (!blocks[i].taken && blocks[i].order == order) {
            blocks[i].taken = true;
            return blocks[i].memory;
        }
    void *grown = bytes <= arena_bytes - used ? realloc(blocks, (block_count + 1) * sizeof *blocks) : NULL;
    if (grown == NULL)
        return NULL;
    blocks = grown;
    blocks[block_count].memory = arena + used;
    blocks[block_count].taken = true;
    blocks[block_count].order = order;
    used += bytes;
    return blocks[block_count++].memory;
}

void *device_allocate(size_t bytes) {
    unsigned order = 8;
    while (order < 63 && (size_t)1 << order < bytes)
        order++;
    pthread_mutex_lock(&mutex);
    char *memory = take_block(order);
    pthread_mutex_unlock(&mutex);
    if (memory != NULL)
        device_clear(memory, bytes);
    return memory;
}

void device_release(void *memory) {
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < block_count; i++)
        if (blocks[i].memory == memory)
            blocks[i].taken = false;
    pthread_mutex_unlock(&mutex);
}

/* Threads here could read the host's memory, as a GPU's cannot. */
void device_expect(const void *memory) {
    const char *at = memory;
    if (at >= arena && at < arena + arena_bytes)
        return;
    fprintf(stderr, "emulated device: %p is memory of the host\n", memory);
    abort();
}

void *device_allocate_host(size_t bytes) {
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

void device_release_host(void *memory) {
    free(memory);
}

void device_clear(void *memory, size_t bytes) {
    enter();
    memset(memory, 0, bytes);
    leave();
}

void device_copy_in(void *to, const void *host, size_t bytes) {
    enter();
    memcpy(to, host, bytes);
    leave();
}

void device_copy_out(void *host, const void *from, size_t bytes) {
    enter();
    memcpy(host, from, bytes);
    leave();
}

void device_begin_copy_out(void *host, const void *from, size_t bytes) {
    device_copy_out(host, from, bytes);
}

device_mark *device_mark_open(void) {
    return calloc(1, sizeof(device_mark));
}

void device_mark_close(device_mark *mark) {
    free(mark);
}

void device_mark_set(device_mark *mark) {
    (void)mark;
}

void device_mark_wait(device_mark *mark) {
    (void)mark;
}

#define DEFINE_LAUNCH(name)                                             \
    void launch_##name(const name##_args *arguments, size_t threads) { \
        enter();                                                        \
        for (size_t i = 0; i < threads; i++)                            \
            name(arguments, i);                                         \
        leave();                                                        \
    }
SL_ALL_KERNELS(DEFINE_LAUNCH)
