/* key_file.c - see key_file.h. */
#include "secure/key_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/regular.h"

/* A run folder is copied and shown around. It is known by what training writes there first. */
static bool is_of_a_run(const char *name) {
    const size_t length = strlen(name), begin = strlen("metrics"), end = strlen(".jsonl");
    return length >= begin + end && memcmp(name, "metrics", begin) == 0 &&
           strcmp(name + length - end, ".jsonl") == 0;
}

static bool is_in_run_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char folder[SL_KEY_PATH_MAX];
    bool found = false;
    if (slash == NULL)
        snprintf(folder, sizeof folder, ".");
    else
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path);
    DIR *listing = opendir(folder);
    for (const struct dirent *entry = listing != NULL ? readdir(listing) : NULL;
         entry != NULL && !found; entry = readdir(listing))
        found = is_of_a_run(entry->d_name);
    if (listing != NULL)
        closedir(listing);
    return found;
}

static int check_place(const char *path, sl_error *error) {
    if (strlen(path) >= SL_KEY_PATH_MAX)
        return sl_fail(error, SL_EFILE, "%.64s...: a path of at most %d bytes is allowed", path,
                       SL_KEY_PATH_MAX - 1);
    if (is_in_run_folder(path))
        return sl_fail(error, SL_EFILE,
                       "%s: is in a run folder, which is copied and shown around; keep keys "
                       "elsewhere",
                       path);
    return 0;
}

static int check_owner(const struct stat *status, const char *path, sl_error *error) {
    if (status->st_uid != geteuid())
        return sl_fail(error, SL_EFILE,
                       "%s: belongs to user %u; a key must belong to the user that runs the agent, "
                       "%u",
                       path, (unsigned)status->st_uid, (unsigned)geteuid());
    if ((status->st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return sl_fail(error, SL_EFILE,
                       "%s: others may read or change it (mode %03o); a key must be its owner's "
                       "alone: chmod 600 %s",
                       path, (unsigned)status->st_mode & 0777, path);
    return 0;
}

static int read_all(int descriptor, char *out, size_t room, size_t *bytes, const char *path,
                    sl_error *error) {
    size_t used = 0;
    for (ssize_t got = 1; got > 0 && used < room; used += (size_t)got) {
        got = read(descriptor, out + used, room - used);
        if (got < 0 && errno == EINTR)
            got = 0;
        if (got < 0)
            return sl_fail(error, SL_EFILE, "%s: %s", path, strerror(errno));
        if (got == 0)
            break;
    }
    *bytes = used;
    return 0;
}

int sl_key_file_read(char *out, size_t room, size_t *bytes, const char *path, sl_error *error) {
    struct stat status;
    int result = check_place(path, error);
    if (result != 0)
        return result;
    const int descriptor = sl_regular_open(path, O_NOFOLLOW, &status, error);
    if (descriptor < 0)
        return descriptor;
    result = check_owner(&status, path, error);
    if (result == 0 && (size_t)status.st_size > room)
        result = sl_fail(error, SL_EFILE, "%s: is %lld bytes long, too many for a key", path,
                         (long long)status.st_size);
    if (result == 0)
        result = read_all(descriptor, out, room, bytes, path, error);
    close(descriptor);
    return result;
}

static bool write_all(int descriptor, const char *text, size_t bytes) {
    while (bytes > 0) {
        const ssize_t wrote = write(descriptor, text, bytes);
        if (wrote < 0 && errno != EINTR)
            return false;
        text += wrote > 0 ? wrote : 0;
        bytes -= wrote > 0 ? (size_t)wrote : 0;
    }
    return fsync(descriptor) == 0;
}

int sl_key_file_write(const char *path, unsigned mode, const char *text, size_t bytes,
                      sl_error *error) {
    int result = check_place(path, error);
    if (result != 0)
        return result;
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (descriptor < 0)
        return sl_fail(error, SL_EFILE, "%s: %s", path,
                       errno == EEXIST ? "is there already; a key is never written over"
                                       : strerror(errno));
    if (!write_all(descriptor, text, bytes)) {
        result = sl_fail(error, SL_EFILE, "%s: cannot be written: %s", path, strerror(errno));
        unlink(path);
    }
    close(descriptor);
    return result;
}
