/* cd_sgd.c - CD-SGD: Yu, Dong, Xu, Ouyang, Wang, Liao, Qiao, "CD-SGD: Distributed Stochastic
 * Gradient Descent with Compression and Delay Compensation", ICPP 2021.
 *
 *   warm-up:  C-SGD on the global weights G; in its last round also L = G_old - gamma_loc g(G_old)
 *   then:     g = g(L);  L' = G_old - gamma_loc g;  count mod k != 0:  r += g, send T(r), r -=
 *             T(r);  else send g
 *             G <- G - gamma (1/n) sum_i received_i;  L = L'
 *
 * T is the threshold compressor: +-tau or 0, two bits. The sum comes together at one server rank,
 * or in shards over all; what the servers send back is the sum itself. The model is G; the gradient
 * is taken at L. Memory beside G and g: L, r and the sum, three vectors. Wire: 2 d bits up (32 d in
 * each k-th round), 32 d down.
 */
#include "algorithm/algorithms.h"
#include "algorithm/mix.h"

enum { LOCAL = 0, RESIDUAL = 1, TOTAL = 2 };

static bool is_delayed(const sl_state *s) {
    return s->round > s->config->warmup_rounds;
}

static bool is_compressed(const sl_state *s) {
    return is_delayed(s) &&
           (s->round - s->config->warmup_rounds - 1) % s->config->correction_period != 0;
}

static bool is_exact(const sl_state *s) {
    return !is_compressed(s);
}

static const float *point(const sl_state *s) {
    return is_delayed(s) ? s->extra[LOCAL] : s->x;
}

static void start(sl_state *s, size_t dimension) {
    s->vec->combine(s->extra[LOCAL], (const float *const[]){s->x}, (const float[]){1}, 1,
                    dimension);
}

/* L <- G - gamma_loc g, once the gradient at the old L has been taken; clears the place where sums
 * come together. */
static void step_locally(sl_state *s, size_t from, size_t count) {
    float rate = s->config->local_learning_rate > 0 ? (float)s->config->local_learning_rate
                                                    : s->sgd.learning_rate;
    sl_regularize(s, point(s), from, count);
    if (s->round >= s->config->warmup_rounds)
        s->vec->combine(s->extra[LOCAL] + from, (const float *const[]){s->x + from, s->g + from},
                        (const float[]){1, -rate}, 2, count);
    s->vec->fill(s->extra[TOTAL] + from, 0, count);
}

static void collect(sl_state *s, size_t from, size_t count) {
    float *residual = s->extra[RESIDUAL] + from;
    step_locally(s, from, count);
    s->vec->combine(residual, (const float *const[]){residual, s->g + from}, (const float[]){1, 1},
                    2, count);
}

static const float *residual(const sl_state *s) {
    return s->extra[RESIDUAL];
}

static void add_compressed(sl_state *s, const sl_part *part) {
    sl_part_add(part, 1, s->extra[TOTAL]);
}

static void take_own_compressed(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, -1, s->extra[RESIDUAL]);
    if (mine->weight > 0)
        add_compressed(s, mine);
}

static void take_own_exact(sl_state *s, const sl_part *mine) {
    if (mine->weight > 0)
        add_compressed(s, mine);
}

static void take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    for (size_t j = 0; j < mix->k; j++)
        add_compressed(s, &mix->parts[j]);
}

static const float *total(const sl_state *s) {
    return s->extra[TOTAL];
}

static void copy_total(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    s->vec->combine(s->extra[TOTAL] + from, (const float *const[]){mix->parts[0].payload.data},
                    (const float[]){1}, 1, count);
}

static void descend(sl_state *s, size_t from, size_t count) {
    s->vec->combine(s->x + from, (const float *const[]){s->x + from, s->extra[TOTAL] + from},
                    (const float[]){1, -s->sgd.learning_rate / (float)s->nodes}, 2, count);
}

static const sl_stage stages[] = {
    {.wanted = is_compressed,
     .prepare = collect,
     .vector = residual,
     .own = take_own_compressed,
     .combine = take_theirs},
    {.plain = true,
     .wanted = is_exact,
     .prepare = step_locally,
     .vector = sl_publish_gradient,
     .own = take_own_exact,
     .combine = take_theirs},
    {.plain = true, .gather = true, .vector = total, .combine = copy_total},
};

const sl_algorithm sl_cd_sgd = {
    .name = "cd-sgd",
    .route = SL_ROUTE_SERVER,
    .compressor = SL_TAKES_ANY,
    .own_compressor = SL_COMPRESSOR_THRESHOLD,
    .keys = "correction_period warmup_rounds threshold local_learning_rate",
    .keeps_gradient = true,
    .extra_vectors = 3,
    .stages = stages,
    .stage_count = 3,
    .start = start,
    .settle = descend,
    .point = point,
};
