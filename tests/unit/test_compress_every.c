/* test_compress_every.c - what every compressor promises with every coding that it takes: parts and
 * sources change nothing, sizes are the formula, quality holds, what is not finite is not sent, and
 * no payload of a peer does harm. A compressor that is added is among them. */
#include <float.h>
#include <stdio.h>

#include "compressor_cases.h"
#include "sparse_wire.h"

#define ENSURE(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__); /* an assertion for each element takes a minute */          \
    } while (0)
enum { USUAL_PART = 1 << 16 };
static bool is_quick; /* the first four tests, for a sanitizer */

/* ---- messages ---- */

static float *uneven(size_t d, uint32_t stream) {
    float *v = gaussian(d, stream);
    for (size_t i = 3; i < d; i += 7)
        v[i] = i % 2 ? -0.0f : 0x1p-20f * v[i];
    return v;
}

/* False: a part of so many bytes is too short for a rotated piece. */
static bool opens(const sl_compressor_config *c, size_t d, size_t part_bytes) {
    sl_codec *codec = NULL;
    sl_error error = {0};
    const int result = sl_codec_open(&codec, c, d, part_bytes, &error);
    ENSURE(result == 0 || (part_bytes < USUAL_PART && strstr(error.text, "cannot be shorter")),
           "%s, d %zu: %s", name_of(c), d, error.text);
    sl_codec_close(&codec);
    return result == 0;
}

static void read_block(void *context, size_t from, size_t count, float *out) {
    ENSURE(count <= SL_BLOCK && from % SL_BLOCK == 0, "[%zu, %zu)", from, from + count);
    memcpy(out, (const float *)context + from, count * sizeof *out);
}

static sl_source source_of(const sl_compressor_config *c, float *v, const float *fresh,
                           bool is_read) {
    const float *second = sl_compressor_reads_fresh(c->kind) ? fresh : NULL;
    return is_read ? (sl_source){.read = read_block, .context = v, .fresh = second}
                   : (sl_source){.vector = v, .fresh = second};
}

/* In just as much memory as it has bytes: a sanitizer sees what is read behind it. */
static int check_exact(pair *p, uint32_t part, const uint8_t *bytes, size_t count, float *acc) {
    uint8_t *exact = malloc(count > 0 ? count : 1);
    memcpy(exact, bytes, count);
    const sl_payload payload = {exact, count};
    const int result = sl_decoder_check(p->decoder, &a_message, part, payload);
    ENSURE(result == 0 || result == SL_EPROTO, "%d", result);
    if (result == 0 && acc != NULL)
        sl_decoder_add(p->decoder, &a_message, part, payload, 1, acc);
    free(exact);
    return result;
}

/* Encoded into memory that shows what is written behind a part, and decoded from exact memory, the
 * last part first. */
static float *through(const sl_compressor_config *c, float *v, const float *fresh, size_t d,
                      size_t part_bytes, bool is_read) {
    pair p = open_pair(*c, d, part_bytes);
    const sl_source source = source_of(c, v, fresh, is_read);
    const uint32_t parts = sl_codec_parts(p.codec);
    const size_t most = sl_codec_part_bytes_max(p.codec), stride = (most + 63) / 64 * 64;
    const bool is_tight = p.codec->ops->dense != NULL && c->coding == SL_ENTROPY_NONE;
    float *out = vector_of(d);
    memset(p.buffer, 0xA5, stride * parts);
    ENSURE(encode(&p, &a_message, &source) == 0, "%s, d %zu: not sent", name_of(c), d);
    for (uint32_t part = parts; part-- > 0;) {
        for (size_t i = is_tight ? p.payloads[part].bytes : most; i < stride; i++)
            ENSURE(p.buffer[part * stride + i] == 0xA5, "%s: wrote behind part %u", name_of(c),
                   part);
        ENSURE(check_exact(&p, part, p.payloads[part].data, p.payloads[part].bytes, out) == 0,
               "%s, d %zu: part %u is refused", name_of(c), d, part);
    }
    close_pair(&p);
    return out;
}

static const size_t lengths[] = {1,   2,    3,    5,    7,    8,    9,    15,    63,    64,    65,
                                 511, 1000, 1023, 1024, 1025, 2049, 5121, 20003, 66561, 150001};

