/* strom.c - Strom: "Scalable Distributed DNN Training Using Commodity GPU Cloud Computing",
 * Interspeech 2015. tau where v_j >= tau, -tau where v_j <= -tau, else 0, as `threshold`; but only
 * the elements that are not 0 are sent, each as an index and a sign: (ceil(log2 d) + 1) bits, d the
 * elements of a part. Both sides know tau; the sender keeps the rest, or what lies below tau is
 * lost. Neither unbiased nor contractive, as threshold.
 */
#include <math.h>

#include "compress/hybrid/marks.h"
#include "compress/own_keys.h"
#include "compress/quantization/threshold.h"
#include "compress/sparsification/entries.h"
#include "compress/sparsification/largest.h"

static size_t room(const sl_codec *c, size_t elements) {
    (void)c;
    return elements + 1;
}

static int mark(sl_encoder *e, const sl_source *source, size_t from, size_t count, marks *out) {
    const float tau = (float)e->codec->config.threshold;
    const int result = sl_largest_from(e, source, from, count, tau, out->numbers, &out->count);
    sl_marks_of_signs(out->numbers, out->count, from);
    return result;
}

static const marks_coder coder = {.form = CODING_MARKED, .two = true, .room = room, .mark = mark};
static const sl_key keys[] = {
    {SL_ROW_THRESHOLD},
    {SL_ROW_CODING_OF_INDICES},
    SL_KEYS_END,
};

const codec_ops sl_strom_codec = {.keys = keys,
                                  .codings = "golomb elias",
                                  .quality = sl_threshold_quality,
                                  .check = sl_threshold_check,
                                  MARKS_OPERATIONS(coder)};
