/* barrier.h - who has come to the meeting that is next: every agent tells it all others, along the
 * tree.
 *
 * Where the run goes on without a lost peer, each view has meetings of its own, along its own tree.
 * The first of them is for what they stand at (SL_MEET_STANDS).
 *
 * A connection keeps order, and a tree has one path from agent to agent. So all that came to one
 * meeting are known here before anybody comes to the next one: meetings need no numbers.
 */
#ifndef SL_BARRIER_H
#define SL_BARRIER_H

#include "agent/collectives/collective.h"
#include "agent/collectives/tree_position.h"

typedef struct sl_comer {
    uint32_t rank;
    uint32_t link; /* of the place, over which it was told; link_count: this agent itself */
    uint64_t round;
    sl_meet purpose;
} sl_comer;

typedef struct sl_barrier {
    sl_tree_position *place; /* borrowed */
    uint32_t rank, nodes;    /* nodes: that meet */
    /* (2 nodes) used in turn: comer c of meeting m is number m * nodes + c. A link that has not
     * been told of all comers of a meeting keeps its agent from coming to the next one. */
    sl_comer *comers;
    uint64_t count; /* of comers ever */
    uint64_t *told; /* (link_count) to the link, or by it */
} sl_barrier;

int sl_barrier_open(sl_barrier *out, sl_tree_position *place, uint32_t rank, sl_error *error);
void sl_barrier_close(sl_barrier *m);
/* This agent comes; all that came to the meeting before are known. */
void sl_barrier_come(sl_barrier *m, uint64_t round, sl_meet purpose);
/* A BARRIER frame. SL_EPROTO: it makes no sense. */
int sl_barrier_take(sl_barrier *m, const sl_neighbour *from, const sl_frame *frame,
                    sl_error *error);
/* Passes on what is not passed on yet, to links that have begun the view. */
void sl_barrier_pass_on(sl_barrier *m);
/* Has the neighbour been told of all comers? */
bool sl_barrier_is_told(const sl_barrier *m, const sl_neighbour *neighbour);
/* How many meetings are complete: all agents have come. */
uint64_t sl_barrier_held(const sl_barrier *m);
/* Of a complete one, of the last two: the latest round in which somebody came, and what for. */
uint64_t sl_barrier_round(const sl_barrier *m, uint64_t meeting);
sl_meet sl_barrier_purpose(const sl_barrier *m, uint64_t meeting);
/* "1, 4, 5 and 12 more": who has not come to the next one, and the first of them. */
void sl_barrier_name_missing(const sl_barrier *m, char *out, size_t bytes, uint32_t *first);

#endif