START_TEST(parts_sources_and_codings_change_nothing) {
    const sl_compressor_config *c = &cases[_i];
    sl_compressor_config plain = *c;
    plain.coding = SL_ENTROPY_NONE;
    for (size_t s = 0; s < LENGTH(lengths); s++) {
        const size_t d = lengths[s];
        float *v = uneven(d, 1), *fresh = gaussian(d, 2),
              *want = through(&plain, v, fresh, d, ONE_PART, false);
        EACH(size_t, bytes, SMALL_PART, 7000, 9000, USUAL_PART, ONE_PART) {
            if (!opens(c, d, *bytes))
                continue;
            float *got = through(c, v, fresh, d, *bytes, *bytes % 1000 != 0 && *bytes != ONE_PART);
            ENSURE(memcmp(got, want, d * sizeof *got) == 0, "%s, d %zu, parts of %zu bytes",
                   name_of(c), d, *bytes);
            release(got);
        }
        release(want);
        release(fresh);
        release(v);
    }
}
END_TEST

/* A receiver that sees parts of two messages in turn decodes both as one that sees them in order.
 */
START_TEST(parts_of_two_messages_may_come_in_turns) {
    const size_t d = 50021;
    const sl_compressor_config c = cases[_i];
    sl_message second = a_message;
    second.stage++;
    float *v = gaussian(d, 12), *w = gaussian(d, 13), *turns = vector_of(d), *order = vector_of(d);
    const size_t bytes = opens(&c, d, SMALL_PART) ? SMALL_PART : USUAL_PART;
    pair p = open_pair(c, d, bytes), q = open_pair(c, d, bytes);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    ck_assert_int_eq(encode_vector(&q, &second, w), 0);
    decode(&p, &a_message, 1, order);
    decode(&q, &second, 1, order);
    for (uint32_t part = sl_codec_parts(p.codec); part-- > 0;) {
        ck_assert_int_eq(sl_decoder_check(p.decoder, &a_message, part, p.payloads[part]), 0);
        ck_assert_int_eq(sl_decoder_check(p.decoder, &second, part, q.payloads[part]), 0);
        sl_decoder_add(p.decoder, &a_message, part, p.payloads[part], 1, turns);
        sl_decoder_add(p.decoder, &second, part, q.payloads[part], 1, turns);
    }
    for (size_t i = 0; i < d; i++) /* an element may be in a part of each: sums in another order */
        ENSURE(fabsf(turns[i] - order[i]) <= 0x1p-21f * (fabsf(v[i]) + fabsf(order[i]) + 1),
               "%s: element %zu: %g, not %g", name_of(&c), i, turns[i], order[i]);
    close_pair(&p);
    close_pair(&q);
    release(v);
    release(w);
    release(turns);
    release(order);
}
END_TEST

START_TEST(weights_and_factors_multiply_what_is_added) {
    const size_t d = 5000;
    sl_compressor_config c = cases[_i];
    float *v = uneven(d, 7), *acc = gaussian(d, 8), *before = gaussian(d, 8),
          *plain = through(&c, v, NULL, d, ONE_PART, false), *divided;
    pair p = open_pair(c, d, USUAL_PART);
    ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
    decode(&p, &a_message, 0.25f, acc);
    close_pair(&p);
    for (size_t i = 0; i < d; i++)
        ENSURE(fabsf(acc[i] - before[i] - 0.25f * plain[i]) <= 1e-5f * (1 + fabsf(plain[i])),
               "%s: element %zu", name_of(&c), i);
    const sl_quality q = sl_compressor_quality(&c, d);
    c.contractive = true;
    divided = through(&c, v, NULL, d, ONE_PART, false);
    const float factor = q.unbiased ? (float)(1 / (1 + q.omega)) : 1;
    /* These scale otherwise then. */
    if (c.kind != SL_COMPRESSOR_DRIVE && c.kind != SL_COMPRESSOR_EDEN)
        for (size_t i = 0; i < d; i++)
            ENSURE(fabsf(divided[i] - factor * plain[i]) <= 1e-5f * (1 + fabsf(plain[i])),
                   "%s: element %zu is %g, not %g of %g", name_of(&c), i, divided[i], factor,
                   plain[i]);
    release(v);
    release(acc);
    release(before);
    release(plain);
    release(divided);
}
END_TEST

/* ---- sizes ---- */

