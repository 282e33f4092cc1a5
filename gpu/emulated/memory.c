/* memory.c - see fake.h: memory of the devices and page-locked memory of the host.
 *
 * The devices' is one range of addresses, in blocks whose sizes are powers of two; released ones
 * are used again. With STARLING_GUARD it is accessible only while a task of a stream runs. */
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu/device.h"
#include "gpu/emulated/fake.h"

enum { GARBAGE = 0xA5, ALIGNED_LOG2 = 8, ORDERS = 64, PAGE = 4096 };
static const size_t arena_bytes = (size_t)1 << 34; /* of addresses */

typedef struct block {
    struct block *next; /* while it is free */
    char *at;
    size_t bytes;
    unsigned order;       /* on a device it has 2^order bytes */
    bool of_host, shared; /* shared: other memory is mapped there */
    int device;
} block;

/* Set at open, then constant. */
static char *arena;
static bool guarded;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static void *blocks;                                      /* a tree of tsearch(3) */
static block *released[ORDERS];
static size_t used, taken; /* bytes of the arena: ever, and now */
static unsigned under_way; /* running tasks, which may access the arena */

void fake_open_memory(void) {
#ifdef __SANITIZE_THREAD__ /* it would take the guard's lock for an order between the streams */
    guarded = false;
#else
    guarded = getenv("STARLING_GUARD") != NULL;
#endif
    void *memory = mmap(NULL, arena_bytes, guarded ? PROT_NONE : PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        fake_stop("opening", "no %zu bytes of addresses", arena_bytes);
    arena = memory;
}

size_t fake_memory_bytes(void) {
    return arena_bytes;
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

void fake_unlock_memory(void) {
    guard(PROT_READ | PROT_WRITE, 1);
}

void fake_lock_memory(void) {
    guard(PROT_NONE, -1);
}

/* ---- where something is ---- */

/* Equal where they share a byte. */
static int by_place(const void *a_, const void *b_) {
    const block *a = a_, *b = b_;
    return a->at + a->bytes <= b->at ? -1 : b->at + b->bytes <= a->at;
}

/* With the mutex held. NULL: in none. */
static block *find(const void *memory, size_t bytes) {
    const block sought = {.at = (char *)memory, .bytes = bytes > 0 ? bytes : 1};
    block **found = tfind(&sought, &blocks, by_place);
    return found != NULL && (*found)->at <= sought.at &&
                   sought.at + sought.bytes <= (*found)->at + (*found)->bytes
               ? *found
               : NULL;
}

static bool is_in_block(const void *memory, size_t bytes, bool of_host) {
    pthread_mutex_lock(&mutex);
    const block *b = find(memory, bytes);
    const bool good = b != NULL && b->of_host == of_host;
    pthread_mutex_unlock(&mutex);
    return good;
}

bool fake_is_locked(const void *memory, size_t bytes) {
    return bytes == 0 || is_in_block(memory, bytes, true);
}

void fake_expect_on_device(const void *memory, size_t bytes, const char *function) {
    if (bytes > 0 && !is_in_block(memory, bytes, false))
        fake_stop(function, "%zu bytes at %p are not in memory of the device", bytes, memory);
}

/* The threads of the kernels could read memory of the host; those of a GPU cannot. */
void device_expect(const void *memory) {
    const char *at = memory;
    if (at < arena || at >= arena + arena_bytes)
        fake_stop("a launch", "%p is memory of the host", memory);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *memory) {
    fake_enter("cudaPointerGetAttributes");
    pthread_mutex_lock(&mutex);
    const block *b = find(memory, 1);
    *out = (struct cudaPointerAttributes){.type = b == NULL    ? cudaMemoryTypeUnregistered
                                                  : b->of_host ? cudaMemoryTypeHost
                                                               : cudaMemoryTypeDevice,
                                          .device = b != NULL ? b->device : 0};
    pthread_mutex_unlock(&mutex);
    return cudaSuccess;
}

static bool is_shared(const void *memory) {
    pthread_mutex_lock(&mutex);
    const block *b = find(memory, 1);
    const bool shared = b != NULL && b->shared;
    pthread_mutex_unlock(&mutex);
    return shared;
}

/* A guarded task costs by the pages that were touched; nobody touches a work space. */
void fake_set_memory(void *memory, int value, size_t bytes) {
    enum { PAGES = 256 };
    char *at = memory, *end = at + bytes;
    if (guarded && value == 0 && bytes >= PAGES * PAGE && !is_shared(memory)) {
        char *first = at + (PAGE - (uintptr_t)at % PAGE) % PAGE,
             *last = end - (uintptr_t)end % PAGE;
        memset(at, 0, (size_t)(first - at));
        at = madvise(first, (size_t)(last - first), MADV_DONTNEED) == 0 ? last : first;
    }
    memset(at, value, (size_t)(end - at));
}

/* ---- blocks ---- */

/* With the mutex held. False: out of memory. Files are mapped over whole pages. */
static bool place_in_arena(block *b) {
    while (((size_t)1 << b->order) < b->bytes)
        b->order++;
    const size_t whole = (size_t)1 << b->order;
    block *again = released[b->order];
    if (again == NULL && whole >= PAGE)
        used += (PAGE - used % PAGE) % PAGE;
    if (again == NULL && whole > arena_bytes - used)
        return false;
    b->at = again != NULL ? again->at : arena + used;
    used += again != NULL ? 0 : whole;
    taken += whole;
    if (again != NULL)
        released[b->order] = again->next;
    free(again);
    return true;
}

static void fill_with_garbage(const block *b) {
    if (!b->of_host)
        fake_unlock_memory();
    memset(b->at, GARBAGE, b->bytes);
    if (!b->of_host)
        fake_lock_memory();
}

static cudaError_t take(void **out, size_t bytes, bool of_host) {
    block *b = bytes <= arena_bytes ? malloc(sizeof *b) : NULL;
    if (b == NULL)
        return fake_keep(cudaErrorMemoryAllocation);
    *b = (block){.bytes = bytes > 0 ? bytes : 1,
                 .order = ALIGNED_LOG2,
                 .of_host = of_host,
                 .device = fake_mine.device};
    if (of_host)
        b->at = aligned_alloc(1 << ALIGNED_LOG2, ((bytes >> ALIGNED_LOG2) + 1) << ALIGNED_LOG2);
    pthread_mutex_lock(&mutex);
    const bool placed = of_host ? b->at != NULL : place_in_arena(b);
    if (placed && tsearch(b, &blocks, by_place) == NULL)
        fake_stop("allocation", "the host is out of memory");
    pthread_mutex_unlock(&mutex);
    if (!placed) {
        free(b);
        return fake_keep(cudaErrorMemoryAllocation);
    }
    fill_with_garbage(b);
    fake_add(FAKE_BLOCKS, 1);
    *out = b->at;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes) {
    fake_enter_device("cudaMalloc");
    fake_expect_no_capture("cudaMalloc");
    const cudaError_t forbidden = fake_check_captures(),
                      result = forbidden != cudaSuccess ? forbidden : fake_result(FAKE_MALLOC);
    return result != cudaSuccess ? result : take(out, bytes, false);
}

cudaError_t cudaMallocHost(void **out, size_t bytes) {
    fake_enter_device("cudaMallocHost");
    fake_expect_no_capture("cudaMallocHost");
    const cudaError_t result = fake_result(FAKE_MALLOC_HOST);
    return result != cudaSuccess ? result : take(out, bytes, true);
}

/* With the mutex held. */
static void forget(block *b) {
    tdelete(b, &blocks, by_place);
    if (b->of_host) {
        free(b->at);
        free(b);
        return;
    }
    taken -= (size_t)1 << b->order;
    b->next = released[b->order];
    released[b->order] = b;
}

static cudaError_t give_back(void *memory, bool of_host, const char *function) {
    fake_enter(function);
    fake_expect_no_capture(function);
    if (memory == NULL)
        return cudaSuccess;
    fake_await_all();
    pthread_mutex_lock(&mutex);
    block *b = find(memory, 1);
    if (b == NULL || b->at != memory || b->of_host != of_host)
        fake_stop(function, "%p is no block, or it was released", memory);
    forget(b);
    pthread_mutex_unlock(&mutex);
    fake_add(FAKE_BLOCKS, -1);
    return fake_keep(fake_stays());
}

cudaError_t cudaFree(void *memory) {
    return give_back(memory, false, "cudaFree");
}

cudaError_t cudaFreeHost(void *memory) {
    return give_back(memory, true, "cudaFreeHost");
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *total) {
    fake_enter_device("cudaMemGetInfo");
    *total = arena_bytes;
    pthread_mutex_lock(&mutex);
    *left = *total - taken;
    pthread_mutex_unlock(&mutex);
    return fake_keep(fake_stays());
}

/* ---- addresses without memory ---- */

void *fake_reserve(size_t bytes) {
    block *b = bytes <= arena_bytes ? calloc(1, sizeof *b) : NULL;
    if (b == NULL)
        return NULL;
    *b = (block){.bytes = bytes, .order = ALIGNED_LOG2, .shared = true, .device = fake_mine.device};
    pthread_mutex_lock(&mutex);
    const bool placed = place_in_arena(b);
    if (placed && tsearch(b, &blocks, by_place) == NULL)
        fake_stop("cuMemAddressReserve", "the host is out of memory");
    pthread_mutex_unlock(&mutex);
    void *at = placed ? b->at : NULL;
    if (!placed)
        free(b);
    return at;
}

void fake_give_back_addresses(void *at) {
    pthread_mutex_lock(&mutex);
    block *b = find(at, 1);
    if (b == NULL || b->at != at)
        fake_stop("cuMemAddressFree", "%p was not reserved, or is free", at);
    forget(b);
    pthread_mutex_unlock(&mutex);
}

/* As accessible as the rest at the time. */
bool fake_map(void *at, size_t bytes, int file) {
    const int kind = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    pthread_mutex_lock(&mutex);
    const int access = guarded && under_way == 0 ? PROT_NONE : PROT_READ | PROT_WRITE;
    const bool mapped = mmap(at, bytes, access, kind | MAP_FIXED, file, 0) == at;
    pthread_mutex_unlock(&mutex);
    return mapped;
}
