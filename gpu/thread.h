/* thread.h - what all kernels use: atomic counts, moves of four floats, division. */
#ifndef SL_GPU_THREAD_H
#define SL_GPU_THREAD_H

#include "element/shared.h"
#include "starling/vec.h"

enum {
    INPUTS = 8,     /* vectors of one combine launch; further launches add more */
    TOGETHER = 4,   /* inputs that a thread loads before it adds the first */
    FOUR = 4,       /* elements of one thread in elementwise kernels */
    EIGHT = 8,      /* elements, codes or indices that one thread packs into `width` whole bytes */
    WORD_BITS = 64, /* bits of a word in a bitmap */
    FAN = 32,       /* counts that one thread of a scan adds */
    DIGIT_CLASSES = 2048
};

#ifdef __CUDA_ARCH__
/* Lanes of a warp that count the same number share one atomic operation: thousands of atomic
 * operations on one address would serialize. */
SL_SHARED uint32_t lanes_at(const void *at) {
    return __match_any_sync(__activemask(), (unsigned long long)(uintptr_t)at);
}
SL_SHARED int is_first_of(uint32_t lanes) {
    return threadIdx.x % 32 == (uint32_t)__ffs((int)lanes) - 1; /* one-dimensional blocks */
}
SL_SHARED void add_together(uint32_t *at, uint32_t value) {
    const uint32_t lanes = lanes_at(at), sum = __reduce_add_sync(lanes, value);
    if (is_first_of(lanes))
        atomicAdd(at, sum);
}
SL_SHARED void raise_together(uint32_t *at, uint32_t value) {
    const uint32_t lanes = lanes_at(at), largest = __reduce_max_sync(lanes, value);
    if (is_first_of(lanes))
        atomicMax(at, largest);
}
#define ATOMIC_ADD(at, value) add_together(at, value)
#define ATOMIC_MAX(at, value) raise_together(at, value)
#define ATOMIC_OR(at, value) atomicOr((unsigned long long *)(at), (unsigned long long)(value))
#define BITS_SET(word) ((uint32_t)__popcll((long long)(word)))
#define LOWEST_BIT(word) ((uint32_t)(__ffsll((long long)(word)) - 1))
#else
SL_SHARED void raise_to(uint32_t *at, uint32_t value) {
    uint32_t now = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (now < value &&
           !__atomic_compare_exchange_n(at, &now, value, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}
#define ATOMIC_ADD(at, value) __atomic_fetch_add(at, value, __ATOMIC_RELAXED)
#define ATOMIC_MAX(at, value) raise_to(at, value)
#define ATOMIC_OR(at, value) __atomic_fetch_or(at, value, __ATOMIC_RELAXED)
#define BITS_SET(word) ((uint32_t)__builtin_popcountll(word))
#define LOWEST_BIT(word) ((uint32_t)__builtin_ctzll(word))
#endif

/* Four floats; moved at once if `aligned` says that they are aligned to 16 bytes. */
typedef struct four {
    float v[FOUR];
} __attribute__((aligned(16))) four;

#ifndef READ_AS_CONSTANT
#define READ_AS_CONSTANT(at, count) /* told of each such read, on the host */
#endif

/* The same for memory that no thread of the launch writes; a GPU may read it early. */
SL_SHARED float read_one(const float *at) {
#ifdef __CUDA_ARCH__
    return __ldg(at);
#else
    READ_AS_CONSTANT(at, 1);
    return *at;
#endif
}

/* The same for `span` floats: four, aligned to 16 bytes, or one. */
SL_SHARED four read_span(const float *at, uint32_t span) {
    four out = {{0, 0, 0, 0}};
#ifdef __CUDA_ARCH__
    if (span == FOUR) {
        const float4 v = __ldg((const float4 *)at);
        out.v[0] = v.x;
        out.v[1] = v.y;
        out.v[2] = v.z;
        out.v[3] = v.w;
    }
#else
    if (span == FOUR) {
        READ_AS_CONSTANT(at, FOUR);
        out = *(const four *)at;
    }
#endif
    else
        out.v[0] = read_one(at);
    return out;
}

SL_SHARED void write_span(float *at, four v, uint32_t span) {
    if (span == FOUR)
        *(four *)at = v;
    else
        *at = v.v[0];
}

SL_SHARED size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* a / b. A GPU divides 64-bit numbers several times slower than 32-bit ones. */
SL_SHARED size_t quotient(size_t a, size_t b) {
    return (a | b) >> 32 == 0 ? (uint32_t)a / (uint32_t)b : a / b;
}

#endif
