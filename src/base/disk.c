/* disk.c - the host's file system; see disk.h. */
#include "base/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/regular.h"

enum { WRITE_BYTES = 8 << 20 }; /* at a time, so that the disk has work while more is copied */

static int opened(int *handle, int fd) {
    if (fd < 0)
        return errno;
    *handle = fd;
    return 0;
}

int sl_disk_create(int *handle, const char *path) {
    return opened(handle, open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666));
}

int sl_disk_append(int handle, const void *data, size_t bytes) {
    const off_t from = lseek(handle, 0, SEEK_CUR);
    for (size_t done = 0; done < bytes;) {
        const size_t rest = bytes - done;
        ssize_t written =
            write(handle, (const char *)data + done, rest < WRITE_BYTES ? rest : WRITE_BYTES);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        /* The disk begins at once, not with the sync: that is then short. Failures are its own. */
        sync_file_range(handle, from + (off_t)done, written, SYNC_FILE_RANGE_WRITE);
        done += (size_t)written;
    }
    return 0;
}

int sl_disk_sync(int handle) {
    return fsync(handle) == 0 ? 0 : errno;
}

int sl_disk_open(int *handle, uint64_t *bytes, const char *path) {
    struct stat status;
    const int fd = sl_regular_open(path, 0, &status, NULL);
    if (fd < 0)
        return errno;
    *handle = fd;
    *bytes = (uint64_t)status.st_size;
    return 0;
}

int sl_disk_read(int handle, uint64_t at, void *out, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(handle, (char *)out + done, bytes - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : ENODATA;
        done += (size_t)got;
    }
    return 0;
}

int sl_disk_close(int handle) {
    return close(handle) == 0 ? 0 : errno;
}

int sl_disk_rename(const char *from, const char *to) {
    return rename(from, to) == 0 ? 0 : errno;
}

int sl_disk_remove(const char *path) {
    return unlink(path) == 0 ? 0 : errno;
}

int sl_disk_make_folder(const char *path) {
    return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : errno;
}

int sl_disk_sync_folder(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int result = fsync(fd) == 0 || errno == EINVAL ? 0 : errno; /* not every file system can */
    close(fd);
    return result;
}

int sl_disk_list(const char *folder, int (*each)(void *context, const char *name), void *context) {
    DIR *names = opendir(folder);
    if (names == NULL)
        return errno;
    int result = 0;
    errno = 0;
    for (struct dirent *entry; result == 0 && (entry = readdir(names)) != NULL; errno = 0)
        result = each(context, entry->d_name);
    if (result == 0)
        result = errno;
    closedir(names);
    return result;
}

int sl_disk_lock(int *handle, const char *path, uint64_t from, uint64_t count) {
    struct flock range = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)from, .l_len = (off_t)count};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0)
        return errno;
    if (fcntl(fd, F_OFD_SETLK, &range) == 0) {
        *handle = fd;
        return 0;
    }
    int why = errno == EACCES ? EAGAIN : errno;
    close(fd);
    return why;
}
