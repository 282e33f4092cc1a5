/* find.c - the files of a data set in its folder; see data.h. */
#include <stdio.h>
#include <sys/stat.h>

#include "learner/data/data.h"

static bool is_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && !S_ISDIR(status.st_mode);
}

/* The first of folder/name + ending that is a file. */
static bool find(char *path, size_t size, const char *folder, const sl_data_names *names,
                 const char *const *endings) {
    for (size_t i = 0; i < names->count; i++)
        for (const char *const *ending = endings; *ending != NULL; ending++) {
            snprintf(path, size, "%s/%s%s", folder, names->names[i], *ending);
            if (is_file(path))
                return true;
        }
    return false;
}

/* Where the file is after all: in a folder of the data set's usual archive. */
static const char *place_of(const char *folder, const sl_data_names *names,
                            const char *const *endings) {
    char inner[SL_PATH_MAX + 64], path[sizeof inner + 80];
    for (const char *const *place = names->places; place != NULL && *place != NULL; place++) {
        snprintf(inner, sizeof inner, "%s/%s", folder, *place);
        if (find(path, sizeof path, inner, names, endings))
            return *place;
    }
    return NULL;
}

int sl_data_find(sl_bytes *out, const char *folder, const sl_data_names *names, sl_error *error) {
    static const char *const endings[] = {"", ".gz", NULL}, *const refused[] = {
                                                                ".xz",  ".bz2", ".zst", ".lz4",
                                                                ".zip", ".7z",  NULL};
    char path[sizeof out->name];
    if (find(path, sizeof path, folder, names, endings) ||
        find(path, sizeof path, folder, names, refused)) /* the reader says what it is */
        return sl_bytes_read(out, path, SL_BYTES_MAX, error);
    const char *place = place_of(folder, names, endings), *other = names->count > 1 ? ", nor " : "";
    if (place != NULL)
        return sl_fail(error, SL_EFILE, "%s: its files are in %s/%s; name that as data.path",
                       folder, folder, place);
    snprintf(path, sizeof path, "%s/%s", folder, names->unlike != NULL ? names->unlike : "");
    if (names->unlike != NULL && is_file(path))
        return sl_fail(error, SL_EFILE, "%s: %s", path, names->unlike_means);
    return sl_fail(error, SL_EFILE,
                   "%s/%s: no such file, with or without .gz%s%s; data.path must be its folder",
                   folder, names->names[0], other, names->count > 1 ? names->names[1] : "");
}
