/* three_lc.c - Lim, Andersen, Kaminsky: "3LC: Lightweight and Effective Traffic Compression for
 * Distributed Machine Learning", MLSys 2019.
 *
 * M = s max|v|, 1 <= s < 2: sign(v_j) M where |v_j| >= M/2, else 0; the larger s, the more zeros.
 * Quartic encoding: five digits of 0 (-M), 1 (0) and 2 (M) a byte, up to 242; so many zeros are
 * 121. Zero-run encoding: 2 to 14 such bytes are one of the 13 values that are left, 243 to 255.
 * 8 ceil(d / 5) + 32 bits at most. The digits of a byte lie apart, as in the paper: its elements
 * are number i of five equal runs of a group, the last one padded with zeros; a group has
 * GROUP elements here, there the whole vector.
 *
 * The error of an element x M is min(x, 1 - x)^2 M^2: never more than its square, 2x - 1 less where
 * x >= 1/2, and so (2 - s)/s M^2 less for the largest one, x = 1/s. ||v||^2 is largest, for what is
 * gained, where all others are M/2 and gain nothing: delta = s (2 - s) / (1 + s^2 (d - 1) / 4).
 * What a normal vector gains is twice the integral of 2 x M - M^2 from M/2 on, M at most about
 * s sqrt(2 ln d). The sender keeps the rest.
 */
#include <math.h>
#include <string.h>

#include "base/kernels.h"
#include "compress/own_keys.h"
#include "compress/quantization/dense.h"

enum {
    DIGITS = 5,
    GROUP = DIGITS * SL_BLOCK,
    PART_GROUPS = 32, /* the accumulator's piece stays in a core's second cache */
    ZEROS = 121,
    RUN_MIN = 2,
    RUN_MAX = 14,
    RUN_BYTE = 243 /* of RUN_MIN */
};

/* ---- what is promised ---- */

/* Of a normal vector, M/2 = half. */
static double usual(double half) {
    return 8 * half * exp(-half * half / 2) / sqrt(2 * acos(-1)) -
           4 * half * half * erfc(half / sqrt(2));
}

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    const double s = config->multiplier, d = (double)dimension;
    const double delta = s * (2 - s) / (1 + s * s * (d - 1) / 4);
    return (sl_quality){.omega = INFINITY,
                        .is_contractive = true,
                        .delta = delta,
                        .usual_delta = fmax(delta, usual(s * sqrt(2 * log(d)) / 2)),
                        .takes_largest = true};
}

static double bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension) {
    (void)self;
    (void)config;
    return 8.0 * (double)((dimension + DIGITS - 1) / DIGITS) + 32;
}

static int check(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    (void)dimension;
    if (config->multiplier >= 1 && config->multiplier < 2)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "algorithm.compressor.multiplier: %g is not allowed; it must be at least 1 and "
                   "below 2",
                   config->multiplier);
}

/* ---- parts: M, then bytes ---- */

static size_t bytes_of(size_t elements) {
    return (elements + DIGITS - 1) / DIGITS;
}

static void lay_out(sl_codec *c, size_t part_bytes) {
    const size_t fit = (part_bytes - sizeof(float)) / SL_BLOCK, groups = fit < 1 ? 1 : fit;
    c->part_elements = (groups < PART_GROUPS ? groups : (size_t)PART_GROUPS) * GROUP;
    if (c->part_elements > c->dimension)
        c->part_elements = c->dimension;
    c->part_bytes_max = sizeof(float) + bytes_of(c->part_elements);
    c->parts = (uint32_t)((c->dimension - 1) / c->part_elements + 1);
}

/* ---- encoding ---- */

typedef struct room {
    float m;
    uint8_t digits[GROUP];
    uint8_t bytes[]; /* of a part */
} room;

/* Of an encoder and of a decoder. */
static size_t room_bytes(const sl_codec *c) {
    return sizeof(room) + bytes_of(c->part_elements);
}

static int begin(sl_encoder *e, const sl_source *source) {
    const size_t d = e->codec->dimension;
    room *r = e->memory;
    bucket_sums sums;
    sl_sum_begin(&sums, 0);
    for (size_t at = 0; at < d; at += SL_BLOCK) {
        const size_t n = d - at < SL_BLOCK ? d - at : SL_BLOCK;
        sl_sum_largest(&sums, sl_encoder_read(e, source, at, n), at, n);
    }
    const uint32_t largest = sl_sum_take_largest(&sums);
    r->m = (float)e->codec->config.multiplier * float_of(largest);
    return (float_bits(r->m) & FLOAT_MAGNITUDE) < FLOAT_INFINITY ? 0 : SL_EDIVERGED;
}

FOR_EACH_CPU(void, to_digits, (float half, const float *v, size_t n, uint8_t *digits),
             (half, v, n, digits)) {
    for (size_t i = 0; i < n; i++)
        digits[i] = (uint8_t)(1 + (v[i] >= half) - (v[i] <= -half));
}

FOR_EACH_CPU(void, to_bytes, (const uint8_t *digits, size_t n, uint8_t *bytes),
             (digits, n, bytes)) {
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(81 * digits[i] + 27 * digits[n + i] + 9 * digits[2 * n + i] +
                             3 * digits[3 * n + i] + digits[4 * n + i]);
}

