/* files.c - see files.h. */
#include "folder/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "starling/folder.h"

enum { OPEN_MAX_FILES = 128, COPY_BYTES = 1 << 16 };

int sl_files_fail(const char *path, sl_error *error) {
    return sl_fail(error, SL_EFILE, "%s: cannot be written: %s%s", path, strerror(errno),
                   errno == ENOSPC ? "; free some space, or choose another folder with --out" : "");
}

int sl_folder_make(const char *whole, sl_error *error) {
    char path[SL_PATH_MAX];
    if (strlen(whole) == 0 || strlen(whole) >= sizeof path)
        return sl_fail(error, SL_EINVAL, "output folder: the path must have 1 to %d bytes",
                       SL_PATH_MAX - 1);
    memcpy(path, whole, strlen(whole) + 1);
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL)
            *slash = '\0';
        int made = mkdir(path, 0777);
        if (made != 0 && errno != EEXIST)
            return sl_fail(error, SL_EFILE, "%s: the folder cannot be made: %s", path,
                           strerror(errno));
        if (slash == NULL)
            return 0;
        *slash = '/';
    }
}

/* ---- descriptors ---- */

static void refill(sl_files *f) {
    int reason = errno;
    for (int i = 0; i < SL_SPARES; i++)
        if (f->spares[i] < 0)
            f->spares[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    errno = reason;
}

static bool give_up_spare(sl_files *f) {
    for (int i = 0; i < SL_SPARES; i++)
        if (f->spares[i] >= 0) {
            close(f->spares[i]);
            f->spares[i] = -1;
            return true;
        }
    return false;
}

void sl_files_open(sl_files *f) {
    f->open = 0;
    for (int i = 0; i < SL_SPARES; i++)
        f->spares[i] = -1;
    refill(f);
}

void sl_files_close(sl_files *f) {
    while (give_up_spare(f))
        ;
}

int sl_files_descriptor(sl_files *f, const char *path, int flags) {
    flags |= O_CLOEXEC | O_NONBLOCK; /* nobody is waited for who might read a pipe there */
    int fd = open(path, flags, 0666);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && give_up_spare(f))
        fd = open(path, flags, 0666);
    return fd;
}

/* Closes, and keeps errno. */
static void close_quietly(int fd) {
    int reason = errno;
    close(fd);
    errno = reason;
}

