/* device.h - what a device offers to vec.c and codec.c: memory, copies, launches; implemented by cuda.cu, and by emulated.c on the host.
 *
 * Everything takes effect in the order of the calls. Calls may come from the agent's loop and from its worker. An operation that fails is
 * remembered, with its name, until device_status asks; what follows it does nothing useful.
 */
#ifndef SL_DEVICE_H
#define SL_DEVICE_H

#include "gpu/kernels.h"

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
/* Waits until everything is done. 0, or -1 with the first operation that failed. */
int device_status(char text[DEVICE_TEXT_MAX]);

/* Nothing, but where it is emulated: ends the program if this is no memory of the device. */
void device_expect(const void *memory);
void *device_allocate(size_t bytes); /* zeroed; NULL: not enough */
void device_release(void *memory);
void *device_allocate_host(size_t bytes); /* page-locked, aligned to 64 */
void device_release_host(void *memory);
void device_clear(void *memory, size_t bytes);
/* `host` may be used again on return. */
void device_copy_in(void *to, const void *host, size_t bytes);
/* Done on return. */
void device_copy_out(void *host, const void *from, size_t bytes);

/* Copies out in the background; `host` is page-locked. What is copied must not change before a mark that was set after this call is waited for. */
void device_begin_copy_out(void *host, const void *from, size_t bytes);
typedef struct device_mark device_mark;
device_mark *device_mark_open(void);
void device_mark_close(device_mark *mark);
void device_mark_set(device_mark *mark); /* behind the background copies so far */
void device_mark_wait(device_mark *mark);

#define DECLARE_LAUNCH(name) void launch_##name(const name##_args *arguments, size_t threads);
SL_ALL_KERNELS(DECLARE_LAUNCH)
#undef DECLARE_LAUNCH

#ifdef __cplusplus
}
#endif
#endif