static size_t bits_for(size_t values) {
    size_t bits = 0;
    while (((size_t)1 << bits) < values)
        bits++;
    return bits;
}

/* docs/compressors.md: of an element, where each has a code of its own; 0: they have none. */
static size_t width_of(const sl_compressor_config *c) {
    static const size_t widths[SL_COMPRESSOR_KINDS] = {
        [SL_COMPRESSOR_IDENTITY] = 32,   [SL_COMPRESSOR_FLOAT16] = 16,
        [SL_COMPRESSOR_BFLOAT16] = 16,   [SL_COMPRESSOR_FLOAT8] = 8,
        [SL_COMPRESSOR_NATURAL] = 9,     [SL_COMPRESSOR_TERNGRAD] = 2,
        [SL_COMPRESSOR_THRESHOLD] = 2,   [SL_COMPRESSOR_ROTATED_TERNGRAD] = 2,
        [SL_COMPRESSOR_SCALED_SIGN] = 1, [SL_COMPRESSOR_ONE_BIT] = 1,
        [SL_COMPRESSOR_DRIVE] = 1};
    if (c->kind == SL_COMPRESSOR_QSGD || c->kind == SL_COMPRESSOR_ROTATED_QSGD)
        return 1 + bits_for((size_t)c->levels + 1);
    if (c->kind == SL_COMPRESSOR_EDEN || c->kind == SL_COMPRESSOR_MODULAR ||
        c->kind == SL_COMPRESSOR_GRID)
        return c->bits;
    return widths[c->kind];
}

/* Floats of a message beside the elements' codes. */
static size_t scales_of(const sl_compressor_config *c, size_t d) {
    const size_t buckets = c->bucket == 0 ? 1 : (d + c->bucket - 1) / c->bucket;
    enum { PIECE = 1 << 14 };
    switch ((int)c->kind) {
    case SL_COMPRESSOR_QSGD:
    case SL_COMPRESSOR_ROTATED_QSGD:
    case SL_COMPRESSOR_TERNGRAD:
    case SL_COMPRESSOR_ROTATED_TERNGRAD:
    case SL_COMPRESSOR_SCALED_SIGN:
        return buckets;
    case SL_COMPRESSOR_ONE_BIT:
        return 2 * buckets;
    case SL_COMPRESSOR_DRIVE:
    case SL_COMPRESSOR_EDEN:
        return d / PIECE + (size_t)__builtin_popcountll(d % PIECE);
    default:
        return c->kind == SL_COMPRESSOR_GRID;
    }
}

static size_t floats_of_part(sl_compressor_kind kind) {
    return kind == SL_COMPRESSOR_STC || kind == SL_COMPRESSOR_SBC ? 1
           : kind == SL_COMPRESSOR_POS_NEG                        ? 2
                                                                  : 0;
}

typedef enum how { EXACTLY, AT_MOST, UNKNOWN } how;

static how documented_bits(const sl_compressor_config *c, size_t d, size_t *bits) {
    const double share = round(c->fraction * (double)d);
    const size_t k = c->k > 0 ? c->k : share < 1 ? 1 : (size_t)share, index = bits_for(d);
    *bits = width_of(c) * d + 32 * scales_of(c, d);
    if (width_of(c) > 0)
        return EXACTLY;
    switch ((int)c->kind) {
    case SL_COMPRESSOR_TOP_K:
        *bits = k * (32 + index) < d + 32 * k ? k * (32 + index) : d + 32 * k;
        return EXACTLY;
    case SL_COMPRESSOR_SHARED_MASK:
        *bits = 32 * k;
        return c->order == SL_ORDER_CYCLIC ? UNKNOWN : EXACTLY;
    case SL_COMPRESSOR_RANDOM_K:
        *bits = 32 * k;
        return EXACTLY;
    case SL_COMPRESSOR_STC:
        *bits = k * (index + 1) + 32;
        return EXACTLY;
    case SL_COMPRESSOR_SBC:
        *bits = k * index + 32;
        return EXACTLY;
    case SL_COMPRESSOR_POS_NEG:
        *bits = (2 * k < d ? 2 * k : d) * (index + 1) + 64;
        return EXACTLY;
    case SL_COMPRESSOR_THREE_LC:
        *bits = 8 * ((d + 4) / 5) + 32;
        return AT_MOST;
    case SL_COMPRESSOR_ADACOMP:
        *bits = 32 + (d + c->bin - 1) / c->bin * bits_for((size_t)c->bin + 1) +
                d * (bits_for(c->bin) + 1);
        return AT_MOST;
    default:
        return UNKNOWN;
    }
}

