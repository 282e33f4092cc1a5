/* file.h - what the readers of the two formats share: a file, read where it is asked. */
#ifndef SL_TENSORS_FILE_H
#define SL_TENSORS_FILE_H

#include <stdint.h>

#include "starling/tensors.h"

typedef struct sl_tensors_file {
    int fd;
    uint64_t bytes;
    const char *where; /* its name, for errors */
} sl_tensors_file;

enum { SL_TENSORS_TEXT_MAX = 256 };

int sl_tensors_read_at(const sl_tensors_file *file, uint64_t at, void *out, size_t bytes,
                       sl_error *error);
/* As sl_tensors_load, of an open file. */
int sl_tensors_read(float *x, const sl_tensor *tensors, size_t count, const sl_tensors_file *file,
                    sl_error *error);

int sl_safetensors_read(float *x, const sl_tensor *tensors, size_t count,
                        const sl_tensors_file *file, sl_error *error);
int sl_npy_read(float *x, size_t dimension, const sl_tensors_file *file, sl_error *error);

#endif
