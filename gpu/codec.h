/* codec.h - compressors on the device. */
#ifndef SL_GPU_CODEC_H
#define SL_GPU_CODEC_H

#include "compress/coding.h"

const sl_coder *codec_table(void);

#endif
