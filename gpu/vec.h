/* vec.h - the device's table of vector operations. */
#ifndef SL_GPU_VEC_H
#define SL_GPU_VEC_H

#include "starling/vec.h"

/* Opens the device at the first call; a process uses one. NULL: text (DEVICE_TEXT_MAX) says why not. */
const sl_vec_ops *vec_open(int index, char *text);

#endif
