/* gtop_k.c - gTop-k: Shi, Wang, Zhao, Tang, Wang, Huang, Chu, "A Distributed Synchronous SGD
 * Algorithm with Global Top-k Sparsification for Low Bandwidth Networks", 2019, Alg. 2 to 4.
 *
 *   v_i = e_i + g_i;  s_i = top-k of v_i;  e_i = v_i - s_i
 *   up the tree:      s_i <- top-k of (s_i + s_j), with each place j that is merged into place i
 *   S:                top-k of the root's, which all get;  x <- x - gamma mom(S/n)
 *   coordinates of s_i that S lacks go back to e_i
 *
 * What a merge drops of a coordinate that S has from others is lost: the sum of what is sent and
 * kept is not conserved. k = d is C-SGD. Momentum and weight decay come after averaging. Memory
 * beside x, g, momentum: e_i, s_i, and what a merge publishes. Wire: k values and indices in each
 * of 2 ceil(log2 n) steps.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"

enum { ERROR = 0, CHOSEN = 1, PUBLISHED = 2 };

static void load(sl_state *s, size_t from, size_t count) {
    float *v = s->extra[ERROR] + from, *g = s->g + from;
    s->vec->combine(v, (const float *const[]){v, g}, (const float[]){1, 1}, 2, count);
    s->vec->fill(s->extra[CHOSEN] + from, 0, count);
    s->vec->fill(g, 0, count);
}

static const float *compensated(const sl_state *s) {
    return s->extra[ERROR];
}

static void choose(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, 1, s->extra[CHOSEN]);
    sl_part_add(mine, 1 / (float)s->nodes, s->g);
}

static void begin_merge(sl_state *s, size_t from, size_t count) {
    sl_copy(s, s->extra[PUBLISHED] + from, s->g + from, count);
    s->vec->fill(s->g + from, 0, count);
}

static const float *published(const sl_state *s) {
    return s->extra[PUBLISHED];
}

static void keep_own(sl_state *s, const sl_part *mine) {
    if (mine->weight > 0)
        sl_part_add(mine, 1, s->g);
}

static void merge(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1, s->g);
}

/* Here g is S/n. */
static void settle(sl_state *s, size_t from, size_t count) {
    float *e = s->extra[ERROR] + from, *sent = s->extra[CHOSEN] + from;
    s->vec->keep_where(sent, s->g + from, count);
    sl_subtract(s, e, e, sent, count);
    sl_local_step(s, from, count);
}

/* clang-format off */
static const sl_stage stages[] = {
    {.alone = true, .prepare = load, .vector = compensated, .own = choose},
    {.prepare = begin_merge, .vector = published, .own = keep_own, .combine = merge},
    {.gather = true, .prepare = begin_merge, .vector = published, .own = keep_own,
     .combine = merge},
};
/* clang-format on */

const sl_algorithm sl_gtop_k = {
    .name = "gtop-k",
    .route = SL_ROUTE_MERGE,
    .compressor = SL_TAKES_LARGEST,
    .takes_momentum = true,
    .takes_sgd_only = true,
    .averages_gradient = true,
    .keeps_gradient = true,
    .extra_vectors = 3,
    .stages = stages,
    .stage_count = 3,
    .settle = settle,
};
