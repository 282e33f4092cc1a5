/* device.h - where vectors are kept: on the CPU, or on a GPU through a plug-in.
 *
 * `device` in an experiment is "cpu", "cuda:N", "cuda": a host's agents take its usable GPUs in
 * turn, or "auto": the first usable GPU, else the CPU. The program links to no GPU library; it
 * opens the plug-in at run time. The plug-in is the file that STARLING_PLUGIN (an environment
 * variable) names, else libstarling-cuda.so in the build's gpu/ or in the installed lib/starling/.
 * Mixing and compressing give the CPU's bits on any device; gradients of networks differ from the
 * CPU's by rounding.
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
    char name[SL_DEVICE_TEXT_MAX]; /* of the product */
    int index;                     /* "cuda:<index>" */
    int major, minor;              /* compute capability */
    size_t bytes;                  /* of memory */
    bool emulated;                 /* no GPU: the plug-in that tests use */
    bool usable;
    char reason[SL_DEVICE_TEXT_MAX]; /* why not */
} sl_device_info;

/* Fills up to `max` rows and returns how many GPUs there are; 0: `reason` says why, in one line. */
SL_API size_t sl_devices_list(sl_device_info *out, size_t max, char reason[SL_DEVICE_TEXT_MAX]);

/* Is this a name of a device? SL_EINVAL says what is allowed. */
SL_API int sl_device_check_name(const char *name, sl_error *error);
/* Can the device be used? SL_EDEVICE says why not. `note` says what "auto" and "cuda" stand for,
 * and why; it is empty for other names. Opens nothing. */
SL_API int sl_device_find(const char *name, char note[SL_DEVICE_TEXT_MAX], sl_error *error);
/* The GPU that `name` stands for on this host. False: it stands for the CPU, or cannot be used.
 * Opens nothing. */
SL_API bool sl_device_describe(const char *name, sl_device_info *out);
enum { SL_DEVICE_NAME_MAX = 16 };
/* What the `place`-th agent of this host, counted from 0, opens: of "cuda" the GPU whose turn it
 * is, of any other name the name itself. */
SL_API void sl_device_place(char out[SL_DEVICE_NAME_MAX], const char *name, uint32_t place);
/* Opens the device, of "cuda" the first: its vector operations, valid until the program ends. A
 * program opens one GPU. memory_limit: bytes that the program may take there, 0: no limit; the
 * latest call's holds. */
SL_API int sl_device_open(const sl_vec_ops **out, const char *name, size_t memory_limit,
                          sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
