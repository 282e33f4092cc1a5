/* faults.h - a scenario of losses and returns that the simulator plays: `faults` of an experiment.
 *
 * A list of events by round. Who is killed takes no part in that round any more: it begins with a
 * view of those who are left. Where nodes go at their own times, it comes when the first of them
 * has ended the one before. A cast says who is there as the events are played. */
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
    SL_FAULT_PARTITION, /* the sides lose sight of each other: those without a quorum rest */
    SL_FAULT_HEAL,      /* who rested joins */
    SL_FAULT_NONFINITE  /* the loss of that round is NaN; it goes on from the model before */
} sl_fault_kind;

typedef struct sl_fault {
    sl_fault_kind kind;
    uint64_t round;
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
/* The next round that has an event; 0: there is none. */
SL_API uint64_t sl_faults_next(const sl_faults *faults, uint64_t after);
/* Does the node leave before that round? */
SL_API bool sl_faults_leaves(const sl_faults *faults, uint64_t round, uint32_t rank);
/* Has the node a loss that is not finite in that round? */
SL_API bool sl_faults_spoil(const sl_faults *faults, uint64_t round, uint32_t rank);
/* Does a view begin with the round, as others are there? */
SL_API bool sl_faults_turn(const sl_faults *faults, uint64_t round);

/* May so many of the last view's members go on without the others? Of an even split, those with the
 * lowest rank. */
SL_API bool sl_has_quorum(uint32_t side, uint32_t of, bool has_lowest);

typedef enum sl_presence { SL_THERE, SL_RESTS, SL_ABSENT } sl_presence;
typedef struct sl_cast {
    uint32_t nodes;
    sl_presence *of; /* (nodes) */
} sl_cast;

/* The first `there` of so many nodes are there. */
SL_API int sl_cast_open(sl_cast *out, uint32_t nodes, uint32_t there, sl_error *error);
SL_API void sl_cast_close(sl_cast *cast);
/* Plays what happens as the round begins. */
SL_API void sl_cast_play(sl_cast *cast, const sl_faults *faults, uint64_t round);
/* Lists who is there (nodes at most), rising, and returns their number. */
SL_API uint32_t sl_cast_members(const sl_cast *cast, uint32_t *out);
/* The side of a partition that goes on; SIZE_MAX: none of them has a quorum. */
SL_API size_t sl_cast_side(const sl_fault *partition);

#ifdef __cplusplus
}
#endif
#endif
