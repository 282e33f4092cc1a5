/* device.h - what a device offers to vec.c, codec.c and the layers: memory, copies, launches,
 * matrix products; implemented by cuda.cu, and by emulated.c on the host.
 *
 * Every calling thread has a lane of its own: operations (launches, copies, clearing), which take
 * effect in the order of its calls, and beside them copies in the background, one way in and one
 * way out. Between threads, and between background copies and operations, only events make an
 * order, and what waits on the host. An operation that fails is remembered, with its name, until
 * device_status asks; what follows it does nothing useful.
 */
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
    size_t bytes;     /* of memory */
    bool emulated;
} device_properties;

/* How many there are; 0 with a reason in text where none can be used. */
int device_count(char text[DEVICE_TEXT_MAX]);
/* False: text says why this one cannot be used. */
bool device_describe(int index, device_properties *out, char text[DEVICE_TEXT_MAX]);
bool device_open(int index, char text[DEVICE_TEXT_MAX]);
/* Waits for nothing. 0, or -1 with the first operation that is known to have failed. */
int device_status(char text[DEVICE_TEXT_MAX]);
/* The same once all is done that the calling thread has begun. */
int device_fence(char text[DEVICE_TEXT_MAX]);

/* Do `four` floats at a time lie right there? */
static inline int device_is_aligned(const void *memory) {
    return (uintptr_t)memory % sizeof(four) == 0;
}

/* Nothing, but where it is emulated: ends the program if this is no memory of the device. */
void device_expect(const void *memory);
void *device_allocate(
    size_t bytes); /* zeroed, in the order of the thread's operations; NULL: not enough */
void device_release(void *memory);        /* when nothing is under way on any lane */
size_t device_free_bytes(void);           /* for anybody */
void *device_allocate_host(size_t bytes); /* page-locked, aligned to 64 */
void device_release_host(void *memory);
void device_clear(void *memory, size_t bytes);
/* `host` may be used again on return. */
void device_copy_in(void *to, const void *host, size_t bytes);
/* `host` is page-locked, and stays as it is until a copy out or device_fence returns. */
void device_copy_in_later(void *to, const void *host, size_t bytes);
/* Done on return. */
void device_copy_out(void *host, const void *from, size_t bytes);

/* Events: see sl_async_ops in starling/vec.h. */
sl_vec_event *device_event_open(void);
void device_event_close(sl_vec_event *event);
void device_event_record(sl_vec_event *event);     /* behind the thread's operations so far */
void device_event_record_out(sl_vec_event *event); /* behind its background copies out so far */
void device_event_follow(sl_vec_event *event);
void device_event_wait(sl_vec_event *event);
bool device_event_passed(sl_vec_event *event, int notify_fd);

/* Copies in the background; `host` is page-locked. Out: behind the thread's operations so far. In:
 * behind `after`; `copied` is set behind it. */
void device_begin_copy_out(void *host, const void *from, size_t bytes);
void device_begin_copy_in(void *to, const void *host, size_t bytes, sl_vec_event *after,
                          sl_vec_event *copied);

/* `count` products c = scale a b, or c += scale a b, of matrices that lie row by row: a (m, k), b
 * (k, n), c (m, n). The order of each sum depends on the shapes alone. Calls come from one thread
 * at a time, once there is memory to work in. */
size_t device_product_bytes(void);
void device_place_products(void *memory); /* device_product_bytes() of the device's, for good */
typedef struct device_matrix {
    const float *at;
    size_t line; /* numbers from one row to the next */
    size_t step; /* from one product's matrix to the next one's */
    bool turned; /* what lies there is the transpose */
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
SL_ALL_KERNELS(DECLARE_LAUNCH)
SL_LAYER_KERNELS(DECLARE_LAUNCH)
#undef DECLARE_LAUNCH

#ifdef __cplusplus
}
#endif
#endif
