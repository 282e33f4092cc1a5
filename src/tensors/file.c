/* file.c - see file.h. */
#include "tensors/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

size_t sl_tensor_size(const sl_tensor *tensor) {
    size_t size = 1;
    for (size_t i = 0; i < tensor->axes; i++)
        size *= tensor->shape[i];
    return size;
}

int sl_tensors_read_at(const sl_tensors_file *file, uint64_t at, void *out, size_t bytes,
                       sl_error *error) {
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(file->fd, (char *)out + done, bytes - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return sl_fail(error, SL_EFILE, "%s: cannot be read: %s", file->where,
                           got < 0 ? strerror(errno) : "it became shorter");
        done += (size_t)got;
    }
    return 0;
}
