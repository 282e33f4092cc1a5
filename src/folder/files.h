/* files.h - how the run folder's files are written: line by line, or whole.
 *
 * A few descriptors are kept in reserve, so that a process at its limit can still write.
 */
#ifndef SL_FILES_H
#define SL_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "starling/error.h"

enum { SL_SPARES = 4, SL_FILE_PATH_MAX = 1280 };

typedef struct sl_files {
    int spares[SL_SPARES]; /* -1: in use */
    int open;              /* files of lines that are open */
} sl_files;

void sl_files_open(sl_files *files);
void sl_files_close(sl_files *files);

/* A file of lines. It stays open, unless too many are. */
typedef struct sl_lines {
    int fd;     /* plus 1; 0: not open */
    bool begun; /* the file is there, and this run's */
    off_t size;
} sl_lines;

/* A process that is killed may leave a part of a line, but only where the line crosses a page. */
enum { SL_LINES_PAGE = 4096, SL_LINE_BYTES = 1024 };

/* How many spaces at the end of a line of so many bytes keep the next one, of up to SL_LINE_BYTES,
 * within its page. Fewer than SL_LINE_BYTES. */
size_t sl_lines_padding(const sl_lines *lines, size_t bytes);
/* Appends a line with one write(2). What a full disk took of it is given back. The first call makes
 * the file: it must not be there. */
int sl_lines_append(sl_files *files, sl_lines *lines, const char *path, const char *text,
                    size_t bytes, sl_error *error);
/* Goes on with a file of lines, which is made if it is not there. What stands behind its last whole
 * line goes: a process that was killed has left it. SL_EFILE: another process has it open so. */
int sl_lines_continue(sl_files *files, sl_lines *lines, const char *path, sl_error *error);
/* Does another process go on with it? */
bool sl_lines_are_busy(int fd);
void sl_lines_close(sl_files *files, sl_lines *lines);

/* What is on the disk when a file's commit returns. */
typedef enum sl_sync {
    SL_SYNC_LATER,   /* nothing yet */
    SL_SYNC_CONTENT, /* after a crash: this file, or the one that it replaces */
    SL_SYNC_NAME     /* this file */
} sl_sync;

/* A file that is there whole or not at all: written beside its name, then renamed. */
typedef struct sl_whole {
    sl_files *files;
    const char *path;
    char beside[SL_FILE_PATH_MAX + 32];
    int fd;
} sl_whole;

int sl_whole_open(sl_whole *w, sl_files *files, const char *path, sl_error *error);
/* On error the file is gone, and needs no further call. */
int sl_whole_add(sl_whole *w, const void *data, size_t bytes, sl_error *error);
int sl_whole_commit(sl_whole *w, sl_sync sync, sl_error *error);
/* Copies a range of another open file. */
int sl_whole_copy(sl_whole *w, int from, off_t offset, size_t bytes, sl_error *error);

/* Opens a file, with a spare descriptor if need be; -1: errno says why. */
int sl_files_descriptor(sl_files *files, const char *path, int flags);
/* "PATH: cannot be written: ...", by errno. */
int sl_files_fail(const char *path, sl_error *error);

#endif
