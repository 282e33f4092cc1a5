/* power_gossip.c - PowerGossip: Vogels, Karimireddy, Jaggi, "Practical Low-Rank Communication
 * Compression in Decentralized Deep Learning", NeurIPS 2020, Algorithm 1.
 *
 * Every edge {i, j}, i < j, keeps P and Q of `rank` columns, equal at both ends. Of each matrix of
 * u_i = x_i - gamma mom(g_i), with D = U_j - U_i:
 *
 *   odd exchanges:  V = Q, with orthonormal columns;  each sends U V;    P = D V;    low = P V^T
 *   even ones:      V = P, likewise;                  each sends U^T V;  Q = D^T V;  low = V Q^T
 *   x_i = u_i + sum_j W_ij low;  at j: x_j = u_j - W_ij low
 * Of m slots, exchange t is odd where floor((t - 1)/m) + (t - 1) mod m is even: an edge that comes
 * again has the other kind. The first Q is given, or normal; a column of V that is 0 is drawn anew.
 * Memory beside x, g, momentum: P and Q of each edge. Wire: 32 rank rows, or columns, bits.
 */
#include "algorithm/algorithms.h"
#include "algorithm/lowrank/factors.h"
#include "algorithm/own_keys.h"
#include "vec/finite.h"

enum { RANK_BITS = 20 }; /* SL_NODES_MAX */

static bool is_odd(const sl_state *s) {
    return ((s->exchange - 1) / s->period + (s->exchange - 1) % s->period) % 2 == 0;
}

static bool is_even(const sl_state *s) {
    return !is_odd(s);
}

static void take_step(sl_state *s) {
    sl_local_step(s, 0, s->dimension);
}

static size_t length_of_edge(const sl_algorithm_config *config, const sl_shapes *shapes) {
    return sl_factor_p_turn(config, shapes) + sl_factor_q_turn(config, shapes);
}

static float *factors_of(const sl_state *s, uint32_t slot, bool q) {
    return s->received + slot * length_of_edge(s->config, &s->shapes) +
           (q ? sl_factor_p_turn(s->config, &s->shapes) : 0);
}

static sl_matrix first(const sl_state *s) {
    return (sl_matrix){.rank = s->config->rank, .takes_turns = true};
}

static void start(sl_state *s, size_t dimension) {
    (void)dimension;
    for (uint32_t k = 0; k < s->slots; k++)
        sl_factor_start(factors_of(s, k, true), s, first(s));
}

static sl_rng_key key_of_edge(const sl_state *s) {
    const uint32_t peer = s->in.peers[0], low = peer < s->rank ? peer : s->rank;
    const uint64_t high = peer + s->rank - low;
    return (sl_rng_key){s->seed, s->exchange << RANK_BITS | high, low, SL_PURPOSE_FACTOR};
}

/* V in its place, and in g what is sent. */
static void project(sl_state *s) {
    const bool odd = is_odd(s);
    float *from = factors_of(s, s->slot, odd);
    for (sl_matrix m = first(s); sl_matrix_next(&m, &s->shapes);) {
        const size_t at = odd ? m.q : m.p, length = odd ? m.columns : m.rows;
        float *v = from + at, *out = s->g + (odd ? m.p : m.q), *u = s->x + m.from;
        if (m.factored) {
            sl_factor_draw(v, &m, length, key_of_edge(s), at);
            sl_factor_orthogonalize(v, &m, length);
            (odd ? sl_factor_left : sl_factor_right)(out, &m, u, v);
        } else
            sl_copy(s, out, u, m.p_length);
    }
}

/* D V is that of the higher rank less that of the lower one; whoever is the higher subtracts. */
static void subtract(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    const float sign = s->rank < s->in.peers[0] ? 1 : -1, *theirs = mix->parts[0].payload.data;
    float *to = factors_of(s, s->slot, is_even(s)) + from;
    s->vec->combine(to, (const float *const[]){theirs, s->g + from}, (const float[]){sign, -sign},
                    2, count);
    s->numbers[s->slot] = (double)(sign * mix->parts[0].weight);
    s->is_finite = s->is_finite && sl_vec_is_finite(theirs, count);
}

static void add(sl_state *s) {
    for (uint32_t k = 0; k < s->slots; k++) {
        const float *p = factors_of(s, k, false), *q = factors_of(s, k, true);
        const float w = (float)s->numbers[k];
        for (sl_matrix m = first(s); w != 0 && sl_matrix_next(&m, &s->shapes);) {
            const float *both[] = {s->x + m.from, is_odd(s) ? p + m.p : q + m.q};
            if (m.factored)
                sl_factor_add(s->x + m.from, &m, p + m.p, q + m.q, w);
            else
                s->vec->combine(s->x + m.from, both, (const float[]){1, w}, 2, m.p_length);
        }
        s->numbers[k] = 0; /* until they meet again */
    }
}

#define STAGE                                                                                      \
    .plain = true, .meet = project, .vector = sl_publish_gradient, .combine = subtract, .over = add
static const sl_stage stages[] = {{STAGE, .wanted = is_odd, .length = sl_factor_p_turn},
                                  {STAGE, .wanted = is_even, .length = sl_factor_q_turn}};

static const sl_key keys[] = {
    {SL_ROW_RANK},
    {SL_ROW_START, .help = "first factors Q: a row of algorithm.rank numbers for each column of "
                           "each matrix, [] = random ones"},
    SL_KEYS_END,
};

const sl_algorithm sl_power_gossip = {
    .name = "power-gossip",
    .route = SL_ROUTE_EDGES,
    .matrix = SL_MATRIX_SYMMETRIC,
    .host_only = true,
    .keys = keys,
    .takes_momentum = true,
    .takes_local_steps = true,
    .keeps_gradient = true,
    .keeps_received = true,
    .received_length = length_of_edge,
    .check_shapes = sl_factor_check_turns,
    .start = start,
    .take_gradient = take_step,
    .stages = stages,
    .stage_count = 2,
};
