/* failing_disk.c - LD_PRELOAD: a disk that fails at the n-th change of files below a folder.
 *
 * From the environment: STARLING_DISK, a part of the paths that it is about, or STARLING_DISK_FILE,
 * a file that holds it while it is there; STARLING_DISK_CALL,
 * what fails: open, write, sync, rename or any; STARLING_DISK_AT, its number from 1 on, and with a
 * + behind it all later ones too; STARLING_DISK_WHY, an errno, or 0: a write takes half of its
 * bytes.
 * The C library's own buffered files do not come here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };
static atomic_long calls;

static const char *setting(const char *name) {
    const char *text = getenv(name);
    return text != NULL ? text : "";
}

/* What the file holds at this moment. */
static void read_part(char *part, size_t bytes) {
    const long fd = syscall(SYS_openat, AT_FDCWD, setting("STARLING_DISK_FILE"), O_RDONLY, 0);
    const long got = fd >= 0 ? syscall(SYS_read, fd, part, bytes - 1) : 0;
    part[got > 0 ? got : 0] = '\0';
    if (fd >= 0)
        syscall(SYS_close, fd);
}

/* Does this call fail? */
static int fails(const char *call, const char *path) {
    const char *wanted = setting("STARLING_DISK_CALL");
    char part[64];
    snprintf(part, sizeof part, "%s", setting("STARLING_DISK"));
    if (*setting("STARLING_DISK_FILE") != '\0')
        read_part(part, sizeof part);
    if (*part == '\0' || strstr(path, part) == NULL ||
        (strcmp(wanted, call) != 0 && strcmp(wanted, "any") != 0))
        return 0;
    char *end;
    const long number = atomic_fetch_add(&calls, 1) + 1;
    const long at = strtol(setting("STARLING_DISK_AT"), &end, 10);
    errno = atoi(setting("STARLING_DISK_WHY"));
    return number == at || (*end == '+' && number > at);
}

static int fails_at(const char *call, int fd) {
    char link[64], path[PATH_BYTES];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const int reason = errno;
    const ssize_t bytes = readlink(link, path, sizeof path - 1);
    errno = reason;
    path[bytes > 0 ? bytes : 0] = '\0';
    return fails(call, path);
}

ssize_t write(int fd, const void *data, size_t bytes) {
    const int failed = fails_at("write", fd);
    if (failed && errno != 0)
        return -1;
    return syscall(SYS_write, fd, data, failed && bytes > 1 ? bytes / 2 : bytes);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) {
    const int failed = fails_at("write", fd);
    if (failed && errno != 0)
        return -1;
    return syscall(SYS_pwrite64, fd, data, failed && bytes > 1 ? bytes / 2 : bytes, offset);
}

int fsync(int fd) {
    return fails_at("sync", fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    return fails_at("sync", fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int syncfs(int fd) {
    return fails_at("sync", fd) ? -1 : (int)syscall(SYS_syncfs, fd);
}

int rename(const char *from, const char *to) {
    return fails("rename", to) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const int mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;
    va_end(more);
    if ((flags & O_ACCMODE) != O_RDONLY && fails("open", path))
        return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
