/* codec.h - compressors on the device. */
#ifndef SL_GPU_CODEC_H
#define SL_GPU_CODEC_H

#include "compress/coding.h"
#include "gpu/kernels.h"

const sl_coder *codec_table(void);

/* Without the memory. */
part_layout layout_of(const sl_coding *c);
bucket_layout buckets_of(const sl_coding *c);

/* Of sl_coder. */
void *decoder_open(const sl_coding *coding);
void decoder_close(void *decoder);
void decoder_add(const coding_run *runs, size_t count, float *acc);

#endif
