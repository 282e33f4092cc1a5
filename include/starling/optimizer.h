/* optimizer.h - settings of the optimizer, and the learning rate of each round.
 *
 * The schedule is a pure function of the round, so that every agent uses the same rate without
 * talking about it.
 */
#ifndef STARLING_OPTIMIZER_H
#define STARLING_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/vec.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_MILESTONES_MAX 16

/* Rows: enum suffix, name in an experiment. */
#define SL_SCHEDULES(X) X(CONSTANT, "constant") X(STEP, "step") X(COSINE, "cosine")
typedef enum sl_schedule_kind {
#define SL_SCHEDULE_ENUM(kind, name) SL_SCHEDULE_##kind,
    SL_SCHEDULES(SL_SCHEDULE_ENUM)
#undef SL_SCHEDULE_ENUM
} sl_schedule_kind;

/* Learning rate of round r (from 1): base, times the schedule's factor, times r / warmup_rounds
 * while r <= warmup_rounds. */
typedef struct sl_schedule {
    sl_schedule_kind kind;
    double milestones[SL_MILESTONES_MAX]; /* step: fractions of the run in (0, 1), rising */
    size_t milestone_count;
    double factor;          /* step: multiplied at each milestone */
    double minimum;         /* cosine: final learning rate as a fraction of the base */
    uint64_t warmup_rounds; /* any kind */
} sl_schedule;

/* Rows: enum suffix, name in an experiment. */
#define SL_OPTIMIZERS(X) X(SGD, "sgd") X(ADAMW, "adamw") X(LARS, "lars") X(LAMB, "lamb")
typedef enum sl_optimizer_kind {
#define SL_OPTIMIZER_ENUM(kind, name) SL_OPTIMIZER_##kind,
    SL_OPTIMIZERS(SL_OPTIMIZER_ENUM)
#undef SL_OPTIMIZER_ENUM
} sl_optimizer_kind;

typedef struct sl_optimizer_config {
    sl_optimizer_kind kind;
    double learning_rate, momentum, weight_decay;
    bool nesterov;
    double beta1, beta2, epsilon; /* adamw, lamb */
    double trust;                 /* lars, lamb: step of a tensor, as a share of its norm; 0: 0.001
                                     of lars, 1 of lamb */
    double clip_norm;             /* longest gradient of a node; 0: any */
    sl_schedule schedule;
} sl_optimizer_config;

SL_API const char *sl_optimizer_name(sl_optimizer_kind kind);
/* How much of the last round's direction this round's keeps: momentum, or Adam's beta1. */
SL_API double sl_optimizer_momentum(const sl_optimizer_config *optimizer);

/* SGD's settings in `round` of `rounds`, with the schedule applied. Without weight decay, where the
 * optimizer has that in the direction. */
SL_API sl_sgd sl_optimizer_at(const sl_optimizer_config *optimizer, uint64_t round,
                              uint64_t rounds);

#ifdef __cplusplus
}
#endif
#endif
