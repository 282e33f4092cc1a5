/* clipped_gossip.c - gossip that bounds what a faulty neighbour can do: He, Karimireddy, Jaggi,
 * "Byzantine-Robust Decentralized Learning via ClippedGossip", 2022. Other rules for the same end:
 * trimmed_gossip.c.
 *
 *   u_i = x_i - gamma mom(g_i(x_i)), sent
 *   x_i = u_i + sum_j W_ij min(1, tau_i/||u_j - u_i||) (u_j - u_i)
 *
 * W symmetric, doubly stochastic. tau_i is algorithm.clip, or the second largest of the neighbours'
 * distances. With one tau for all the mean is kept; nobody moves a neighbour by more than W_ij tau.
 * Memory beside x, g, momentum: each u_j, until its distance is known. Wire: 32 d bits to each
 * out-neighbour.
 */
#include <math.h>
#include <string.h>

#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

/* numbers[j]: the squared distance so far. */
static void keep(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    for (size_t j = 0; j < mix->k; j++) {
        const uint32_t at = mix->parts[j].neighbour;
        const float *theirs = mix->parts[j].payload.data;
        sl_copy(s, s->replicas[at] + from, theirs, count);
        s->numbers[at] += s->vec->distance_squared(theirs, s->x + from, count);
        s->is_finite = s->is_finite && isfinite(s->numbers[at]);
    }
}

/* tau. A lost neighbour has no weight. */
static double bound(const sl_state *s) {
    double largest = 0, second = 0;
    uint32_t there = 0;
    for (uint32_t j = 0; j < s->in.count; j++) {
        if (s->in.weights[j] == 0)
            continue;
        second = fmax(second, fmin(largest, s->numbers[j]));
        largest = fmax(largest, s->numbers[j]);
        there++;
    }
    return !isnan(s->config->clip) ? s->config->clip : sqrt(there > 1 ? second : largest);
}

/* x <- (1 - sum_j c_j) u_i + sum_j c_j u_j, c_j = W_ij min(1, tau/||u_j - u_i||) */
static void pull(sl_state *s) {
    const double tau = bound(s);
    float self = 1;
    for (uint32_t j = 0; j < s->in.count; j++) {
        const double apart = sqrt(s->numbers[j]);
        s->numbers[j] = (float)(s->in.weights[j] * (apart > tau ? tau / apart : 1));
        self -= (float)s->numbers[j];
    }
    sl_terms sum = sl_terms_begin(s, s->x, s->dimension);
    sl_terms_add(&sum, s->x, self);
    for (uint32_t j = 0; j < s->in.count; j++)
        sl_terms_add(&sum, s->replicas[j], (float)s->numbers[j]);
    sl_terms_end(&sum);
    memset(s->numbers, 0, s->in.count * sizeof *s->numbers);
}

static const sl_stage stages[] = {
    {.prepare = sl_local_step, .vector = sl_publish_model, .combine = keep}};

const char *const sl_clips[] = {"second-largest", NULL};
static const sl_key keys[] = {
    SL_ROWS_CLIPPED,
    SL_KEYS_END,
};

const sl_algorithm sl_clipped_gossip = {
    .name = "clipped-gossip",
    .stable_by = SL_STABLE_UNKNOWN,
    .variant = SL_VARIANT_CLIP,
    .matrix = SL_MATRIX_SYMMETRIC,
    .lazy_below = sl_lazy_adapting,
    .keeps_messages = true,
    .keys = keys,
    .takes_momentum = true,
    .takes_local_steps = true,
    .stages = stages,
    .stage_count = 1,
    .local = sl_local_step,
    .finish = pull,
};
