/* tensors.h - files that hold a model's parameters: safetensors, with names and shapes, and NumPy's
 * .npy, a plain vector.
 *
 * safetensors: 8 bytes, little-endian, say how long the header is; the header is JSON, {NAME:
 * {"dtype": "F32", "shape": [...], "data_offsets": [BEGIN, END]}, ...}, where offsets count from
 * its end; then come the numbers, float32, little-endian, C order. Written files hold the tensors
 * in the order in which they lie in the vector, so that the numbers are the vector.
 * https://github.com/huggingface/safetensors#format
 */
#ifndef STARLING_TENSORS_H
#define STARLING_TENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SL_TENSOR_AXES_MAX = 16, SL_NPY_HEAD_BYTES = 128 };

/* A range of a flat vector. The tensors of a model stand one behind the other, in this order. */
typedef struct sl_tensor {
    const char *name;                 /* UTF-8, unlike that of any other tensor of the model */
    size_t shape[SL_TENSOR_AXES_MAX]; /* (axes) */
    size_t axes;                      /* 0: one number */
} sl_tensor;

/* Numbers that it has: the product of its shape. */
SL_API size_t sl_tensor_size(const sl_tensor *tensor);

/* What stands before the numbers in a safetensors file: *bytes at *out, malloc'ed, a multiple of
 * 64. */
SL_API int sl_safetensors_head(char **out, size_t *bytes, const sl_tensor *tensors, size_t count,
                               sl_error *error);
/* The same of a .npy file of one axis, format version 1.0. */
SL_API void sl_npy_head(char out[SL_NPY_HEAD_BYTES], size_t dimension);

/* An array of NumPy's, in memory: integers, booleans, float32 or float64, of either byte order. */
typedef struct sl_npy {
    char kind;    /* NumPy's: 'b', 'i', 'u' or 'f' */
    size_t bytes; /* of a number */
    bool big_endian, fortran;
    size_t shape[SL_TENSOR_AXES_MAX], axes;
    size_t count;                 /* of its numbers, at least 1 */
    const unsigned char *numbers; /* (count) borrowed, of any alignment */
} sl_npy;
/* Do these bytes begin as a .npy file? */
SL_API bool sl_npy_is(const void *bytes, size_t size);
/* A whole .npy file, of format version 1 to 3, which *out borrows. SL_EFILE, without the file's
 * name. */
SL_API int sl_npy_parse(sl_npy *out, const void *bytes, size_t size, sl_error *error);
/* The number at `index` in C order, whatever the array's own is. */
SL_API double sl_npy_number(const sl_npy *array, size_t index);

/* Reads the model's tensors from a file of either format, into x (the sum of their sizes). SL_EFILE
 * names file and tensor, and both shapes where they differ: the file must hold these tensors and no
 * others, all float32. A .npy file holds them as one vector. On error x holds anything. */
SL_API int sl_tensors_load(float *x, const sl_tensor *tensors, size_t count, const char *path,
                           sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
