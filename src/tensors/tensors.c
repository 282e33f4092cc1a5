/* tensors.c - opens a file of parameters, and finds out which format it has; see
 * starling/tensors.h.
 */
#include "starling/tensors.h"

#include <string.h>
#include <unistd.h>

#include "base/regular.h"
#include "tensors/file.h"

int sl_tensors_read(float *x, const sl_tensor *tensors, size_t count, const sl_tensors_file *file,
                    sl_error *error) {
    char magic[8];
    if (file->bytes < sizeof magic)
        return sl_fail(error, SL_EFILE,
                       "%s: has %llu bytes, and is neither a safetensors nor a .npy file",
                       file->where, (unsigned long long)file->bytes);
    int result = sl_tensors_read_at(file, 0, magic, sizeof magic, error);
    if (result != 0)
        return result;
    if (memcmp(magic, "\x93NUMPY", 6) != 0)
        return sl_safetensors_read(x, tensors, count, file, error);
    size_t dimension = 0;
    for (size_t i = 0; i < count; i++)
        dimension += sl_tensor_size(&tensors[i]);
    return sl_npy_read(x, dimension, file, error);
}

int sl_tensors_load(float *x, const sl_tensor *tensors, size_t count, const char *path,
                    sl_error *error) {
    struct stat status;
    sl_tensors_file file = {.where = path, .fd = sl_regular_open(path, 0, &status, error)};
    if (file.fd < 0)
        return file.fd;
    file.bytes = (uint64_t)status.st_size;
    const int result = sl_tensors_read(x, tensors, count, &file, error);
    close(file.fd);
    return result;
}
