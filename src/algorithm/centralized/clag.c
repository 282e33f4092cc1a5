/* clag.c - lag-3pc and clag: Richtarik, Sokolov, Gasanov, Fatkhullin, Li, Gorbunov, "3PC:
 * Three Point Compressors for Communication-Efficient Distributed Training and a Better Theory for
 * Lazy Aggregation", ICML 2022, LAG and CLAG.
 *
 *   if ||g_i - h_i||^2 > zeta ||g_i - y_i||^2, y_i the gradient before:
 *       clag:     q_i = C(g_i - h_i);  h_i <- h_i + q_i
 *       lag-3pc:  q_i = g_i - h_i;     h_i <- g_i
 *   else q_i = 0, a silent message
 *   h <- h + (1/n) sum_i q_i;  x <- x - gamma mom(h)
 *
 * h_i(0) = 0; h, the mean of the h_i, is kept by servers. The first message is never silent.
 * zeta, `trigger`, of 0: lag-3pc is C-SGD, clag EF21. Gradients with more noise than difference
 * are worth a message each time, or never: meant for full gradients or large batches. lag-3pc sets
 * h_i and does not add to it: right after a message h_i = y_i, and both sides of the question are
 * equal, which a rounding would decide. Momentum and weight decay come after averaging. Memory
 * beside x, g, momentum: h_i, h and y_i. Wire: one compressed message up or a header, the dense h
 * down.
 */
#include "algorithm/centralized/known.h"
#include "algorithm/own_keys.h"

enum { BEFORE = SL_KNOWN_VECTORS };

static void defaults(sl_algorithm_config *c) {
    sl_default(&c->trigger, 1);
}

static bool has_moved(sl_state *s) {
    const size_t d = s->dimension;
    const double unknown = s->vec->distance_squared(s->g, s->extra[SL_KNOWN], d),
                 moved = s->vec->distance_squared(s->g, s->extra[BEFORE], d);
    sl_copy(s, s->extra[BEFORE], s->g, d);
    return sl_turn_of_view(s) == 1 || !(unknown <= s->config->trigger * moved);
}

static void note_sent(sl_state *s) {
    if (!s->silent)
        sl_copy(s, s->extra[SL_KNOWN], s->extra[BEFORE], s->dimension);
}

static const sl_stage whole[] = {SL_KNOWN_STAGES(has_moved, sl_known_take_own_in_mean)},
                      compressed[] = {SL_KNOWN_STAGES(has_moved, sl_known_take_own)};

static const sl_key keys[] = {
    {SL_ROW_TRIGGER, .help = "a message is silent if its square is at most this times that of "
                             "the gradient's last step, auto = 1"},
    SL_KEYS_END,
};

const sl_algorithm sl_lag_3pc = {
    SL_KNOWN_FAMILY,
    .name = "lag-3pc",
    .keys = keys,
    .defaults = defaults,
    .extra_vectors = SL_KNOWN_VECTORS + 1,
    .stages = whole,
    .finish = note_sent,
};

const sl_algorithm sl_clag = {
    SL_KNOWN_FAMILY,      .name = "clag",       .compressor = SL_TAKES_CONTRACTIVE,
    .keys = keys,         .defaults = defaults, .extra_vectors = SL_KNOWN_VECTORS + 1,
    .stages = compressed,
};