static void expect_size(const sl_compressor_config *c, size_t d, how sure, size_t bits) {
    float *v = uneven(d, 6);
    const size_t floats = floats_of_part(c->kind);
    EACH(size_t, bytes, SMALL_PART, ONE_PART) {
        if (*bytes == SMALL_PART && (width_of(c) > 0 || sure != EXACTLY))
            continue; /* buckets may lie in two parts */
        pair p = open_pair(*c, d, *bytes);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        const size_t want = (bits - 32 * floats + 7) / 8 + 4 * floats * sl_codec_parts(p.codec),
                     got = message_bytes(&p);
        ENSURE(sure == EXACTLY ? got == want : sure != AT_MOST || got <= want,
               "%s, d %zu: %zu bytes, not %zu", name_of(c), d, got, want);
        ENSURE(p.codec->ops->dense == NULL || got == sl_codec_part_bytes_max(p.codec),
               "%s: %zu is not most", name_of(c), got);
        close_pair(&p);
    }
    release(v);
}

START_TEST(sizes_are_the_formula) {
    sl_compressor_config c = cases[_i];
    size_t bits;
    if (c.coding != SL_ENTROPY_NONE)
        return; /* their tests know what is expected of them */
    for (size_t s = 0; s < LENGTH(lengths); s++) {
        const size_t d = lengths[s];
        for (size_t k = 1; k <= d; k = k * 3 / 2 + 1) {
            const bool takes_k = sl_compressor_reads(c.kind, "k") && c.order != SL_ORDER_CYCLIC;
            c.k = takes_k ? k : 0;
            const how sure = documented_bits(&c, d, &bits);
            if (sl_compressor_check(&c, d, &(sl_error){0}) == 0) {
                ENSURE(sure == UNKNOWN || sl_compressor_bits(&c, d) == (double)bits,
                       "%s, d %zu: %g bits, not %zu", name_of(&c), d, sl_compressor_bits(&c, d),
                       bits);
                expect_size(&c, d, sure, bits);
            }
            if (!takes_k)
                break;
        }
    }
}
END_TEST

/* ---- quality ---- */

enum { ELEMENTS = 60 };

/* Is the mean of what is decoded just the vector? What is clipped is lost, and a rotation by signs
 * and Walsh's matrix is near a random one only. */
static bool has_exact_mean(const sl_compressor_config *c) {
    return c->clip_sigma == 0 && c->kind != SL_COMPRESSOR_DRIVE && c->kind != SL_COMPRESSOR_EDEN;
}

static double resolution_of(const sl_compressor_config *c) {
    if (width_of(c) == 0 || c->kind == SL_COMPRESSOR_NATURAL)
        return 0x1p-17;
    const size_t levels = c->levels > 1 ? c->levels : 1, bits = bits_for(levels + 1);
    return ldexp(1.0 / (double)levels, -(int)(bits > 5 ? 21 - bits : 16)) + 0x1p-23;
}

