/* growing_period.c - local SGD whose averages come further and further apart: Haddadpour, Kamani,
 * Mahdavi, Cadambe, "Local SGD with Periodic Averaging: Tighter Analysis and Adaptive
 * Synchronization", NeurIPS 2019, in the form of their program (mmkamani7/LUPA-SGD). local-sgd with
 * `period_schedule` "growing".
 *
 *   x_i <- x_i - gamma mom(g_i)
 *   after each H_i rounds, i = 0, 1, ...:  x_i <- (1/n) sum_j x_j
 *   H_i = min(floor((1 + a i) H_0), `period`), H_0 `first_period`, a `growth`
 *
 * Of T rounds and E averages their program has a = 2 T / (E (E + 1) H_0), and no longest period.
 * Memory beside x, g, momentum: none. Wire: local SGD's, for each average.
 */
#include "algorithm/algorithms.h"
#include "algorithm/own_keys.h"

enum { LAST, NUMBERS }; /* round of the last average */

static bool is_growing(const sl_algorithm_config *config) {
    return config->period_schedule == SL_PERIOD_GROWING;
}

static size_t numbers(const sl_algorithm_config *c) {
    (void)c;
    return NUMBERS;
}

static bool is_due(const sl_state *s) {
    const sl_algorithm_config *c = s->config;
    const double grown =
        floor((1 + c->growth * (double)sl_turn_of_view(s)) * (double)c->first_period);
    return (double)s->round - s->own_numbers[LAST] >= fmin(grown, (double)c->period);
}

static void finish(sl_state *s) {
    s->own_numbers[LAST] = (double)s->round;
}

static void start(sl_state *s, size_t dimension) {
    (void)dimension;
    finish(s);
}

static const sl_key keys[] = {
    SL_ROWS_LOCAL,
    {SL_ROW_PERIOD_SCHEDULE},
    {SL_OWN_U64(first_period, 1, 1e9), .fallback = "1", .help = "growing period: the first one"},
    {SL_OWN_REAL(growth, 0, 1e6), .fallback = "1",
     .help = "growing period: what each average adds, in first periods"},
    SL_KEYS_END,
};

const sl_algorithm sl_growing_period = {
    .name = "local-sgd",
    .when = is_growing,
    .is_periodic = true,
    .due = is_due,
    .route = SL_ROUTE_ALL_REDUCE,
    .takes_momentum = true,
    .keys = keys,
    .defaults = sl_local_defaults,
    .check = sl_check_no_switch,
    .own_numbers = numbers,
    .stages = sl_local_stages,
    .stage_count = SL_LOCAL_STAGES,
    .start = start,
    .local = sl_local_step,
    .settle = sl_reset_buffers,
    .finish = finish,
};
