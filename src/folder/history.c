/* history.c - see history.h.
 *
 * Lines of a run are mostly in order: then the file is cut off. Where agents' lines came in any
 * order, those that stay are copied.
 */
#include "folder/history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "starling/text.h"

typedef struct survey {
    off_t kept;     /* bytes of all lines that stay */
    off_t first;    /* where the first line that goes begins; -1: none goes */
    bool scattered; /* a line after that stays */
} survey;

static bool stays(const char *line, ssize_t length, sl_line_ends ends) {
    uint64_t of;
    uint32_t node = 0;
    const int found = sscanf(line, "{\"round\":%" SCNu64 ",\"node\":%" SCNu32, &of, &node);
    return line[length - 1] == '\n' && found > 0 && of < ends.rounds[node < ends.count ? node : 0];
}

/* Looks at all lines; copies those that stay to `copy`, if there is one. */
static int walk(survey *out, FILE *file, sl_line_ends ends, sl_whole *copy,
                int (*each)(void *context, const char *line, size_t bytes, sl_error *error),
                void *context, sl_error *error) {
    survey s = {.first = -1};
    char *line = NULL;
    size_t room = 0;
    off_t at = 0;
    int result = 0;
    for (ssize_t length; result == 0 && (length = getline(&line, &room, file)) > 0; at += length) {
        if (!stays(line, length, ends)) {
            s.first = s.first < 0 ? at : s.first;
            continue;
        }
        s.kept += length;
        s.scattered = s.scattered || s.first >= 0;
        if (copy != NULL)
            result = sl_whole_add(copy, line, (size_t)length, error);
        if (result == 0 && each != NULL)
            result = each(context, line, (size_t)length, error);
    }
    free(line);
    *out = s;
    return result;
}

static int copy_lines(sl_files *files, FILE *file, const char *path, sl_line_ends ends,
                      sl_error *error) {
    sl_whole copy;
    survey ignored;
    rewind(file);
    int result = sl_whole_open(&copy, files, path, error);
    if (result == 0)
        result = walk(&ignored, file, ends, &copy, NULL, NULL, error);
    return result != 0 ? result : sl_whole_commit(&copy, SL_SYNC_CONTENT, error);
}

/* *out is NULL, and nothing is wrong, where there is no such file. */
static int open_lines(FILE **out, const char *path, sl_error *error) {
    sl_error why;
    const int fd = sl_file_open(path, &why);
    *out = NULL;
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return sl_fail(error, fd, "%s", why.text);
    *out = fdopen(fd, "r");
    if (*out != NULL)
        return 0;
    close(fd);
    return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
}

int sl_history_cut(sl_files *files, const char *path, sl_line_ends ends,
                   int (*each)(void *context, const char *line, size_t bytes, sl_error *error),
                   void *context, off_t *bytes, sl_error *error) {
    FILE *file;
    survey s;
    *bytes = 0;
    int result = open_lines(&file, path, error);
    if (file == NULL)
        return result;
    result = walk(&s, file, ends, NULL, each, context, error);
    if (result == 0 && s.scattered)
        result = copy_lines(files, file, path, ends, error);
    else if (result == 0 && s.first >= 0 && truncate(path, s.first) != 0)
        result = sl_files_fail(path, error);
    fclose(file);
    *bytes = s.kept;
    return result;
}

int sl_history_read(const char *path,
                    int (*each)(void *context, const char *line, size_t bytes, sl_error *error),
                    void *context, sl_error *error) {
    FILE *file;
    survey ignored;
    int result = open_lines(&file, path, error);
    if (file == NULL)
        return result;
    result = walk(&ignored, file, (sl_line_ends){&(uint64_t){UINT64_MAX}, 1}, NULL, each, context,
                  error);
    fclose(file);
    return result;
}
