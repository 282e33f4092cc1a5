/* served.h - the vectors of an algorithm whose nodes commit to a server (async/commits.c), among
 * sl_state.extra. */
#ifndef SL_SERVED_H
#define SL_SERVED_H

enum {
    SL_SERVED, /* the server's: the model that all change; the machine allocates it */
    SL_PULLED  /* with local steps: the model that a node had of the server last */
};

#endif