/* Elements [at, at + n), a group. Of a vector of zeros every one is. */
static void encode_group(sl_encoder *e, const sl_source *source, size_t at, size_t n,
                         uint8_t *bytes) {
    room *r = e->memory;
    const float half = r->m > 0 ? r->m / 2 : INFINITY;
    for (size_t i = 0; i < n; i += SL_BLOCK) {
        const size_t count = n - i < SL_BLOCK ? n - i : SL_BLOCK;
        to_digits(half, sl_encoder_read(e, source, at + i, count), count, r->digits + i);
    }
    memset(r->digits + n, 1, bytes_of(n) * DIGITS - n);
    to_bytes(r->digits, bytes_of(n), bytes);
}

/* Returns how many bytes are left of n. */
static size_t put_runs(const uint8_t *bytes, size_t n, uint8_t *out) {
    size_t left = 0;
    for (size_t i = 0, run; i < n; i += run) {
        for (run = 0; run < RUN_MAX && i + run < n && bytes[i + run] == ZEROS; run++)
            continue;
        out[left++] = run < RUN_MIN ? bytes[i] : (uint8_t)(RUN_BYTE + run - RUN_MIN);
        run += run == 0;
    }
    return left;
}

static int encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                  sl_payload *out) {
    room *r = e->memory;
    size_t from, count;
    sl_codec_part_range(e->codec, part, &from, &count);
    for (size_t i = 0; i < count; i += GROUP)
        encode_group(e, source, from + i, count - i < GROUP ? count - i : GROUP,
                     r->bytes + i / DIGITS);
    memcpy(buffer, &r->m, sizeof r->m);
    uint8_t *runs = (uint8_t *)buffer + sizeof r->m;
    *out = (sl_payload){buffer, sizeof r->m + put_runs(r->bytes, bytes_of(count), runs)};
    return 0;
}

/* ---- decoding ---- */

/* Writes just n bytes; false: there are more or fewer. */
static bool take_runs(const uint8_t *in, size_t bytes, size_t n, uint8_t *out) {
    size_t done = 0;
    for (size_t i = 0; i < bytes; i++) {
        const size_t run = in[i] < RUN_BYTE ? 1 : (size_t)(in[i] - RUN_BYTE + RUN_MIN);
        if (run > n - done)
            return false;
        memset(out + done, in[i] < RUN_BYTE ? in[i] : ZEROS, run);
        done += run;
    }
    return done == n;
}

/* Digit k of a byte: -1, 0 or 1. */
static inline int32_t digit(uint8_t byte, size_t k) {
    static const uint8_t powers[DIGITS] = {81, 27, 9, 3, 1};
    return (int32_t)(byte / powers[k] % 3) - 1;
}

/* Is what pads the last group zero? */
static bool padded(const room *r, size_t count) {
    const size_t n = (count - 1) % GROUP + 1, each = bytes_of(n);
    const uint8_t *bytes = r->bytes + (count - n) / DIGITS;
    for (size_t i = n; i < DIGITS * each; i++)
        if (digit(bytes[i % each], i / each) != 0)
            return false;
    return true;
}

static bool unpack(const sl_decoder *d, sl_payload payload, size_t count) {
    room *r = d->memory;
    memcpy(&r->m, payload.data, sizeof r->m);
    return take_runs((const uint8_t *)payload.data + sizeof r->m, payload.bytes - sizeof r->m,
                     bytes_of(count), r->bytes);
}

static int check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    room *r = d->memory;
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    if (payload.bytes < sizeof r->m || !unpack(d, payload, count))
        return SL_EPROTO;
    return float_bits(r->m) < FLOAT_INFINITY && padded(r, count) ? 0 : SL_EPROTO;
}

/* Most bytes are of zeros: these are passed by, eight at a time if there are so many. */
static void add_group(const uint8_t *bytes, size_t n, float value, float *acc) {
    static const uint8_t zeros[8] = {ZEROS, ZEROS, ZEROS, ZEROS, ZEROS, ZEROS, ZEROS, ZEROS};
    const float values[] = {-value, 0, value};
    const size_t each = bytes_of(n);
    for (size_t i = 0; i < each; i++) {
        if (i + sizeof zeros <= each && memcmp(bytes + i, zeros, sizeof zeros) == 0)
            i += sizeof zeros - 1;
        else if (bytes[i] != ZEROS)
            for (size_t k = 0; k < DIGITS && k * each + i < n; k++)
                acc[k * each + i] += values[digit(bytes[i], k) + 1];
    }
}

static void add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    room *r = d->memory;
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    unpack(d, payload, count);
    for (size_t i = 0; i < count; i += GROUP) {
        const size_t n = count - i < GROUP ? count - i : GROUP;
        add_group(r->bytes + i / DIGITS, n, weight * r->m, acc + from + i);
    }
}

static const sl_key keys[] = {
    {SL_OWN_REAL(multiplier, 1, 2 * SL_BELOW_1), .fallback = "1",
     .help = "s; what is below s/2 times the largest magnitude is not sent"},
    SL_KEYS_END,
};

const codec_ops sl_three_lc_codec = {.keys = keys,
                                     .quality = quality,
                                     .bits = bits,
                                     .check = check,
                                     .lay_out = lay_out,
                                     .describe = sl_codec_no_kernel,
                                     .encoder_bytes = room_bytes,
                                     .decoder_bytes = room_bytes,
                                     .begin = begin,
                                     .encode = encode,
                                     .check_part = check_part,
                                     .add = add};
