/* sbc.c - Sattler, Wiedemann, Mueller, Samek: "Sparse Binary Compression: Towards Distributed Deep
 * Learning with Minimal Communication", IJCNN 2019, Algorithm 2.
 *
 * mu+ is the mean of the k largest values, mu- that of the k largest of -v, of equal values those
 * of lower index. The side with the larger mean, that of mu+ if they are equal, is sent as mu+ or
 * -mu-: k ceil(log2 d) + 32 bits. (The paper's one bit more for the side is the sign of the mean.)
 *
 * The error is ||v||^2 - k mu^2. With P the sum of that side, ||v||^2 is convex in the k-th largest
 * and the k-th least value, and so largest where both are P/k, or both -P/k, or one of each: delta
 * is at least k / ((2 k - 1)^2 + d - 1). Of a normal vector it is above 2/pi k/d.
 */
#include <math.h>
#include <string.h>

#include "compress/hybrid/marks.h"
#include "compress/own_keys.h"
#include "compress/sparsification/entries.h"
#include "compress/sparsification/largest.h"

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    const double k = (double)sl_entries_kept(config, dimension), d = (double)dimension;
    return (sl_quality){.omega = INFINITY,
                        .is_contractive = true,
                        .delta = k / ((2 * k - 1) * (2 * k - 1) + d - 1),
                        .usual_delta = 0.5 * k / d,
                        .takes_largest = true};
}

static size_t room(const sl_codec *c, size_t elements) {
    return 2 * sl_largest_room(c->k, elements);
}

static int mark(sl_encoder *e, const sl_source *source, size_t from, size_t count, marks *out) {
    const size_t k = e->codec->k;
    uint64_t *upper = out->numbers, *lower = upper + sl_largest_room(k, count);
    (void)from;
    double sums[2];
    const int result = sl_largest_ends(e, source, k, upper, k, lower, sums);
    if (result != 0)
        return result;
    const bool is_lower = sums[0] < -sums[1];
    if (is_lower)
        memcpy(upper, lower, k * sizeof *upper);
    out->count = k;
    out->values[0] = (float)(sums[is_lower] / (double)k);
    return 0;
}

/* Of a number only the index is sent. */
static const marks_coder coder = {
    .floats = 1, .entries = sl_entries_kept, .room = room, .mark = mark};
static const sl_key keys[] = {
    SL_ROWS_ENTRIES(""),
    {SL_ROW_CODING_OF_INDICES},
    SL_KEYS_END,
};

const codec_ops sl_sbc_codec = {.keys = keys,
                                .codings = "golomb elias",
                                .quality = quality,
                                .check = sl_marks_check_half,
                                MARKS_OPERATIONS(coder)};
