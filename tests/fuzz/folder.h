/* folder.h - a folder of its own for targets whose code reads and writes files. */
#ifndef FUZZ_FOLDER_H
#define FUZZ_FOLDER_H

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLDER_PATH_MAX = 64, FILE_PATH_MAX = 512 };

static void folder_remove(void);

/* Made at the first call, in memory where that is possible, and gone at exit. */
static inline const char *folder_path(void) {
    static char path[FOLDER_PATH_MAX];
    if (path[0] == '\0') {
        snprintf(path, sizeof path, "%s/starling-fuzz-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        assert(mkdtemp(path) != NULL);
        atexit(folder_remove);
    }
    return path;
}

static inline void folder_write(const char *name, const void *data, size_t size) {
    char path[FILE_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder_path(), name);
    FILE *file = fopen(path, "wb");
    assert(file != NULL && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

/* Its files are removed; how many there were. */
static inline size_t folder_clear(void) {
    size_t count = 0;
    DIR *folder = opendir(folder_path());
    assert(folder != NULL);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.') {
            assert(unlinkat(dirfd(folder), entry->d_name, 0) == 0);
            count++;
        }
    closedir(folder);
    return count;
}

static void folder_remove(void) {
    folder_clear();
    rmdir(folder_path());
}

#endif
