/* served.h - what an algorithm whose nodes commit to a server (async/commits.c) is told. */
#ifndef SL_SERVED_H
#define SL_SERVED_H

#include "starling/algorithm.h"

/* Vectors among sl_state.extra, behind the algorithm's own. The machine allocates them. */
enum {
    SL_SERVED = SL_ALGORITHM_VECTORS_MAX - 1, /* the server's: the model that all change */
    SL_PULLED = SL_SERVED - 1 /* with local steps: the model that a node had of the server last */
};

/* What the server of commits has seen of each rank under this view. */
typedef struct sl_clocks {
    uint32_t ranks;
    const uint64_t *commits;     /* (ranks) UINT64_MAX: it takes no part */
    const uint64_t *last_ns;     /* (ranks) when the last one came */
    const uint64_t *interval_ns; /* (ranks) how long that was after the one before; 0: not known */
    const uint64_t *extra; /* (ranks) gradients that it may begin out of bounds. Where a run is
                              repeated 1: its log says who began when */
} sl_clocks;

#endif
