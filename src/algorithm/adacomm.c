/* adacomm.c - AdaComm: Wang, Joshi, "Adaptive Communication Strategies to Achieve the Best
 * Error-Runtime Trade-off in Local-Update SGD", MLSys 2019, the basic rule of section 4. local-sgd
 * with `period_schedule` "adaptive".
 *
 *   x_i <- x_i - gamma mom(g_i)
 *   after round 1, and then every H rounds:  x_i <- (1/n) sum_j x_j,  H <- ceil(sqrt(F/F_0) H_0)
 *
 * H_0 is `period`. F is the mean of all nodes' losses in the rounds since the last average, and F_0
 * that of round 1, where all start. H is at most H_0, at least 1, and H_0 while F_0 is not above 0.
 * The paper sets H anew after so many seconds; here each average does, since a run should not
 * depend on a clock, and the losses cost nothing: they are in the headers of the models. One server
 * forms the mean loss, so that all nodes find the same H.
 *
 * Memory beside x, g, momentum: none. Wire, in each average: 32 d bits up from each node, 32 d
 * down.
 */
#include "algorithm/algorithms.h"

enum {
    PERIOD, /* H; 0 before the first average */
    LAST,   /* round of the last average */
    FIRST,  /* F_0 */
    LOSSES, /* sum of this node's losses since the last average */
    HEARD,  /* of servers: sum of the nodes' mean losses */
    MEAN,   /* F */
    NUMBERS
};

static bool is_adaptive(const sl_algorithm_config *config) {
    return config->period_schedule == SL_PERIOD_ADAPTIVE;
}

static size_t numbers(const sl_algorithm_config *c) {
    (void)c;
    return NUMBERS;
}

static double own_loss(const sl_state *s) {
    return s->own_numbers[LOSSES] / ((double)s->round - s->own_numbers[LAST]);
}

static void note_loss(sl_state *s) {
    s->own_numbers[LOSSES] += s->loss;
    s->own_numbers[HEARD] = own_loss(s);
}

static bool is_due(const sl_state *s) {
    return (double)s->round - s->own_numbers[LAST] >= s->own_numbers[PERIOD];
}

/* Of several servers, each of a shard, the last one's shard is never empty. */
static uint32_t leader(const sl_state *s) {
    return s->config->server == SL_SERVER_SHARDED ? s->nodes - 1 : (uint32_t)s->config->server;
}

static double mean_loss(const sl_state *s) {
    return s->own_numbers[HEARD] / s->nodes;
}

static void add(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    for (size_t j = 0; j < mix->k; j++)
        s->own_numbers[HEARD] += mix->parts[j].index == 0 ? mix->parts[j].scalar : 0;
    sl_add_model(s, mix, from, count);
}

static void take(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    if (mix->parts[0].message.sender == leader(s))
        s->own_numbers[MEAN] = mix->parts[0].scalar;
    sl_copy_model(s, mix, from, count);
}

static double period_of(const sl_state *s) {
    const double longest = (double)s->config->period, first = s->own_numbers[FIRST],
                 period = ceil(sqrt(s->own_numbers[MEAN] / first) * longest);
    return first > 0 && period < longest ? fmax(period, 1) : longest;
}

static void finish(sl_state *s) {
    if (s->rank == leader(s))
        s->own_numbers[MEAN] = mean_loss(s);
    if (s->own_numbers[PERIOD] == 0)
        s->own_numbers[FIRST] = s->own_numbers[MEAN];
    s->own_numbers[PERIOD] = period_of(s);
    s->own_numbers[LAST] = (double)s->round;
    s->own_numbers[LOSSES] = 0;
}

static const sl_stage stages[] = {
    {.plain = true,
     .says = own_loss,
     .prepare = sl_local_step,
     .vector = sl_publish_model,
     .combine = add},
    {.plain = true,
     .gather = true,
     .says = mean_loss,
     .prepare = sl_average_model,
     .vector = sl_publish_model,
     .combine = take},
    SL_AVERAGE_STAGES(momentum, sl_averages_buffers, NULL),
};

const sl_algorithm sl_adacomm = {
    .name = "local-sgd",
    .when = is_adaptive,
    .is_periodic = true,
    .due = is_due,
    .route = SL_ROUTE_SERVER,
    .takes_momentum = true,
    .tied_to_members = true,
    .keys = "period_schedule buffers switch_round",
    .defaults = sl_local_defaults,
    .check = sl_check_no_switch,
    .own_numbers = numbers,
    .take_gradient = note_loss,
    .stages = stages,
    .stage_count = sizeof stages / sizeof *stages,
    .local = sl_local_step,
    .settle = sl_reset_buffers,
    .finish = finish,
};
