/* vec.h - operations on flat float vectors: the backend table.
 *
 * Every vector that training touches (parameters, gradient, momentum, algorithm state) is handled
 * through one of these tables, so that a GPU backend is another table and nothing else. The CPU's
 * operations are finished on return. A device's take effect in the order in which a thread calls
 * them, and those of different threads in none: a vector is handed from one thread to another
 * behind a mark (sl_flight_ops), or a fence. They are finished when `fence`, a copy out or a
 * reduction returns, or when a mark behind them has passed. Element-wise arithmetic is single
 * precision multiply, then add, each rounded (never fused), so that every instruction set gives the
 * same bits; reductions run in double, in one fixed order, for the same reason.
 */
#ifndef STARLING_VEC_H
#define STARLING_VEC_H

#include <stdbool.h>
#include <stddef.h>

#include "starling/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_VEC_ALIGNMENT 64 /* bytes; every vector and payload starts on such a boundary */

/* PyTorch's SGD direction: g += weight_decay*x; m = momentum*m + g; d = nesterov ? g + momentum*m :
 * m. */
typedef struct sl_sgd {
    float learning_rate;
    float momentum;
    float weight_decay;
    bool nesterov;
} sl_sgd;

/* A point among a device's operations. */
typedef struct sl_mark sl_mark;

/* Operations that end later than their calls: what orders them, and how to hear of their end
 * without waiting. A mark that was never set has passed; a mark is used by one thread at a time. */
typedef struct sl_flight_ops {
    sl_mark *(*mark_open)(void);       /* NULL: memory is short */
    void (*mark_close)(sl_mark *mark); /* waits until it has passed */
    /* Behind the calling thread's operations so far. A mark may be set again and again. */
    void (*mark_set)(sl_mark *mark);
    /* The calling thread's operations from now on come behind it. */
    void (*mark_follow)(sl_mark *mark);
    void (*mark_wait)(sl_mark *mark);
    /* Waits for nothing. If it has not passed yet, the bell, an eventfd (0: none), rings when it
     * has: 1 is added to it. Not so once an operation has failed, which `status` says. The bell
     * stays open until the mark has been closed. */
    bool (*mark_passed)(sl_mark *mark, int bell);
    /* A copy beside the operations: behind `after`, with `copied` set behind it. host, from
     * allocate_host, is free again, and v filled, once that has passed. */
    void (*begin_copy_in)(void *v, const void *host, size_t bytes, sl_mark *after, sl_mark *copied);
    /* Waits for nothing. 0, or SL_EDEVICE with the first operation that is known to have failed. */
    int (*status)(sl_error *error);
} sl_flight_ops;

/* Memory that vectors are in, in bytes. */
typedef struct sl_vec_memory {
    size_t free;    /* of the device, for anybody */
    size_t limit;   /* on what this program may take there; 0: none */
    size_t taken;   /* of that */
    size_t refused; /* what was asked for last and not given; 0: nothing */
} sl_vec_memory;

typedef struct sl_vec_ops {
    const char *name; /* "cpu", "cuda:0" */
    bool on_host; /* vectors are memory like any other; else only these operations may touch them */
    size_t block; /* elements that an operation is best given at a time: what a cache holds, or any
                     number */
    int cuda_index; /* the CUDA device whose memory vectors are in, for the network's library; -1:
                       memory that the host's threads reach */
    /* count floats, zeroed, aligned; NULL when memory is short. Freed with `release`. */
    float *(*allocate)(size_t count);
    void (*release)(float *v);
    void (*memory)(sl_vec_memory *out); /* all 0 where nobody counts */
    /* Host memory that copies are fastest from and to, aligned to SL_VEC_ALIGNMENT; NULL when
     * memory is short. Freed with `release_host`. */
    void *(*allocate_host)(size_t bytes);
    void (*release_host)(void *memory);
    /* To a vector from host memory, which may be used again on return; and back, done on return. */
    void (*copy_in)(void *v, const void *host, size_t bytes);
    void (*copy_out)(void *host, const void *v, size_t bytes);
    /* The same as copy_in from memory of allocate_host, which must stay as it is until a copy out,
     * a reduction or `fence` returns. */
    void (*copy_in_later)(void *v, const void *host, size_t bytes);
    /* out = weights[0]*in[0] + weights[1]*in[1] + ... summed in that order, one pass; out may be
     * in[0]. k >= 1. */
    void (*combine)(float *out, const float *const *in, const float *weights, size_t k,
                    size_t count);
    /* x -= learning_rate * direction(x_decay, g, m); m (momentum buffer) may be NULL when momentum
     * is 0. x_decay is the vector that weight decay acts on (x itself, or the old model). */
    void (*sgd_step)(float *x, const float *x_decay, const float *g, float *m, const sl_sgd *sgd,
                     size_t count);
    void (*fill)(float *v, float value, size_t count);
    double (*norm2_squared)(const float *x, size_t count);
    double (*distance_squared)(const float *x, const float *y, size_t count);
    /* Waits until all is done that the calling thread has begun. 0, or SL_EDEVICE with the first
     * operation, of any thread, that failed. */
    int (*fence)(sl_error *error);
    const sl_flight_ops *flight;  /* NULL: operations are finished on return */
    const struct sl_coder *coder; /* compressors over these vectors (compress/coding.h); NULL where
                                     they are on the host */
    const struct sl_layer_backend
        *layers; /* layers over these vectors (learner/layer.h); NULL where they are on the host */
} sl_vec_ops;

/* SL_ENOMEM, after `allocate` or a compressor's opening got no memory: the sentence, then what was
 * asked for and how much there is. */
int sl_vec_no_memory(const sl_vec_ops *vec, sl_error *error, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* The CPU backend: the fastest kernels that this processor runs; all give the same bits. */
const sl_vec_ops *sl_vec_cpu(void);

#ifdef __cplusplus
}
#endif
#endif
