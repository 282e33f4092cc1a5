/* served.h - the vectors of an algorithm whose nodes commit to a server (async/commits.c), among
 * sl_state.extra, behind the algorithm's own. The machine allocates them. */
#ifndef SL_SERVED_H
#define SL_SERVED_H

#include "starling/algorithm.h"

enum {
    SL_SERVED = SL_ALGORITHM_VECTORS_MAX - 1, /* the server's: the model that all change */
    SL_PULLED = SL_SERVED - 1 /* with local steps: the model that a node had of the server last */
};

#endif
