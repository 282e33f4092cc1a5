/* regular.c - see regular.h. */
#include "base/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "starling/text.h"

static int refuse_kind(const char *path, mode_t mode, sl_error *error) {
    if (S_ISFIFO(mode))
        return sl_fail(error, SL_EFILE,
                       "%s: is not a regular file but a pipe; write what comes from it to a file, "
                       "and name that",
                       path);
    if (S_ISDIR(mode))
        return sl_fail(error, SL_EFILE, "%s: is a folder, not a regular file; name a file here",
                       path);
    return sl_fail(error, SL_EFILE, "%s: is not a regular file but a %s; name a file here", path,
                   S_ISSOCK(mode) ? "socket" : "device");
}

/* Keeps errno. */
static int refuse(const char *path, int flags, sl_error *error) {
    const int why = errno;
    const bool is_link = (flags & O_NOFOLLOW) != 0 && why == ELOOP;
    sl_fail(error, SL_EFILE, "%s: %s", path,
            is_link ? "is a symbolic link; name the file itself" : strerror(why));
    errno = why;
    return SL_EFILE;
}

int sl_regular_open(const char *path, int flags, struct stat *status, sl_error *error) {
    /* What is something else is not even opened, unless it has just become that. */
    if (stat(path, status) != 0)
        return refuse(path, flags, error);
    if (S_ISREG(status->st_mode)) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
        if (fd < 0)
            return refuse(path, flags, error);
        if (fstat(fd, status) == 0 && S_ISREG(status->st_mode))
            return fd;
        close(fd);
    }
    refuse_kind(path, status->st_mode, error);
    errno = EINVAL;
    return SL_EFILE;
}

int sl_file_open(const char *path, sl_error *error) {
    struct stat status;
    return sl_regular_open(path, 0, &status, error);
}
