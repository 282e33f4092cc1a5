/* laq.c - LAQ: Sun, Chen, Giannakis, Yang, "Communication-Efficient Distributed Learning via Lazily
 * Aggregated Quantized Gradients", NeurIPS 2019, Algorithm 2. LAG-WK, of levels.
 *
 *   q_i = C(g_i - h_i), of 2^bits levels;  e_i = g_i - h_i - q_i
 *   if gamma^2 ||q_i||^2 > 3 gamma^2 (||e_i||^2 + ||e'_i||^2)
 *                          + sum_{k=1..D} xi ||x_{t+1-k} - x_{t-k}||^2,
 *      or the last `clock` messages were silent:
 *       h_i <- h_i + q_i;  e'_i <- e_i
 *   else q_i = 0, a silent message
 *   h <- h + (1/n) sum_i q_i;  x <- x - gamma mom(h)
 *
 * gamma is that of the mean loss, as in lag_wk.c; e'_i is of the last message that said something,
 * at first 0. xi is 0.8/D if not given. Momentum and weight decay come after averaging. Memory
 * beside x, g, momentum: h_i, h and the model before; and D + 2 numbers. Wire: bits d + 32 bits up
 * (with shards, of each) or a header, the dense h down. The authors' program (sunjunaimer/LAQ) has
 * the same quantizer, condition, D, xi and clock. It differs in two things: in round t <= D its xi
 * is 0.8/t, and where both sides are equal it sends.
 */
#include <string.h>

#include "algorithm/centralized/known.h"
#include "algorithm/own_keys.h"
#include "compress/quantization/grid.h"
#include "compress/quantization/sums.h"

enum { LOST, SILENT, NUMBERS }; /* after those of the D steps */

typedef struct quantized {
    double sent, lost; /* ||q||^2, ||e||^2 */
} quantized;

static void defaults(sl_algorithm_config *c) {
    sl_default(&c->xi, 0.8 / c->depth);
    sl_default_count(&c->bits, 4);
}

static void tune(sl_algorithm_config *c) {
    c->compressor.bits = (uint32_t)c->bits;
}

static size_t numbers(const sl_algorithm_config *c) {
    return c->depth + (size_t)NUMBERS;
}

/* A message of the elements [from, to), as its encoder will make it. */
static void quantize(sl_state *s, size_t from, size_t to, quantized *sum) {
    float range, rounded[SL_BLOCK];
    bucket_sums sums;
    sl_sum_begin(&sums, 0);
    for (size_t at = from, n; at < to; at += n) {
        n = to - at < SL_BLOCK ? to - at : SL_BLOCK;
        sl_known_read_news(s, at, n, s->scratch);
        sl_sum_largest(&sums, s->scratch, at - from, n);
    }
    const uint32_t bits = sl_sum_take_largest(&sums);
    memcpy(&range, &bits, sizeof range);
    if (!isfinite(range)) { /* it speaks, and its encoder says why not */
        sum->lost = NAN;
        return;
    }
    const sl_grid grid = sl_grid_of((uint32_t)s->config->bits, range);
    for (size_t at = from, n; at < to && range > 0; at += n) {
        n = to - at < SL_BLOCK ? to - at : SL_BLOCK;
        sl_known_read_news(s, at, n, s->scratch);
        sl_grid_round(&grid, s->scratch, n, rounded);
        sum->sent += s->vec->norm2_squared(rounded, n);
        sum->lost += s->vec->distance_squared(s->scratch, rounded, n);
    }
}

static bool is_worth_it(sl_state *s) {
    const sl_algorithm_config *c = s->config;
    const size_t d = s->dimension, shards = c->server == SL_SERVER_SHARDED ? s->nodes : 1;
    const double gamma = s->sgd.learning_rate, moved = sl_known_moved(s);
    double *own = s->own_numbers + c->depth;
    quantized q = {0};
    for (size_t k = 0; k < shards; k++)
        quantize(s, k * d / shards, (k + 1) * d / shards, &q);
    const bool speaks = own[SILENT] >= (double)c->clock ||
                        !(gamma * gamma * (q.sent - 3 * (q.lost + own[LOST])) <= moved);
    own[SILENT] = speaks ? 0 : own[SILENT] + 1;
    own[LOST] = speaks ? q.lost : own[LOST];
    return speaks;
}

static const sl_stage stages[] = {SL_KNOWN_STAGES(is_worth_it, sl_known_take_own)};

static const sl_key keys[] = {
    {SL_ROW_DEPTH},
    {SL_ROW_XI,
     .help = "weight of each remembered step, larger: silent more often, auto = 0.8/depth"},
    {SL_ROW_BITS, .help = "bits of an element, auto = 4"},
    {SL_OWN_U64(clock, 1, 1e12), .fallback = "100",
     .help = "after so many silent messages it sends one"},
    SL_KEYS_END,
};

const sl_algorithm sl_laq = {
    SL_KNOWN_FAMILY,
    .name = "laq",
    .host_only = true,
    .compressor = SL_TAKES_ANY,
    .own_compressor = SL_COMPRESSOR_GRID,
    .keys = keys,
    .defaults = defaults,
    .tune = tune,
    .extra_vectors = SL_KNOWN_LAZY_VECTORS,
    .own_numbers = numbers,
    .stages = stages,
    .start = sl_known_begin,
};
