/* vec.h - operations on flat float vectors: the backend table.
 *
 * Every vector of training (parameters, gradient, momentum, algorithm state) is handled through
 * one of these tables. A GPU backend is another table.
 *
 * The CPU's operations are complete on return. A device runs the operations of one thread in the
 * order of the calls; operations from different threads are unordered. Use an event (sl_async_ops)
 * or `fence` to order them. A device's operations are complete once `fence`, a copy out or a
 * reduction has returned, or an event recorded after them has passed.
 *
 * Element-wise arithmetic is in float: multiply, then add, each rounded (never fused). Reductions
 * run in double, in one fixed order. So every instruction set gives the same bits.
 */
#ifndef STARLING_VEC_H
#define STARLING_VEC_H

#include <stdbool.h>
#include <stddef.h>

#include "starling/api.h"
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

/* One step of Adam. m_new, v_new: 1 - beta, rounded once. m_scale, v_scale: what removes the bias
 * of the moments, 1/(1 - beta^t). */
typedef struct sl_adam {
    float beta1, beta2;
    float m_new, v_new;
    float m_scale, v_scale;
    float epsilon, weight_decay;
} sl_adam;

/* A point in the order of a device's operations, as CUDA's events are. */
typedef struct sl_vec_event sl_vec_event;
typedef struct sl_vec_graph sl_vec_graph; /* operations that are repeated */

/* `rows` pieces of so many bytes; each begins `step` bytes behind the one before it. The last bytes
 * of all rows are in one allocation with the first. */
typedef struct sl_vec_rows {
    void *to;
    const void *from;
    size_t bytes, rows;
    size_t to_step, from_step; /* not read if there is one row */
} sl_vec_rows;

/* Order and completion of asynchronous operations. One thread at a time uses an event. An event
 * that was never recorded has passed. */
typedef struct sl_async_ops {
    sl_vec_event *(*event_open)(void);        /* NULL: out of memory */
    void (*event_close)(sl_vec_event *event); /* waits until it has passed */
    /* Records the calling thread's operations so far. An event may be recorded again. */
    void (*event_record)(sl_vec_event *event);
    /* Orders the calling thread's later operations after the event. Never blocks. */
    void (*event_follow)(sl_vec_event *event);
    /* Blocks until the event has passed. */
    void (*event_wait)(sl_vec_event *event);
    /* Has the event passed? Never blocks. If it is pending, 1 is added to notify_fd (an eventfd;
     * 0: none) when it passes, unless an operation has failed: poll `status` for that. notify_fd
     * must stay open until the event has been closed. */
    bool (*event_passed)(sl_vec_event *event, int notify_fd);
    /* Copies to vectors in the background: starts after `after`, and records `copied` at its end.
     * Until then what is copied, from memory of allocate_host, must not change, and its copy must
     * not be read. */
    void (*begin_copies_in)(const sl_vec_rows *copies, size_t count, sl_vec_event *after,
                            sl_vec_event *copied);
    /* out[i] = the square of the distance of x from y, or if y is NULL from 0, over elements
     * [i each, (i + 1) each) of `count`: distance_squared's bits, in memory of allocate. `work` is
     * memory of allocate, too: the floats that distance_floats says, of as many sums as there are,
     * or more. Never blocks. */
    void (*begin_distances)(double *out, float *work, const float *x, const float *y, size_t count,
                            size_t each);
    size_t (*distance_floats)(size_t count, size_t sums);
    /* 0, or SL_EDEVICE with the first failed operation so far. Never blocks. */
    int (*status)(sl_error *error);
    /* From here to graph_end the calling thread's operations, which may neither wait nor allocate,
     * are noted, and not done. False: they cannot be noted. */
    bool (*graph_begin)(void);
    /* What was noted; NULL: it cannot be repeated. */
    sl_vec_graph *(*graph_end)(void);
    /* Does it once more, in the thread's order. */
    void (*graph_run)(sl_vec_graph *graph);
    void (*graph_close)(sl_vec_graph *graph); /* waits for the calling thread's operations */
    /* Before a thread's first operation: its operations, long ones, give way to other threads'. */
    void (*give_way)(void);
} sl_async_ops;

/* Streams and memory of others in this process, such as a caller's: `stream` is a cudaStream_t,
 * NULL the device's default one. The calling thread keeps its current device, but between enter and
 * leave. */
typedef struct sl_guest_ops {
    /* Is it memory of this device? If not, text (text_size) says where it is. */
    bool (*owns)(const void *memory, char *text, size_t text_size);
    /* Is the stream's work noted at the time, and not done? Then the rest may not be called. */
    bool (*is_captured)(void *stream);
    /* Records the stream's work so far. */
    void (*record)(sl_vec_event *event, void *stream);
    /* Orders the stream's later work after the event. Never blocks. */
    void (*follow)(sl_vec_event *event, void *stream);
    /* From here to leave the calling thread's operations are the stream's work. Between the two
     * the thread's current device is this one. */
    void (*enter)(void *stream);
    void (*leave)(void);
} sl_guest_ops;

