/* replay_compare.h - does a run that was repeated have the bits of the first? */
#ifndef REPLAY_COMPARE_H
#define REPLAY_COMPARE_H

#include "cli/tool.h"

/* What two runs have in common up to a round. */
typedef struct replay_difference {
    size_t lines, models, states; /* that are equal: of metrics, final models, checkpoints */
    bool apart;                   /* nodes went at their own times */
    char text[512];               /* the first number that differs; empty: none */
} replay_difference;

/* The last round that is recorded of a node; 0: none. */
int replay_last_recorded(uint64_t *out, const char *folder, uint32_t ranks, sl_error *error);
/* What of a run is compared: up to a round, and its final models, or not. */
typedef struct replay_extent {
    uint64_t last, whole; /* up to `whole`, all that is recorded */
    bool models;
} replay_extent;

/* Compares what folder `first` has recorded with what `again` has, and checkpoints of the last
 * round where both have them. SL_EFILE: a file cannot be read. */
int replay_compare(replay_difference *out, const trial *t, const char *first, const char *again,
                   const replay_extent *extent, sl_error *error);

#endif
