/* last_words.h - what a process that is ended by a signal like SIGSEGV still writes.
 *
 * All is prepared before: the descriptor, and the bytes for each signal, which replace those at the
 * beginning of the file. So it needs no memory, and no room on a disk. Then what the signal did
 * before happens: as a rule the process ends by it. */
#ifndef LAST_WORDS_H
#define LAST_WORDS_H

#include <stdbool.h>

/* Bytes at the beginning of a run's file (run_info.h) that are written anew in place. */
enum { RUN_HEAD_BYTES = 2048 };

/* Of one file at a time. `compose` makes the head that says `why`; where that has "ended": "...",
 * the time is put in. A signal of which it makes none stays as it is. */
void last_words_prepare(int fd, bool (*compose)(char head[RUN_HEAD_BYTES], const char *why));
/* The process has said something else. */
void last_words_forget(int fd);

#endif
