/* health.h - how a run does, of what its agents said: healthy, degraded or down. */
#ifndef HEALTH_H
#define HEALTH_H

#include "starling/starling.h"

/* As exit codes of `starling status`. */
typedef enum health_state {
    HEALTH_WELL,
    HEALTH_DEGRADED, /* somebody is lost, does not answer, or they still connect */
    HEALTH_DOWN      /* nobody answers, or too few are left to go on */
} health_state;

typedef struct lost_rank {
    uint32_t rank;
    double since_s; /* below 0: not known: it does not answer */
} lost_rank;

typedef struct health {
    health_state state;
    uint64_t present, of; /* those that take part; with those that should */
    bool connects, rests;
    lost_rank *lost; /* (lost_count) by rank */
    size_t lost_count;
} health;

/* False: out of memory. */
bool health_open(health *out, const sl_asked *all, size_t count);
void health_close(health *health);
/* "3 of 4, lost: 2 since 41 s" */
void health_print(const health *health);
/* The same as an object, with all that was said; false: out of memory. */
bool health_print_json(const health *health, const sl_asked *all, size_t count);

#endif
