/* vec.h - the device's table of vector operations. */
#ifndef SL_GPU_VEC_H
#define SL_GPU_VEC_H

#include "starling/vec.h"

/* Opens the device at the first call; a process uses one. memory_limit: bytes that it may take
 * there; 0: no bound. NULL: text (DEVICE_TEXT_MAX) says why not. */
const sl_vec_ops *vec_open(int index, size_t memory_limit, char *text);

#endif
