/* jobs.h - several processes beside each other, each of which does one piece of work. */
#ifndef JOBS_H
#define JOBS_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

#include "starling/error.h"

enum { JOBS_MAX = 256 };

typedef struct jobs {
    pid_t pids[JOBS_MAX]; /* (slots) 0: the slot is free */
    size_t pieces[JOBS_MAX];
    size_t slots, busy;
    int signals_passed; /* on to the processes */
    sigset_t before;    /* the signals that were blocked */
} jobs;

/* From now on the signals that ask to stop only come within jobs_wait, which passes them on. */
void jobs_open(jobs *j, size_t slots);
/* Signals come as before. No process is left. */
void jobs_close(jobs *j);
/* Does piece `number` in a process of its own, which ends with what `work` returns, or with this
 * one. A slot is free. SL_ENOMEM. */
int jobs_start(jobs *j, size_t number, int (*work)(void *context, size_t number), void *context,
               sl_error *error);
/* Waits until one has ended: *number, and waitpid's *status. One is under way. */
void jobs_wait(jobs *j, size_t *number, int *status);

#endif
