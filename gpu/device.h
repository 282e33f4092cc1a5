/* device.h - the operations of a device: memory, copies, launches, matrix products. cuda_*.c and
 * cublas.c implement them over the CUDA runtime of a toolkit, or of emulated/, on the host; vec.c,
 * codec.c and the layers use them.
 *
 * Each calling thread has a lane: a stream of operations (launches, copies, clearing), in the
 * order of its calls, and two streams for background copies, one in and one out. Only events, and
 * calls that wait on the host, order operations of different streams. The name of the first
 * operation that fails is kept until device_status returns it; operations after it have no useful
 * effect. */
#ifndef SL_DEVICE_H
#define SL_DEVICE_H

#include "gpu/kernels.h"
#include "gpu/layer_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DEVICE_TEXT_MAX = 256 };

typedef struct device_properties {
    char name[DEVICE_TEXT_MAX];
    int major, minor; /* compute capability */
    size_t bytes;     /* bytes of memory */
    bool emulated;
} device_properties;

/* The number of devices; 0 with a reason in text if none can be used. */
int device_count(char text[DEVICE_TEXT_MAX]);
/* False if this one cannot be used; text says why. */
bool device_describe(int index, device_properties *out, char text[DEVICE_TEXT_MAX]);
bool device_open(int index, char text[DEVICE_TEXT_MAX]);
/* Does not wait. Returns 0, or -1 with the name of the first operation that is known to have
 * failed. */
int device_status(char text[DEVICE_TEXT_MAX]);
/* The same after everything that the calling thread has begun is done. */
int device_fence(char text[DEVICE_TEXT_MAX]);

/* May four floats be moved at once there (16-byte alignment)? */
static inline int device_is_aligned(const void *memory) {
    return (uintptr_t)memory % sizeof(four) == 0;
}

/* On the emulated device: ends the program if this is not device memory. On a GPU: does nothing. */
void device_expect(const void *memory);
void *device_allocate(size_t bytes);      /* zeroed, in the thread's order; NULL: out of memory */
void device_release(void *memory);        /* only while no lane has work */
size_t device_free_bytes(void);           /* usable by any thread */
size_t device_cache_bytes(void);          /* of the second-level cache */
void *device_allocate_host(size_t bytes); /* page-locked, aligned to 64 */
void device_release_host(void *memory);
void device_clear(void *memory, size_t bytes);
/* `host` may be reused on return. */
void device_copy_in(void *to, const void *host, size_t bytes);
/* `host` is page-locked. It must not change before a copy out or device_fence returns. */
void device_copy_in_later(void *to, const void *host, size_t bytes);
/* Memory that other processes of this host map, by the descriptor; *descriptor is the caller's to
 * close. NULL: text says why. Closing waits for the calling thread's operations. */
typedef struct device_share device_share;
device_share *device_share_open(size_t bytes, int *descriptor, char text[DEVICE_TEXT_MAX]);
device_share *device_share_map(int descriptor, size_t bytes, char text[DEVICE_TEXT_MAX]);
void *device_share_memory(const device_share *share);
void device_share_close(device_share *share);
/* On the device; the two do not overlap. */
void device_copy(void *to, const void *from, size_t bytes);
/* Synchronous. */
void device_copy_out(void *host, const void *from, size_t bytes);

/* The same as sl_async_ops.give_way. */
void device_give_way(void);

/* Events: see sl_async_ops in starling/vec.h. */
sl_vec_event *device_event_open(void);
void device_event_close(sl_vec_event *event);
void device_event_record(sl_vec_event *event);     /* after the thread's operations so far */
void device_event_record_out(sl_vec_event *event); /* after its background copies out so far */
void device_event_follow(sl_vec_event *event);
void device_event_wait(sl_vec_event *event);
bool device_event_passed(sl_vec_event *event, int notify_fd);

/* Background copies; the host's memory is page-locked. Copies out start after the thread's
 * operations before the latest device_order_out. Copies in start after `after`, and set `copied`
 * when they are done. */
void device_order_out(void);
void device_begin_copy_out(void *host, const void *from, size_t bytes);
void device_begin_copy(void *to, const void *from, size_t bytes); /* on the device, as out */
void device_begin_copies_in(const sl_vec_rows *copies, size_t count, sl_vec_event *after,
                            sl_vec_event *copied);

/* The thread's operations, noted and repeated: see sl_async_ops. */
bool device_graph_begin(void);
sl_vec_graph *device_graph_end(void);
void device_graph_run(sl_vec_graph *graph);
void device_graph_close(sl_vec_graph *graph);

/* Streams and memory of others: see sl_guest_ops in starling/vec.h. */
bool device_guest_owns(const void *memory, char *text, size_t text_size);
bool device_guest_is_captured(void *stream);
void device_guest_record(sl_vec_event *event, void *stream);
void device_guest_follow(sl_vec_event *event, void *stream);
void device_guest_enter(void *stream);
void device_guest_leave(void);

/* `count` products c = scale a b (or c += scale a b) of row-major matrices a (m, k), b (k, n) and
 * c (m, n). Shapes alone decide the order of each sum. Not thread-safe. device_open_products comes
 * first, once: space is device_product_bytes() of device memory, kept for ever. False: text says
 * why. */
size_t device_product_bytes(void);
bool device_open_products(void *space, char text[DEVICE_TEXT_MAX]);
typedef struct device_matrix {
    const float *at;
    size_t line; /* row stride in floats */
    size_t step; /* stride between products in floats */
    bool turned; /* stored transposed */
} device_matrix;
typedef struct device_product {
    device_matrix a, b;
    float *c;
    size_t c_line, c_step;
    uint32_t m, n, k, count;
    float scale;
    bool add;
} device_product;
void device_multiply(const device_product *product);

#define DECLARE_LAUNCH(name) void launch_##name(const name##_args *arguments, size_t threads);
SL_KERNELS(DECLARE_LAUNCH)
SL_LAYER_KERNELS(DECLARE_LAUNCH)
#undef DECLARE_LAUNCH
#define DECLARE_LAUNCH(name) void launch_##name(const name##_args *arguments, uint32_t blocks);
SL_BLOCK_KERNELS(DECLARE_LAUNCH)
SL_LAYER_BLOCK_KERNELS(DECLARE_LAUNCH)
#undef DECLARE_LAUNCH

#ifdef __cplusplus
}
#endif
#endif
