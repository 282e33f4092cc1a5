/* choco_by_link.c - the form of CHOCO-SGD (choco_sgd.c) whose messages follow the links: over a
 * fast one more is sent than over a slow one, so that a round's messages take
 * algorithm.budget.round_ms (starling/link_budget.h). A rule of our own.
 *
 *   x_i <- x_i - gamma mom(g_i)
 *   q_ij = C_e(x_i - xhat_ij), sent to j over edge e;  xhat_ij += q_ij
 *   x_i <- x_i + sum_j gamma_e W_ij (xhat_ji - xhat_ij)
 *
 * A neighbour gets messages of its own, so each edge has replicas of its own: xhat_ij is what j
 * knows of i. What an edge adds at one end it takes from the other: with a symmetric W the mean
 * stays, whatever the compressors are, and so each edge has the consensus step that suits its own;
 * algorithm.consensus_step is that of all.
 *
 * A round in which somebody is lost is taken back by all (starling/algorithm.h,
 * sl_algorithm_voids). A later view begins with the models themselves. Memory beside x, g,
 * momentum: two vectors for each neighbour.
 */
#include "algorithm/gossip/choco.h"
#include "algorithm/own_keys.h"

static bool has_budget(const sl_algorithm_config *config) {
    return config->budget.round_ms != 0;
}

static size_t length_of_edge(const sl_algorithm_config *config, const sl_shapes *shapes) {
    (void)config;
    return 2 * shapes->dimension;
}

/* xhat_ji */
static float *theirs(const sl_state *s, uint32_t slot) {
    return s->received + 2 * slot * s->dimension;
}

/* xhat_ij */
static float *ours(const sl_state *s, uint32_t slot) {
    return theirs(s, slot) + s->dimension;
}

/* gamma_e W_ij, for the end of the round. */
static void note_step(sl_state *s) {
    const sl_quality quality = sl_compressor_quality(s->compressor, s->dimension);
    const double given = s->config->consensus_step,
                 gamma = given > 0 ? given : sl_stable_consensus_step(&quality, s->mixed);
    s->numbers[s->slot] = gamma * s->in.weights[0];
}

static void note_model(sl_state *s) {
    note_step(s);
    sl_copy(s, ours(s, s->slot), s->x, s->dimension);
}

static void read_difference(void *state, size_t from, size_t count, float *out) {
    const sl_state *s = state;
    sl_subtract(s, out, s->x + from, ours(s, s->slot) + from, count);
}

static void take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, 1, ours(s, s->slot));
}

static void take(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_part_add(&mix->parts[0], 1, theirs(s, s->slot));
}

static void mix(sl_state *s, size_t from, size_t count) {
    sl_terms sum = sl_terms_begin(s, s->x + from, count);
    sl_terms_add(&sum, s->x + from, 1);
    for (uint32_t k = 0; k < s->slots; k++) {
        sl_terms_add(&sum, theirs(s, k) + from, (float)s->numbers[k]);
        sl_terms_add(&sum, ours(s, k) + from, -(float)s->numbers[k]);
    }
    sl_terms_end(&sum);
}

static int check(const sl_algorithm_config *config, const sl_topology *topology, sl_error *error) {
    return sl_budget_check(&config->budget, &config->compressor, topology, error);
}

static const sl_stage stages[] = {
    {.wanted = sl_choco_differs,
     .prepare = sl_local_step,
     .meet = note_step,
     .read = read_difference,
     .own = take_own,
     .combine = take},
    {.plain = true,
     .restates = true,
     .wanted = sl_choco_restates,
     .prepare = sl_local_step,
     .meet = note_model,
     .vector = sl_publish_model,
     .combine = take},
};

static const char *const budgets[] = {"median", NULL};
static const sl_key keys[] = {
    {SL_ROW_CONSENSUS_STEP, .help = "step size of the mixing, 0 = derived from the compressor"},
    {SL_OWN(budget.round_ms), .is_later = true, .type = SL_KEY_PARAMETER, SL_KEY_BETWEEN(0, 1e9),
     .choices = budgets, .fallback = "0",
     .help = "milliseconds for a round's messages: each edge sends what its link of network.* "
             "carries; median = what the compressor takes over the median link; 0 = no budget"},
    {SL_OWN_REAL(budget.fraction_min, 1e-9, 1), .is_later = true, .fallback = "0.001",
     .help = "least fraction of the entries that an edge sends"},
    SL_KEYS_END,
};

const sl_algorithm sl_choco_by_link = {
    .name = "choco-sgd",
    .variant = SL_VARIANT_COMPRESS_THEN_MIX,
    .when = has_budget,
    .stable_by = SL_STABLE_UNKNOWN,
    .route = SL_ROUTE_EDGES,
    .matrix = SL_MATRIX_SYMMETRIC,
    .fixed_matrix = true,
    .compressor = SL_TAKES_CONTRACTIVE,
    .keys = keys,
    .check = check,
    .takes_momentum = true,
    .takes_local_steps = true,
    .keeps_received = true,
    .received_length = length_of_edge,
    .stages = stages,
    .stage_count = 2,
    .local = sl_local_step,
    .settle = mix,
};