/* Memory of the device that other processes of this host map. It is there until its owner and all
 * who have mapped it are gone. */
enum { SL_SHARE_WHY_MAX = 192 };
typedef struct sl_share_ops {
    /* *descriptor is for those others, and the caller's to close. NULL: why. */
    void *(*open)(size_t bytes, int *descriptor, char why[SL_SHARE_WHY_MAX]);
    /* What another process has opened, to be read. NULL: why. */
    const void *(*map)(int descriptor, size_t bytes, char why[SL_SHARE_WHY_MAX]);
    /* Either. Waits for the calling thread's operations; none else may use it. */
    void (*close)(const void *memory);
} sl_share_ops;

/* The memory that holds vectors, in bytes. All 0 where nothing is counted. */
typedef struct sl_vec_memory {
    size_t free;    /* on the device, for all programs */
    size_t limit;   /* that this program may take; 0: no limit */
    size_t taken;   /* by this program */
    size_t refused; /* the latest request that was refused; 0: none */
} sl_vec_memory;

typedef struct sl_vec_ops {
    const char *name; /* "cpu", "cuda:0" */
    bool on_host;     /* vectors are host memory; else only these operations may touch them */
    size_t block;     /* elements per operation that keep the working set in cache */
    int cuda_index;   /* CUDA device that holds the vectors; -1: host memory */
    /* `count` zeroed floats, aligned to SL_VEC_ALIGNMENT; NULL: out of memory. Free with
     * `release`. */
    float *(*allocate)(size_t count);
    void (*release)(float *v);
    void (*memory)(sl_vec_memory *out);
    /* Host memory that copies fastest, aligned to SL_VEC_ALIGNMENT; NULL: out of memory. Free with
     * `release_host`. */
    void *(*allocate_host)(size_t bytes);
    void (*release_host)(void *memory);
    /* Host memory to a vector; `host` may change after the call. */
    void (*copy_in)(void *v, const void *host, size_t bytes);
    /* A vector to host memory; complete on return. */
    void (*copy_out)(void *host, const void *v, size_t bytes);
    /* As copy_in, from memory of allocate_host, which must not change until a copy out, a reduction
     * or `fence` has returned. */
    void (*copy_in_later)(void *v, const void *host, size_t bytes);
    /* A vector to another one; the two do not overlap. */
    void (*copy)(void *to, const void *from, size_t bytes);
    /* out = weights[0] * in[0] + weights[1] * in[1] + ..., added in this order, in one pass. out
     * may be in[0]. k >= 1. */
    void (*combine)(float *out, const float *const *in, const float *weights, size_t k,
                    size_t count);
    /* x -= learning_rate * direction(x_decay, g, m). Weight decay acts on x_decay: x itself, or the
     * model before mixing. m, the momentum buffer, may be NULL when momentum is 0. */
    void (*sgd_step)(float *x, const float *x_decay, const float *g, float *m, const sl_sgd *sgd,
                     size_t count);
    /* m = beta1*m + m_new*g; v = beta2*v + v_new*g*g; g becomes
     * m_scale*m / (sqrt(v_scale*v) + epsilon) + weight_decay*x. Where v is 0, m becomes 0. */
    void (*adam_direction)(float *g, const float *x, float *m, float *v, const sl_adam *adam,
                           size_t count);
    void (*fill)(float *v, float value, size_t count);
    /* v[i] stays where kept[i] is not 0, and becomes 0 where it is. */
    void (*keep_where)(float *v, const float *kept, size_t count);
    double (*norm2_squared)(const float *x, size_t count);
    double (*distance_squared)(const float *x, const float *y, size_t count);
    /* Blocks until the calling thread's operations are complete. 0, or SL_EDEVICE with the first
     * operation, of any thread, that failed. */
    int (*fence)(sl_error *error);
    const sl_async_ops *async;    /* NULL: operations are complete on return */
    const sl_guest_ops *guest;    /* NULL: there are no streams */
    const sl_share_ops *share;    /* NULL: vectors are on the host */
    const struct sl_coder *coder; /* compressors on the device (compress/coding.h), or NULL */
    const struct sl_layer_backend *layers; /* layers on the device (learner/layer.h), or NULL */
} sl_vec_ops;

/* After a failed allocation. The error is the formatted text, then how much was requested and how
 * much there is: SL_ENOMEM; or SL_EDEVICE, and what failed, if the device has failed before. */
SL_API int sl_vec_no_memory(const sl_vec_ops *vec, sl_error *error, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* The CPU backend, with the fastest kernels that this processor runs. All give the same bits. */
SL_API const sl_vec_ops *sl_vec_cpu(void);

#ifdef __cplusplus
}
#endif
#endif
