/* tail.c - see tail.h. A line that is not whole yet waits for the next look. */
#include "board/tail.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "starling/text.h"
#include "starling/types.h"

/* NULL: there is none that can be read. */
static FILE *open_there(const sl_tail *tail, const char *folder) {
    char path[SL_PATH_MAX + SL_TAIL_NAME_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, tail->name);
    const int fd = sl_file_open(path, NULL);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (fd >= 0 && file == NULL)
        close(fd);
    return file;
}

int sl_tail_read(sl_tail *tail, const char *folder, bool *anew,
                 int (*each)(void *context, const sl_tail *tail, const char *line, size_t bytes,
                             sl_error *error),
                 void *context, sl_error *error) {
    FILE *file = open_there(tail, folder);
    char *line = NULL;
    size_t room = 0;
    struct stat now = {0};
    int result = 0;
    *anew = false;
    if (file == NULL)
        return 0;
    if (fstat(fileno(file), &now) == 0 && tail->inode != 0)
        *anew = now.st_ino != tail->inode || now.st_size < tail->at;
    tail->inode = now.st_ino;
    if (!*anew && now.st_size > tail->at && fseeko(file, tail->at, SEEK_SET) == 0)
        for (ssize_t bytes;
             result == 0 && (bytes = getline(&line, &room, file)) > 0 && line[bytes - 1] == '\n';) {
            tail->at += bytes;
            tail->lines++;
            result = each(context, tail, line, (size_t)bytes - 1, error);
        }
    free(line);
    fclose(file);
    return result;
}
