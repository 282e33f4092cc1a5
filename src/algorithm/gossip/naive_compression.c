/* naive_compression.c - D-PSGD that simply compresses the models, to show why this fails: x_i <-
 * sum_j W_ij C(x_j) - gamma mom(g_i(x_i)).
 *
 * The error of compressing a model does not become smaller as training goes on, so neither does the
 * distance to the optimum: it stalls at a floor that a smaller learning rate does not lower (Tang
 * et al., NeurIPS 2018, supplement). Memory beside x, g, momentum: an accumulator.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"

enum { ACCUMULATOR = 0 };

static void take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, mine->weight, s->extra[ACCUMULATOR]);
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1, s->extra[ACCUMULATOR]);
}

static void adapt_sum(sl_state *s, size_t from, size_t count) {
    sl_descend(s, s->extra[ACCUMULATOR] + from, s->x + from, from, count);
    s->vec->fill(s->x + from, 0, count);
}

static void take_sum(sl_state *s) {
    sl_swap(&s->x, &s->extra[ACCUMULATOR]);
}

static const sl_stage stages[] = {
    {.vector = sl_publish_model, .own = take_own, .combine = take_theirs}};

const sl_algorithm sl_naive_compression = {
    .name = "naive-compression",
    .matrix = SL_MATRIX_DOUBLY,
    .lazy_below = sl_lazy_while_adapting,
    .compressor = SL_TAKES_ANY,
    .takes_momentum = true,
    .takes_local_steps = true,
    .publishes_old_model = true,
    .extra_vectors = 1,
    .stages = stages,
    .stage_count = 1,
    .local = sl_local_step,
    .settle = adapt_sum,
    .finish = take_sum,
};