/* Within five standard deviations over many messages. */
static void expect_quality(const sl_compressor_config *c, const float *v) {
    const sl_quality q = sl_compressor_quality(c, ELEMENTS);
    const int trials = q.unbiased ? 20000 : 2000;
    const double norm = sl_vec_cpu()->norm2_squared(v, ELEMENTS);
    double sum[ELEMENTS] = {0}, squares[ELEMENTS] = {0}, error = 0, error2 = 0;
    float *out = vector_of(ELEMENTS);
    pair p = open_pair(*c, ELEMENTS, SMALL_PART);
    for (int t = 1; t <= trials; t++) {
        const sl_message m = {.seed = 99, .exchange = (uint64_t)t, .sender = 1};
        double e = 0;
        memset(out, 0, ELEMENTS * sizeof *out);
        ENSURE(encode_vector(&p, &m, v) == 0, "%s: not sent", name_of(c));
        ENSURE(sl_decoder_check(p.decoder, &m, 0, p.payloads[0]) == 0, "%s", name_of(c));
        sl_decoder_add(p.decoder, &m, 0, p.payloads[0], 1, out);
        for (int i = 0; i < ELEMENTS; i++) {
            sum[i] += out[i];
            squares[i] += (double)out[i] * out[i];
            e += ((double)out[i] - v[i]) * ((double)out[i] - v[i]) / norm;
        }
        error += e / trials;
        error2 += e * e / trials;
    }
    const double bar = 5 * sqrt(fmax(error2 - error * error, 0) / trials) + 1e-6;
    for (int i = 0; i < ELEMENTS && q.unbiased && has_exact_mean(c); i++) {
        const double mean = sum[i] / trials,
                     spread = sqrt(fmax(squares[i] / trials - mean * mean, 0) / trials);
        ENSURE(fabs(mean - v[i]) <= 5 * spread + sqrt(norm) * resolution_of(c),
               "%s: element %d: mean %.7g +- %.2g, not %.7g", name_of(c), i, mean, spread, v[i]);
    }
    ENSURE(!q.unbiased || error <= q.omega + bar, "%s: error %g, omega %g", name_of(c), error,
           q.omega);
    if (c->kind == SL_COMPRESSOR_RANDOM_K || c->kind == SL_COMPRESSOR_RANDOM_DROPPING)
        ENSURE(!q.unbiased || fabs(error - q.omega) <= bar, "%s: error %g is not %g", name_of(c),
               error, q.omega);
    ENSURE(!q.is_contractive || (q.delta > 0 && error <= 1 - q.delta + bar),
           "%s: error %g, delta %g", name_of(c), error, q.delta);
    close_pair(&p);
    release(out);
}

START_TEST(quality_is_as_promised) {
    const sl_compressor_config c = cases[_i];
    float *v = gaussian(ELEMENTS, 14);
    if (c.coding != SL_ENTROPY_NONE)
        return;
    expect_quality(&c, v);
    for (int form = 0; form < 4; form++) {
        for (int i = 0; i < ELEMENTS; i++)
            v[i] = form == 0   ? (i % 3 ? 0.75f : -0.75f) /* between two powers of two */
                   : form == 1 ? (i == 0 ? 1 : 1 / (1 + sqrtf(ELEMENTS))) /* worst for terngrad */
                   : form == 2 ? (i == 0 ? 1 : 0.75f)
                               : (i == 0 ? 1.3f : 1e-3f * (float)(i - 30));
        expect_quality(&c, v);
    }
    release(v);
}
END_TEST

/* ---- what cannot be sent ---- */

START_TEST(zeros_stay_zeros) {
    EACH(size_t, d, 1, 5, 1024, 3001, 32771) {
        float *v = vector_of(*d);
        for (size_t i = 0; i < *d; i += 2)
            v[i] = -0.0f;
        float *got = through(&cases[_i], v, NULL, *d, USUAL_PART, false);
        expect_equal(got, v, *d);
        release(got);
        release(v);
    }
}
END_TEST

/* The case, with all elements drawn where only the drawn ones are looked at. */
static sl_compressor_config that_sees_all(sl_compressor_config c) {
    if (sl_compressor_reads_drawn(c.kind)) {
        c.fraction = c.probability = 1;
        c.k = 0;
    }
    return c;
}

static void expect_unsent(pair *p, float *v, size_t place, float bad) {
    const float kept = v[place];
    v[place] = bad;
    ENSURE(encode_vector(p, &a_message, v) == SL_EDIVERGED, "%s: %g at %zu went through",
           name_of(&p->codec->config), bad, place);
    v[place] = kept;
}

/* And what came before leaves no trace. Identity looks at nothing. */
START_TEST(what_is_not_finite_is_not_sent) {
    const sl_compressor_config c = that_sees_all(cases[_i]);
    if (c.kind == SL_COMPRESSOR_IDENTITY)
        return;
    EACH(size_t, d, 1, 1000, 9000, 20003) EACH(size_t, bytes, SMALL_PART, USUAL_PART) {
        if (!opens(&c, *d, *bytes))
            continue;
        float *v = gaussian(*d, 2), *got = vector_of(*d),
              *want = through(&c, v, NULL, *d, *bytes, false);
        pair p = open_pair(c, *d, *bytes);
        EACH(size_t, place, 0, 1, 999, 1023, 1024, 4095, 8191, *d / 2, *d - 1)
        EACH(float, bad, NAN, -NAN, INFINITY, -INFINITY)
        if (*place < *d)
            expect_unsent(&p, v, *place, *bad);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        decode(&p, &a_message, 1, got);
        expect_equal(got, want, *d);
        close_pair(&p);
        release(v);
        release(got);
        release(want);
    }
    const size_t many = 300001;
    float *v = gaussian(many, 2);
    pair p = open_pair(c, many, USUAL_PART);
    for (size_t i = 7; i < many; i += many / 8)
        expect_unsent(&p, v, i, i % 2 ? NAN : -INFINITY);
    for (size_t i = 0; i < many; i++)
        v[i] = NAN;
    ck_assert_int_eq(encode_vector(&p, &a_message, v), SL_EDIVERGED);
    close_pair(&p);
    release(v);
}
END_TEST

