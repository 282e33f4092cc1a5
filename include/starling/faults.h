/* faults.h - a scenario of losses and returns that the simulator plays: `faults` of an experiment.
 *
 * A list of events by round. Whoever is killed takes part in no step of that round any more; until
 * the next view the others fold its weights (starling/node.h). A cast says who is there as the
 * events are played, and on which side of a partition. */
#ifndef STARLING_FAULTS_H
#define STARLING_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sl_fault_kind {
    SL_FAULT_KILL,      /* from one moment to the next */
    SL_FAULT_LEAVE,     /* with a word: nobody waits */
    SL_FAULT_JOIN,      /* with a sponsor's model */
    SL_FAULT_PARTITION, /* the sides lose sight of each other */
    SL_FAULT_HEAL,
    SL_FAULT_NONFINITE /* the loss of that round is NaN; nobody goes or comes by the event itself */
} sl_fault_kind;

typedef struct sl_fault {
    sl_fault_kind kind;
    uint64_t round;
    uint64_t view_round; /* the first round of the view that follows; NONFINITE: 0 */
    size_t count;
    uint32_t *ranks; /* (count) none: HEAL */
    uint32_t *sides; /* (count) PARTITION: of each rank */
} sl_fault;

typedef struct sl_faults {
    char *text;      /* as it was given, JSON; NULL: none was */
    sl_fault *items; /* (count) by round */
    size_t count;
} sl_faults;

SL_API void sl_faults_close(sl_faults *faults);
/* Does anything happen, or a view begin, as this round begins? */
SL_API bool sl_faults_touch(const sl_faults *faults, uint64_t round);
/* The next round of which that is so; 0: there is none. */
SL_API uint64_t sl_faults_next(const sl_faults *faults, uint64_t after);
/* Has the node a loss that is not finite in that round? */
SL_API bool sl_faults_spoil(const sl_faults *faults, uint64_t round, uint32_t rank);
/* Does a view begin with the round? */
SL_API bool sl_faults_turn(const sl_faults *faults, uint64_t round);

#define SL_ABSENT UINT32_MAX
typedef struct sl_cast {
    uint32_t nodes, side_count;
    uint32_t *sides; /* (nodes) 0 ... side_count - 1, or SL_ABSENT */
} sl_cast;

/* The first `there` of so many nodes are there, on one side. */
SL_API int sl_cast_open(sl_cast *out, uint32_t nodes, uint32_t there, sl_error *error);
SL_API void sl_cast_close(sl_cast *cast);
/* Plays what happens as the round begins. */
SL_API void sl_cast_play(sl_cast *cast, const sl_faults *faults, uint64_t round);
/* Lists the ranks of a side (nodes at most), rising, and returns their number. */
SL_API uint32_t sl_cast_members(const sl_cast *cast, uint32_t side, uint32_t *out);

#ifdef __cplusplus
}
#endif
#endif
