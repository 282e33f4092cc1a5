/* file.c - see file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_open(char **out, FILE *file, const char *path, size_t bytes_max, sl_error *error) {
    struct stat status;
    if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode))
        return sl_fail(error, SL_EFILE, "%s: is not a regular file", path);
    if ((size_t)status.st_size > bytes_max)
        return sl_fail(error, SL_EFILE, "%s: is %lld bytes long; at most %zu are allowed", path,
                       (long long)status.st_size, bytes_max);
    size_t bytes = (size_t)status.st_size;
    char *text = malloc(bytes + 1);
    if (text == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory for %zu bytes", path, bytes);
    if (fread(text, 1, bytes, file) != bytes || memchr(text, '\0', bytes) != NULL) {
        free(text);
        return sl_fail(error, SL_EFILE, "%s: could not be read as text", path);
    }
    text[bytes] = '\0';
    *out = text;
    return 0;
}

int sl_file_read(char **out, const char *path, size_t bytes_max, sl_error *error) {
    int descriptor = open(path, O_RDONLY | O_NONBLOCK |
                                    O_CLOEXEC); /* refuses a named pipe instead of waiting for it */
    if (descriptor < 0)
        return sl_fail(error, SL_EFILE, "%s: %s", path, strerror(errno));
    FILE *file = fdopen(descriptor, "r");
    if (file == NULL) {
        close(descriptor);
        return sl_fail(error, SL_ENOMEM, "%s: %s", path, strerror(errno));
    }
    int result = read_open(out, file, path, bytes_max, error);
    fclose(file);
    return result;
}
