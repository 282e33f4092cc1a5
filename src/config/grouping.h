/* grouping.h - what a run's topology and plan are among some of its nodes. */
#ifndef SL_GROUPING_H
#define SL_GROUPING_H

#include "starling/experiment.h"

typedef struct sl_grouping {
    uint32_t *ranks; /* (count) rising */
    uint32_t count;
    sl_topology *topology; /* in ranks, of as many nodes as the experiment's */
    sl_plan plan;
    sl_regrouping how;
    double gap; /* of the members' topology */
} sl_grouping;

/* ranks: (count) copied. Says what cannot be among so few. */
int sl_grouping_open(sl_grouping *out, const sl_experiment *experiment, size_t dimension,
                     const uint32_t *ranks, uint32_t count, sl_error *error);
void sl_grouping_close(sl_grouping *grouping);
/* "round 12: 7 of 8 nodes go on, as a family of so many; spectral gap 0.1" */
void sl_grouping_describe(const sl_grouping *grouping, const sl_experiment *experiment,
                          uint64_t round, char *out, size_t bytes);

#endif
