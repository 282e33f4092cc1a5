/* death.h - what is said of an agent whose process has ended badly, and that could not say why. */
#ifndef DEATH_H
#define DEATH_H

#include <stdbool.h>

#include "starling/error.h"

typedef struct death {
    int status;   /* of waitpid */
    bool began;   /* the agents had been told of each other */
    bool stopped; /* it was, by a signal such as SIGSTOP */
    bool killed;  /* by this run */
    bool ended;   /* it had reported how it ended */
    bool starved; /* since the run began the kernel has killed a process for want of memory */
} death;

/* Into *out, as SL_EPEER. */
void death_tell(const death *d, sl_error *out);

#endif
