/* loss_seed.h - what a seed of loss_world stands for: an experiment, and what strikes whom when. */
#ifndef LOSS_SEED_H
#define LOSS_SEED_H

#include "peers.h"
#include "scenario.h"

enum { STRIKES_MAX = 6, STORM_MAX = 30, LONGER = 12, FARTHER = 20, LARGE = 37, CUTS_MAX = 3 };

typedef struct loss_seed {
    scenario s;
    double grace_s;
    strike strikes[STORM_MAX]; /* (strike_count) */
    int strike_count;
    uint32_t spoiled_rank;
    uint64_t spoiled_round;  /* the first; UINT64_MAX: nobody is spoiled */
    uint64_t spoiled_rounds; /* so many */
    uint32_t side;           /* of a network in parts: bits of its ranks */
    uint64_t parting_round;  /* as which the last agent begins it happens */
    double parted_s;
    uint32_t liar;                 /* UINT32_MAX: nobody lies */
    uint64_t cut_rounds[CUTS_MAX]; /* rising: the first agent that begins one finds all cut down */
} loss_seed;

/* Draws it; the world is open. */
void loss_seed_draw(loss_seed *out, uint64_t seed);

/* Is the network in two parts for a while? */
bool loss_is_parted(const scenario *s);
/* Likewise, and nothing else goes wrong. */
bool loss_is_calm(const scenario *s);
/* Or only between neighbours of both parts, so that all stay members? */
bool loss_parts_edges(const scenario *s);
/* Is it the model that becomes infinite, by a step whose gradient is finite? */
bool loss_steps_too_far(const scenario *s);
/* A long one, in which whoever has ended is started again. */
bool loss_restarts(const scenario *s);
/* Likewise, and all are cut down, or end after a checkpoint: then members go on from it, and others
 * come when they like, with the files that they have. */
bool loss_goes_on(const scenario *s);
/* A long one, in which one joins that the run did not begin with. */
bool loss_grows(const scenario *s);
/* What is sealed is never the same twice. */
bool loss_has_key(const scenario *s);
/* Ranks that may have a process. */
uint32_t loss_ranks(const scenario *s);

#endif