/* The largest float is refused, or comes through as a number; but where a vector is turned back,
 * the sums on the way may be none. */
START_TEST(what_is_sent_stays_finite) {
    const sl_compressor_config c = that_sees_all(cases[_i]);
    EACH(size_t, d, 1, 5, 1024, 32771) for (int many = 0; many < 2; many++) {
        float *v = vector_of(*d), *got = vector_of(*d);
        for (size_t i = many ? 0 : *d - 1; i < *d; i++)
            v[i] = i % 2 ? FLT_MAX : -FLT_MAX;
        pair p = open_pair(c, *d, USUAL_PART);
        const int result = encode_vector(&p, &a_message, v);
        ENSURE(result == 0 || result == SL_EDIVERGED, "%s: %d", name_of(&c), result);
        if (result == 0 && !p.codec->ops->is_rotated)
            decode(&p, &a_message, 0.25f, got);
        for (size_t i = 0; i < *d; i++)
            ENSURE(isfinite(got[i]), "%s, d %zu: element %zu is %g", name_of(&c), *d, i, got[i]);
        close_pair(&p);
        release(v);
        release(got);
    }
}
END_TEST

/* ---- a peer's bytes ---- */

/* May a message of other length be one, too? */
static bool has_any_length(const sl_compressor_config *c) {
    return c->kind == SL_COMPRESSOR_STROM || c->kind == SL_COMPRESSOR_ADACOMP ||
           c->kind == SL_COMPRESSOR_MAGNITUDE_DROPPING || c->kind == SL_COMPRESSOR_NONZEROS ||
           c->kind == SL_COMPRESSOR_THREE_LC;
}

static bool begins_with_a_float(const sl_compressor_config *c) {
    return scales_of(c, 1) > 0 || (width_of(c) == 0 && c->kind != SL_COMPRESSOR_STROM);
}

static void spoil_floats(pair *p, uint32_t part, uint8_t *bytes, size_t count) {
    const sl_compressor_config *c = &p->codec->config;
    const float scales[] = {NAN, INFINITY, -INFINITY, -1, -0.0f}, /* 1-bit has means */
        rotated[] = {NAN, INFINITY, -INFINITY, 0x1p100f};
    size_t from, elements;
    sl_codec_part_range(p->codec, part, &from, &elements);
    const bool is_rotated = c->kind == SL_COMPRESSOR_DRIVE || c->kind == SL_COMPRESSOR_EDEN,
               is_dense = p->codec->ops->dense != NULL && c->coding == SL_ENTROPY_NONE;
    const float *bad = is_rotated ? rotated : scales;
    const int kinds = is_rotated ? 4 : is_dense && c->kind != SL_COMPRESSOR_ONE_BIT ? 5 : 3;
    const size_t end =
        is_dense || is_rotated ? count - (elements * width_of(c) + 7) / 8 : sizeof(float);
    for (size_t at = 0; at < end; at += 4)
        for (int b = 0; b < kinds; b++) {
            uint8_t kept[4];
            memcpy(kept, bytes + at, 4);
            memcpy(bytes + at, &bad[b], 4);
            ENSURE(check_exact(p, part, bytes, count, NULL) == SL_EPROTO, "%s: %g at %zu was taken",
                   name_of(c), bad[b], at);
            memcpy(bytes + at, kept, 4);
        }
}

