/* thread.h - what all kernels use: moves of four floats, division. */
#ifndef SL_GPU_THREAD_H
#define SL_GPU_THREAD_H

#include "element/shared.h"
#include "gpu/warp.h"
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

/* Elements [from, from + 4) of v, those from `end` on being 0. v + from is aligned to 16 bytes if
 * `aligned`. */
SL_SHARED four read_four(const float *v, size_t end, int aligned, size_t from) {
    four out = {{0, 0, 0, 0}};
    if (aligned && from + FOUR <= end)
        return *(const four *)(const void *)(v + from);
    for (uint32_t e = 0; e < FOUR && from + e < end; e++)
        out.v[e] = v[from + e];
    return out;
}

SL_SHARED size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

SL_SHARED size_t ceiling(size_t n, size_t by) {
    return (n + by - 1) / by;
}

/* a / b. A GPU divides 64-bit numbers several times slower than 32-bit ones. */
SL_SHARED size_t quotient(size_t a, size_t b) {
    return (a | b) >> 32 == 0 ? (uint32_t)a / (uint32_t)b : a / b;
}

#endif
