/* vec.h - the device's table of vector operations. */
#ifndef SL_GPU_VEC_H
#define SL_GPU_VEC_H

#include "starling/vec.h"

/* Opens the device at the first call; a process uses one device. memory_limit: bytes of device
 * memory; 0: no limit. NULL: text (DEVICE_TEXT_MAX) says why not. */
const sl_vec_ops *vec_open(int index, size_t memory_limit, char *text);
/* Returns SL_EDEVICE, with the device's name before the text. */
int vec_fail(sl_error *error, const char *text);

#endif
