/* device.h - where vectors live: on the CPU, or on a GPU through a plug-in that is opened at run
 * time.
 *
 * `device` in an experiment: "cpu", "cuda:N", or "auto" (the first GPU that can be used, else the
 * CPU). The program itself is linked to no GPU library. The plug-in is the file that the
 * environment's STARLING_PLUGIN names, or libstarling-cuda.so: in gpu/ or lib/starling/ beside the
 * program's own folder, or where it was installed. Mixing and compressing give the CPU's bits on
 * any device; gradients of networks differ from the CPU's by rounding.
 */
#ifndef STARLING_DEVICE_H
#define STARLING_DEVICE_H

#include "starling/api.h"
#include "starling/error.h"
#include "starling/vec.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_DEVICE_TEXT_MAX 512

typedef struct sl_device_info {
    char name[SL_DEVICE_TEXT_MAX]; /* the maker's */
    int index;                     /* "cuda:<index>" */
    int major, minor;              /* compute capability */
    size_t bytes;                  /* of memory */
    bool emulated;                 /* no GPU: the plug-in that tests use */
    bool usable;
    char reason[SL_DEVICE_TEXT_MAX]; /* why not */
} sl_device_info;

/* Fills up to `max`, returns how many there are; where there is none, `reason` says why, in one
 * line. */
SL_API size_t sl_devices_list(sl_device_info *out, size_t max, char reason[SL_DEVICE_TEXT_MAX]);

/* May `device` say this? SL_EINVAL with what is allowed. */
SL_API int sl_device_check_name(const char *name, sl_error *error);
/* Can it be had? Opens nothing. SL_EDEVICE: why not. `note`: what "auto" stands for, and why; else
 * empty. */
SL_API int sl_device_find(const char *name, char note[SL_DEVICE_TEXT_MAX], sl_error *error);
/* The GPU that `name` stands for here; false: it stands for the CPU, or cannot be had. Opens
 * nothing. */
SL_API bool sl_device_describe(const char *name, sl_device_info *out);
/* Its vector operations, which stay valid until the program ends. A program opens one GPU.
 * memory_limit: bytes that this program may take there; 0: as many as there are; the latest call's
 * holds. */
SL_API int sl_device_open(const sl_vec_ops **out, const char *name, size_t memory_limit,
                          sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