static void spoil_padding(pair *p, uint32_t part, uint8_t *bytes, size_t count) {
    size_t from, elements;
    sl_codec_part_range(p->codec, part, &from, &elements);
    const unsigned used = (unsigned)(elements * width_of(&p->codec->config) % 8);
    for (unsigned b = used; used != 0 && b < 8; b++) {
        bytes[count - 1] ^= (uint8_t)(1u << b);
        ENSURE(check_exact(p, part, bytes, count, NULL) == SL_EPROTO, "%s: bit %u behind the codes",
               name_of(&p->codec->config), b);
        bytes[count - 1] ^= (uint8_t)(1u << b);
    }
}

/* What passes can be added, and adds numbers, unless it is multiplied or sent as it is. */
static void spoil_bits(pair *p, uint32_t part, uint8_t *bytes, size_t count, float *acc) {
    size_t from, elements;
    sl_codec_part_range(p->codec, part, &from, &elements);
    for (size_t bit = 0; bit < 8 * count; bit += 1 + bit / (is_quick ? 32 : 512)) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (check_exact(p, part, bytes, count, acc) == 0 &&
            p->codec->config.kind != SL_COMPRESSOR_IDENTITY)
            for (size_t i = 0; i < elements; i++) {
                ENSURE(p->codec->config.scaled || isfinite(acc[from + i]), "%s: bit %zu adds %g",
                       name_of(&p->codec->config), bit, acc[from + i]);
                acc[from + i] = 0;
            }
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void spoil(pair *p, uint32_t part, float *acc) {
    const sl_compressor_config *c = &p->codec->config;
    const size_t right = p->payloads[part].bytes;
    /* Of a few elements, other codes have about as many bytes. */
    const bool is_plain = c->coding == SL_ENTROPY_NONE;
    uint8_t *bytes = calloc(1, right + 9);
    memcpy(bytes, p->payloads[part].data, right);
    ck_assert_int_eq(check_exact(p, part, bytes, right, NULL), 0);
    for (size_t n = 0; n < right + 9; n += n + 9 < right ? 1 + n / 16 : 1) {
        const int result = n == right ? 0 : check_exact(p, part, bytes, n, acc);
        ENSURE(n == right || result == SL_EPROTO ||
                   (is_plain ? has_any_length(c) : p->codec->dimension < 1000),
               "%s: %zu of %zu bytes are taken", name_of(c), n, right);
    }
    if (right >= 4 && begins_with_a_float(c))
        spoil_floats(p, part, bytes, right);
    if (is_plain && width_of(c) > 0 && c->kind != SL_COMPRESSOR_MODULAR) /* which ignores it */
        spoil_padding(p, part, bytes, right);
    spoil_bits(p, part, bytes, right, acc);
    free(bytes);
}

START_TEST(a_wrong_payload_is_refused_or_does_no_harm) {
    const sl_compressor_config *c = &cases[_i];
    EACH(size_t, d, 1, 9, 1501, 3000, 20003) {
        float *v = uneven(*d, 15), *acc = vector_of(*d);
        pair p = open_pair(*c, *d, opens(c, *d, SMALL_PART) ? SMALL_PART : USUAL_PART);
        const uint32_t parts = sl_codec_parts(p.codec);
        ck_assert_int_eq(encode_vector(&p, &a_message, v), 0);
        for (uint32_t part = 0; part < parts; part += part + 2 < parts ? parts / 3 + 1 : 1)
            spoil(&p, part, acc);
        spoil(&p, parts - 1, acc);
        ck_assert_int_eq(check_exact(&p, parts, p.payloads[0].data, p.payloads[0].bytes, NULL),
                         SL_EPROTO);
        close_pair(&p);
        release(v), release(acc);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_every");
    const TTest *const tests[] = {a_wrong_payload_is_refused_or_does_no_harm,
                                  parts_of_two_messages_may_come_in_turns,
                                  zeros_stay_zeros,
                                  what_is_sent_stays_finite,
                                  parts_sources_and_codings_change_nothing,
                                  weights_and_factors_multiply_what_is_added,
                                  sizes_are_the_formula,
                                  quality_is_as_promised,
                                  what_is_not_finite_is_not_sent};
    is_quick = getenv("STARLING_QUICK") != NULL;
    gather_cases();
    for (size_t t = 0; t < (is_quick ? 4 : LENGTH(tests)); t++) {
        TCase *each = tcase_create(tests[t]->name);
        tcase_set_timeout(each, 120);
        tcase_add_loop_test(each, tests[t], 0, case_count);
        suite_add_tcase(suite, each);
    }
    return run_suite(suite);
}
