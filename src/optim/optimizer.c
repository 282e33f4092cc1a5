/* optimizer.c - the learning rate of a round; see starling/optimizer.h. */
#include "starling/optimizer.h"

#include <math.h>

const char *sl_optimizer_name(sl_optimizer_kind kind) {
    static const char *const names[] = {
#define OPTIMIZER_NAME(kind, name) name,
        SL_OPTIMIZERS(OPTIMIZER_NAME)
#undef OPTIMIZER_NAME
    };
    return names[kind];
}

static double schedule_factor(const sl_schedule *s, uint64_t round, uint64_t rounds) {
    double factor = 1;
    switch (s->kind) {
    case SL_SCHEDULE_CONSTANT:
        break;
    case SL_SCHEDULE_STEP:
        for (size_t i = 0; i < s->milestone_count; i++)
            if ((double)round > s->milestones[i] * (double)rounds)
                factor *= s->factor;
        break;
    case SL_SCHEDULE_COSINE:
        factor = s->minimum +
                 (1 - s->minimum) * 0.5 * (1 + cos(M_PI * (double)(round - 1) / (double)rounds));
        break;
    }
    return factor;
}

sl_sgd sl_optimizer_at(const sl_optimizer_config *optimizer, uint64_t round, uint64_t rounds) {
    double rate = optimizer->learning_rate * schedule_factor(&optimizer->schedule, round, rounds);
    if (round <= optimizer->schedule.warmup_rounds)
        rate *= (double)round / (double)optimizer->schedule.warmup_rounds;
    return (sl_sgd){
        .learning_rate = (float)rate,
        .momentum = (float)optimizer->momentum,
        .weight_decay = optimizer->kind == SL_OPTIMIZER_SGD ? (float)optimizer->weight_decay : 0,
        .nesterov = optimizer->nesterov,
    };
}
