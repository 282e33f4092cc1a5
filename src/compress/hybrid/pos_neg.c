/* pos_neg.c - Dryden, Moon, Jacobs, Van Essen: "Communication Quantization for Data-Parallel
 * Training of Deep Neural Networks", MLHPC 2016: adaptive quantization.
 *
 * The fraction pi of the elements that are largest, and that of the least, each as the mean of its
 * kind: 2 k (ceil(log2 d) + 1) + 64 bits, k = max(1, round(pi d)). Equal values count as sorted by
 * index, so that no element is of both kinds. Of an odd d all may be kept, one less of the least.
 *
 * The error is ||v||^2 - k mu+^2 - k mu-^2. As for sbc ||v||^2 is largest where the k-th largest
 * and the k-th least value are P/k or N/k, of the sums P and N, and a quadratic form in these: its
 * largest eigenvalue is below its trace, and delta at least k / (2 k^2 - 2 k + d). Of a normal
 * vector it is above 2/pi 2k/d.
 */
#include <math.h>

#include "compress/hybrid/marks.h"
#include "compress/own_keys.h"
#include "compress/sparsification/entries.h"
#include "compress/sparsification/largest.h"

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    const double k = (double)sl_entries_kept(config, dimension), d = (double)dimension;
    return (sl_quality){.omega = INFINITY,
                        .is_contractive = true,
                        .delta = k / (2 * k * k - 2 * k + d),
                        .usual_delta = fmin(1, 2 * k / d) / 2,
                        .takes_largest = true};
}

static size_t least_of(size_t k, size_t dimension) {
    return k < dimension - k ? k : dimension - k;
}

static size_t entries(const sl_compressor_config *config, size_t dimension) {
    const size_t k = sl_entries_kept(config, dimension);
    return k + least_of(k, dimension);
}

/* What is sent, then the two kinds. */
static size_t room(const sl_codec *c, size_t elements) {
    const size_t k = sl_entries_kept(&c->config, elements);
    return c->k + sl_largest_room(k, elements) + sl_largest_room(least_of(k, elements), elements);
}

static float value_of(uint64_t entry) {
    return float_of(sl_entry_value(entry));
}

static float extreme(const uint64_t *entries, size_t count, float (*choose)(float, float)) {
    float found = value_of(entries[0]);
    for (size_t i = 1; i < count; i++)
        found = choose(found, value_of(entries[i]));
    return found;
}

/* Where all elements but those at the ends are `middle`, both kinds have taken the first of these:
 * those of the least become the ones behind. Their sum. */
static double take_behind(sl_encoder *e, const sl_source *source, size_t dimension, float middle,
                          const uint64_t *upper, size_t above, uint64_t *lower, size_t below) {
    size_t skipped = 0, n = 0;
    for (size_t i = 0; i < above; i++)
        skipped += value_of(upper[i]) == middle;
    for (size_t from = 0; from < dimension; from += SL_BLOCK) {
        const size_t count = dimension - from < SL_BLOCK ? dimension - from : SL_BLOCK;
        const float *v = sl_encoder_read(e, source, from, count);
        for (size_t i = 0; i < count && n < below; i++) {
            const bool is_skipped = v[i] == middle && skipped > 0;
            skipped -= is_skipped;
            if (v[i] <= middle && !is_skipped)
                lower[n++] = (uint64_t)float_bits(v[i]) << 32 | (from + i);
        }
    }
    return sl_marks_sum(lower, below, false);
}

/* By rising index, and by kind. */
static void merge(const uint64_t *upper, size_t above, const uint64_t *lower, size_t below,
                  uint64_t *out) {
    for (size_t u = 0, l = 0; u + l < above + below;) {
        const bool is_lower =
            u == above || (l < below && sl_entry_index(lower[l]) < sl_entry_index(upper[u]));
        const uint64_t entry = is_lower ? lower[l] : upper[u];
        l += is_lower;
        u += !is_lower;
        *out++ = (uint64_t)sl_entry_index(entry) << 1 | is_lower;
    }
}

static int mark(sl_encoder *e, const sl_source *source, size_t from, size_t count, marks *out) {
    const size_t above = sl_entries_kept(&e->codec->config, count), below = least_of(above, count);
    uint64_t *upper = out->numbers + e->codec->k, *lower = upper + sl_largest_room(above, count);
    (void)from;
    double sums[2];
    const int result = sl_largest_ends(e, source, above, upper, below, lower, sums);
    if (result != 0)
        return result;
    const float middle = extreme(upper, above, fminf);
    if (below > 0 && middle == extreme(lower, below, fmaxf))
        sums[1] = take_behind(e, source, count, middle, upper, above, lower, below);
    out->values[0] = (float)(sums[0] / (double)above);
    out->values[1] = below > 0 ? (float)(sums[1] / (double)below) : 0;
    merge(upper, above, lower, below, out->numbers);
    out->count = above + below;
    return 0;
}

static const marks_coder coder = {
    .floats = 2, .two = true, .entries = entries, .room = room, .mark = mark};
static const sl_key keys[] = {
    SL_ROWS_ENTRIES(" of each sign"),
    {SL_ROW_CODING_OF_INDICES},
    SL_KEYS_END,
};

const codec_ops sl_pos_neg_codec = {.keys = keys,
                                    .codings = "golomb elias",
                                    .quality = quality,
                                    .check = sl_marks_check_half,
                                    MARKS_OPERATIONS(coder)};
