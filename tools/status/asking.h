/* asking.h - what agents say of themselves, through their sockets in a run folder, or at a port. */
#ifndef ASKING_H
#define ASKING_H

#include <sys/types.h>

#include "starling/starling.h"

/* An agent that has a socket in the folder. */
typedef struct asked {
    uint32_t rank;
    pid_t pid;  /* of who listens there; 0: that is not known, as at a port */
    char *said; /* JSON, as in starling/monitor.h; NULL: nothing in time */
} asked;

/* Asks all at once, for at most patience_s. Who has ended is left out. *out (*count) is by rank, to
 * be freed with asked_free. SL_EFILE: the folder cannot be read. */
int ask_folder(asked **out, size_t *count, const char *folder, double patience_s, sl_error *error);
/* The same of the one agent at HOST:PORT. SL_EINVAL: that is none, or the host is unknown. */
int ask_place(asked **out, size_t *count, const char *place, double patience_s, sl_error *error);
void asked_free(asked *all, size_t count);

#endif