/* One write(2), and more only where the kernel takes less. */
static bool write_all(int fd, const char *data, size_t bytes) {
    while (bytes > 0) {
        ssize_t written = write(fd, data, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        data += written;
        bytes -= (size_t)written;
    }
    return true;
}

/* ---- lines ---- */

void sl_lines_close(sl_files *files, sl_lines *lines) {
    if (lines->fd == 0)
        return;
    close_quietly(lines->fd - 1);
    lines->fd = 0;
    files->open--;
    refill(files);
}

static int open_lines(sl_files *files, sl_lines *lines, const char *path) {
    int made = lines->begun ? 0 : O_CREAT | O_EXCL;
    int fd = sl_files_descriptor(files, path, O_WRONLY | O_APPEND | made);
    if (fd < 0)
        return -1;
    lines->fd = fd + 1;
    files->open++;
    return fd;
}

size_t sl_lines_padding(const sl_lines *lines, size_t bytes) {
    const size_t left = SL_LINES_PAGE - ((size_t)lines->size + bytes) % SL_LINES_PAGE;
    return left < SL_LINE_BYTES ? left : 0;
}

int sl_lines_append(sl_files *files, sl_lines *lines, const char *path, const char *text,
                    size_t bytes, sl_error *error) {
    int fd = lines->fd > 0 ? lines->fd - 1 : open_lines(files, lines, path);
    if (fd < 0)
        return sl_files_fail(path, error);
    bool good = write_all(fd, text, bytes);
    int reason = errno;
    if (!good && ftruncate(fd, lines->size) == 0)
        errno = reason;
    lines->size += good ? (off_t)bytes : 0;
    lines->begun = lines->begun || good;
    int result = good ? 0 : sl_files_fail(path, error);
    if (files->open > OPEN_MAX_FILES)
        sl_lines_close(files, lines);
    return result;
}

/* Where the last whole line ends; below 0: errno says why nobody knows. */
static off_t end_of_lines(int fd) {
    char block[SL_LINES_PAGE];
    off_t at = lseek(fd, 0, SEEK_END);
    while (at > 0) {
        const size_t bytes = at < SL_LINES_PAGE ? (size_t)at : SL_LINES_PAGE;
        const ssize_t got = pread(fd, block, bytes, at - (off_t)bytes);
        if (got < 0)
            return got;
        const char *end = memrchr(block, '\n', (size_t)got);
        at -= (off_t)bytes;
        if (end != NULL)
            return at + (end - block) + 1;
    }
    return at;
}

bool sl_lines_are_busy(int fd) {
    return flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

int sl_lines_continue(sl_files *files, sl_lines *lines, const char *path, sl_error *error) {
    int fd = sl_files_descriptor(files, path, O_RDWR | O_APPEND | O_CREAT);
    if (fd < 0)
        return sl_files_fail(path, error);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        return sl_fail(error, SL_EFILE, "%s: another process writes to it", path);
    }
    const off_t end = end_of_lines(fd);
    if (end < 0 || ftruncate(fd, end) != 0) {
        close_quietly(fd);
        return sl_files_fail(path, error);
    }
    *lines = (sl_lines){.fd = fd + 1, .begun = true, .size = end};
    files->open++;
    return 0;
}

/* ---- whole files ---- */

static int abandon(sl_whole *w, const char *path, sl_error *error) {
    int reason = errno;
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
    unlink(w->beside);
    refill(w->files);
    errno = reason;
    return sl_files_fail(path, error);
}

int sl_whole_open(sl_whole *w, sl_files *files, const char *path, sl_error *error) {
    w->files = files;
    w->path = path;
    /* Several agents may write the same file at once. */
    snprintf(w->beside, sizeof w->beside, "%s.%ld.new", path, (long)getpid());
    w->fd = sl_files_descriptor(files, w->beside, O_WRONLY | O_CREAT | O_TRUNC);
    return w->fd < 0 ? sl_files_fail(w->beside, error) : 0;
}

int sl_whole_add(sl_whole *w, const void *data, size_t bytes, sl_error *error) {
    return write_all(w->fd, data, bytes) ? 0 : abandon(w, w->path, error);
}

int sl_whole_copy(sl_whole *w, int from, off_t offset, size_t bytes, sl_error *error) {
    char buffer[COPY_BYTES];
    while (bytes > 0) {
        size_t wanted = bytes < sizeof buffer ? bytes : sizeof buffer;
        ssize_t got = pread(from, buffer, wanted, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got == 0 ? EIO : errno;
            return abandon(w, w->path, error);
        }
        int result = sl_whole_add(w, buffer, (size_t)got, error);
        if (result != 0)
            return result;
        offset += got;
        bytes -= (size_t)got;
    }
    return 0;
}

/* A name is on the disk once its folder is. */
static bool sync_folder_of(sl_files *files, const char *path) {
    char folder[SL_FILE_PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1,
             slash != NULL ? path : ".");
    int fd = sl_files_descriptor(files, folder, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return false;
    bool good = fsync(fd) == 0 || errno == EINVAL; /* not every file system can */
    close_quietly(fd);
    return good;
}

int sl_whole_commit(sl_whole *w, sl_sync sync, sl_error *error) {
    if (sync != SL_SYNC_LATER && fsync(w->fd) != 0)
        return abandon(w, w->path, error);
    int fd = w->fd;
    w->fd = -1;
    if (close(fd) != 0 || rename(w->beside, w->path) != 0)
        return abandon(w, w->path, error);
    bool good = sync != SL_SYNC_NAME || sync_folder_of(w->files, w->path);
    refill(w->files);
    return good ? 0 : sl_files_fail(w->path, error);
}
