/* tensors.c - opens a file of parameters, and finds out which format it has; see
 * starling/tensors.h.
 */
#include "starling/tensors.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    sl_tensors_file file = {
        .where = path,
        .fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), /* a pipe is refused, not waited for */
    };
    if (file.fd < 0)
        return sl_fail(error, SL_EFILE, "%s: %s", path, strerror(errno));
    int result = 0;
    if (fstat(file.fd, &status) != 0 || !S_ISREG(status.st_mode))
        result = sl_fail(error, SL_EFILE, "%s: is not a regular file", path);
    file.bytes = result == 0 ? (uint64_t)status.st_size : 0;
    if (result == 0)
        result = sl_tensors_read(x, tensors, count, &file, error);
    close(file.fd);
    return result;
}
