/* adacomm.c - AdaComm: Wang, Joshi, "Adaptive Communication Strategies to Achieve the Best
 * Error-Runtime Trade-off in Local-Update SGD", MLSys 2019, the three rules of section 4.
 * local-sgd with `period_schedule`
 *
 *   x_i <- x_i - gamma mom(g_i)
 *   after round 1, and then every H rounds:  x_i <- (1/n) sum_j x_j,  and
 *     "adaptive"          H' = ceil(sqrt(F/F_0) H_0);  H <- H'
 *     "adaptive-halving"  H <- H' if that is less than H, else ceil(H/2)
 *     "adaptive-rate"     H <- ceil(sqrt(gamma_0 F/(gamma F_0)) H_0)
 *
 * H_0 is `period`. F is the mean of all nodes' losses in the rounds since the last average, and F_0
 * that of round 1, where all start; gamma_0 is the largest gamma of an average so far. H is at most
 * H_0, at least 1, and H_0 while F_0 is not above 0. The paper sets H anew after so many seconds;
 * here each average does, since a run should not depend on a clock, and the losses cost nothing
 * (mean_loss.h). Its text could not be had for these rules. PaddlePaddle's adaptive_localsgd, which
 * names the paper, has the last one with H_0 under the root, and H at most 16.
 *
 * Memory beside x, g, momentum: none. Wire, in each average: 32 d bits up from each node, 32 d
 * down.
 */
#include "algorithm/algorithms.h"
#include "algorithm/local/mean_loss.h"
#include "algorithm/own_keys.h"

enum {
    PERIOD = SL_LOSS_NUMBERS, /* H; 0 before the first average */
    FIRST,                    /* F_0 */
    TOP_RATE,                 /* gamma_0 */
    NUMBERS
};

static bool is_adaptive(const sl_algorithm_config *config) {
    return config->period_schedule == SL_PERIOD_ADAPTIVE ||
           config->period_schedule == SL_PERIOD_HALVING ||
           config->period_schedule == SL_PERIOD_RATE;
}

static size_t numbers(const sl_algorithm_config *c) {
    (void)c;
    return NUMBERS;
}

static bool is_due(const sl_state *s) {
    return (double)sl_loss_rounds(s) >= s->own_numbers[PERIOD];
}

/* A rate of 0 makes it as long as it may be. */
static double period_of(const sl_state *s, double mean) {
    const double longest = (double)s->config->period, first = s->own_numbers[FIRST],
                 before = s->own_numbers[PERIOD], rate = s->sgd.learning_rate;
    const bool by_rate = s->config->period_schedule == SL_PERIOD_RATE;
    const double faster = !by_rate   ? 1
                          : rate > 0 ? s->own_numbers[TOP_RATE] / rate
                                     : INFINITY,
                 period = ceil(sqrt(faster * mean / first) * longest);
    if (!(first > 0))
        return longest;
    if (s->config->period_schedule == SL_PERIOD_HALVING && before > 0 && !(period < before))
        return ceil(before / 2);
    return period < longest ? fmax(period, 1) : longest;
}

static void finish(sl_state *s) {
    const double mean = sl_loss_end(s);
    if (s->own_numbers[PERIOD] == 0)
        s->own_numbers[FIRST] = mean;
    s->own_numbers[TOP_RATE] = fmax(s->own_numbers[TOP_RATE], s->sgd.learning_rate);
    s->own_numbers[PERIOD] = period_of(s, mean);
}

static const sl_stage stages[] = {
    SL_LOSS_STAGES,
    SL_AVERAGE_STAGES(momentum, sl_averages_buffers, NULL, false),
};

static const sl_key keys[] = {
    SL_ROWS_LOCAL,
    {SL_ROW_PERIOD_SCHEDULE},
    SL_KEYS_END,
};

const sl_algorithm sl_adacomm = {
    .name = "local-sgd",
    .when = is_adaptive,
    .is_periodic = true,
    .due = is_due,
    .route = SL_ROUTE_SERVER,
    .takes_momentum = true,
    .keys = keys,
    .defaults = sl_local_defaults,
    .check = sl_check_no_switch,
    .own_numbers = numbers,
    .take_gradient = sl_loss_note,
    .stages = stages,
    .stage_count = sizeof stages / sizeof *stages,
    .local = sl_local_step,
    .settle = sl_reset_buffers,
    .finish = finish,
};
