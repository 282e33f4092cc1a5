/* stc.c - Sattler, Wiedemann, Mueller, Samek: "Robust and Communication-Efficient Federated
 * Learning From Non-i.i.d. Data", IEEE TNNLS 2020, Algorithm 1: sparse ternary compression.
 *
 * The k elements of largest magnitude, of equal ones those of lower index, each as sign(v_j) mu, mu
 * the mean of their magnitudes: k (ceil(log2 d) + 1) + 32 bits. The error is ||v||^2 - k mu^2, and
 * so delta = ||kept||_1^2 / (k ||v||^2). That is at least min(1/k, k/d): with s the sum kept and m
 * its least, ||v||^2 is at most that of one large element, k - 1 of m, and d - k of m, which is
 * convex in m, and so largest at m = 0 or at m = s/k. Of a normal vector delta is above 2/pi k/d.
 */
#include <float.h>
#include <math.h>

#include "compress/hybrid/marks.h"
#include "compress/own_keys.h"
#include "compress/sparsification/entries.h"
#include "compress/sparsification/largest.h"

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    const double k = (double)sl_entries_kept(config, dimension), d = (double)dimension;
    return (sl_quality){.omega = INFINITY,
                        .is_contractive = true,
                        .delta = fmin(1 / k, k / d),
                        .usual_delta = 0.5 * k / d,
                        .takes_largest = true};
}

static size_t room(const sl_codec *c, size_t elements) {
    return sl_largest_room(c->k, elements);
}

static int mark(sl_encoder *e, const sl_source *source, size_t from, size_t count, marks *out) {
    const size_t k = e->codec->k;
    (void)count;
    const int result = sl_largest_magnitudes(e, source, k, out->numbers);
    const double mean = result == 0 ? sl_marks_sum(out->numbers, k, true) / (double)k : 0;
    out->count = k;
    out->values[0] = (float)mean;
    sl_marks_of_signs(out->numbers, k, from);
    return result;
}

static const marks_coder coder = {.form = CODING_SIGNED,
                                  .floats = 1,
                                  .two = true,
                                  .entries = sl_entries_kept,
                                  .room = room,
                                  .mark = mark};
static const sl_key keys[] = {
    SL_ROWS_ENTRIES(""),
    {SL_ROW_CODING_OF_INDICES},
    SL_KEYS_END,
};

const codec_ops sl_stc_codec = {.keys = keys,
                                .codings = "golomb elias",
                                .quality = quality,
                                .check = sl_entries_check,
                                MARKS_OPERATIONS(coder)};
