/* test_compress_every.c - what every compressor promises with every coding that it takes: parts and
 * sources change nothing, sizes are the formula, quality holds, what is not finite is not sent, and
 * no payload of a peer does harm. A compressor that is added is among them. */
#include <float.h>

#include "compress/lossless/entropy.h"
#include "compressor_cases.h"
#include "compressor_sizes.h"

static bool is_quick;  /* those tests that a sanitizer is for, on shorter vectors */
static int slow_count; /* cases of the other tests */

/* Before the tests that follow add themselves. */
__attribute__((constructor)) static void gather(void) {
    is_quick = getenv("STARLING_QUICK") != NULL;
    gather_cases();
    slow_count = is_quick ? 0 : case_count;
}

/* ---- how they are used ---- */

/* False: a part of so many bytes is too short for a rotated piece. */
static bool opens(const sl_compressor_config *c, size_t d, size_t part_bytes) {
    sl_codec *codec = NULL;
    sl_error error = {0};
    const int result = sl_codec_open(&codec, c, d, part_bytes, &error);
    ENSURE(result == 0 || (part_bytes < PART_USUAL && strstr(error.text, "cannot be shorter")),
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

/* Do random numbers decide? Then they are others of each tensor. */
static bool is_drawn(const sl_compressor_config *c) {
    switch ((int)c->kind) {
    case SL_COMPRESSOR_QSGD:
    case SL_COMPRESSOR_TERNGRAD:
    case SL_COMPRESSOR_NATURAL:
    case SL_COMPRESSOR_ROTATED_QSGD:
    case SL_COMPRESSOR_ROTATED_TERNGRAD:
    case SL_COMPRESSOR_DRIVE:
    case SL_COMPRESSOR_EDEN:
    case SL_COMPRESSOR_RANDOM_K:
    case SL_COMPRESSOR_RANDOM_DROPPING:
    case SL_COMPRESSOR_MAGNITUDE_DROPPING:
    case SL_COMPRESSOR_SHARED_MASK: /* or other blocks of each */
        return true;
    default:
        return false;
    }
}

/* ---- messages ---- */

static float *uneven(size_t d, uint32_t stream) {
    float *v = gaussian(d, stream);
    for (size_t i = 3; i < d; i += 7)
        v[i] = i % 2 ? -0.0f : 0x1p-20f * v[i];
    return v;
}

static int take_bytes(wire *w, uint32_t part, const uint8_t *bytes, size_t count) {
    return take_part(w, &message, part, (sl_payload){bytes, count}, 1, NULL);
}

static const size_t lengths[] = {1, 2, 3, 7, 8, 9, 63, 65, 1023, 1025, 5121, 20003};

START_LOOP_TEST(parts_sources_and_codings_change_nothing, slow_count) {
    const sl_compressor_config *c = &cases[_i];
    sl_compressor_config plain = *c;
    plain.coding = SL_ENTROPY_NONE;
    for (size_t s = 0; s < LENGTH(lengths); s++) {
        const size_t d = lengths[s];
        float *v = uneven(d, 1), *fresh = gaussian(d, 2);
        const sl_source vectors = source_of(c, v, fresh, false),
                        read = source_of(c, v, fresh, true);
        float *want = through_of(&plain, &vectors, d, PART_ALL);
        EACH(size_t, bytes, PART_SMALL, 7000, 9000, PART_USUAL, PART_ALL) {
            if (!opens(c, d, *bytes))
                continue;
            const bool is_read = *bytes % 1000 != 0 && *bytes != PART_ALL;
            float *got = through_of(c, is_read ? &read : &vectors, d, *bytes);
            ENSURE(memcmp(got, want, d * sizeof *got) == 0, "%s, d %zu, parts of %zu bytes",
                   name_of(c), d, *bytes);
        }
    }
}

/* A receiver that sees parts of two messages in turn decodes both as one that sees them in order.
 */
START_LOOP_TEST(parts_of_two_messages_may_come_in_turns, case_count) {
    const size_t d = 50021;
    const sl_compressor_config c = cases[_i];
    sl_message second = message;
    second.stage++;
    float *v = gaussian(d, 12), *w = gaussian(d, 13), *turns = floats(d), *order = floats(d);
    const size_t bytes = opens(&c, d, PART_SMALL) ? PART_SMALL : PART_USUAL;
    wire p = open_wire(&c, d, bytes), q = open_wire(&c, d, bytes);
    ck_assert_int_eq(send_vector(&p, &message, v), 0);
    ck_assert_int_eq(send_vector(&q, &second, w), 0);
    receive(&p, &message, 1, order);
    receive(&q, &second, 1, order);
    for (uint32_t part = sl_codec_parts(p.codec); part-- > 0;) {
        ck_assert_int_eq(sl_decoder_check(p.decoder, &message, part, p.parts[part]), 0);
        ck_assert_int_eq(sl_decoder_check(p.decoder, &second, part, q.parts[part]), 0);
        sl_decoder_add(p.decoder, &message, part, p.parts[part], 1, turns);
        sl_decoder_add(p.decoder, &second, part, q.parts[part], 1, turns);
    }
    for (size_t i = 0; i < d; i++) /* an element may be in a part of each: sums in another order */
        ENSURE(fabsf(turns[i] - order[i]) <= 0x1p-21f * (fabsf(v[i]) + fabsf(order[i]) + 1),
               "%s: element %zu: %g, not %g", name_of(&c), i, turns[i], order[i]);
}

/* The bytes of one message. */
static size_t bytes_of(const sl_compressor_config *c, const sl_source *source, size_t d,
                       size_t part_bytes) {
    wire w = open_wire(c, d, part_bytes);
    ck_assert_int_eq(send_from(&w, &message, source), 0);
    const size_t bytes = message_bytes(&w);
    ENSURE(w.codec->ops->dense == NULL || c->coding != SL_ENTROPY_NONE ||
               sl_codec_parts(w.codec) > 1 || bytes == sl_codec_part_bytes_max(w.codec),
           "%s: %zu is not most", name_of(c), bytes);
    close_wire(&w);
    return bytes;
}

typedef enum how { EXACTLY, AT_MOST, UNKNOWN } how;

/* How does sl_compressor_bits() know the length of a message without a code? */
static how sure_of(const sl_compressor_config *c) {
    switch ((int)c->kind) {
    case SL_COMPRESSOR_THREE_LC:
    case SL_COMPRESSOR_ADACOMP:
        return AT_MOST;
    case SL_COMPRESSOR_RANDOM_DROPPING: /* it depends on the numbers */
    case SL_COMPRESSOR_MAGNITUDE_DROPPING:
    case SL_COMPRESSOR_NONZEROS:
    case SL_COMPRESSOR_STROM:
        return UNKNOWN;
    default:
        return c->order == SL_ORDER_CYCLIC ? UNKNOWN : EXACTLY;
    }
}

/* ---- tensors ---- */

/* What a vector of tensors brings, and its bytes. */
static size_t through_split(const sl_compressor_config *c, const sl_source *source,
                            const size_t *ends, size_t count, size_t part_bytes, float *out) {
    sl_codec *codec = NULL;
    sl_error error = {0};
    ENSURE(sl_codec_open_split(&codec, c, ends, NULL, count, part_bytes, &error) == 0, "%s: %s",
           name_of(c), error.text);
    wire w = open_around(codec, ends[count - 1], part_bytes);
    ck_assert_int_eq(send_from(&w, &message, source), 0);
    receive(&w, &message, 1, out);
    return message_bytes(&w);
}

START_LOOP_TEST(tensors_are_compressed_one_by_one, slow_count) {
    const sl_compressor_config *c = &cases[_i];
    static const size_t ends[] = {3, 5000, 5001, 7000};
    const size_t part_bytes = opens(c, 7000, PART_SMALL) ? PART_SMALL : PART_USUAL;
    float *v = gaussian(7000, 4), *fresh = gaussian(7000, 5), *got = floats(7000);
    sl_source source = source_of(c, v, fresh, false);
    for (size_t i = 5000; i < 7000; i++)
        v[i] *= 100;
    size_t bytes = through_split(c, &source, ends, 4, part_bytes, got);
    for (size_t t = 0, from = 0; t < 4; from = ends[t++]) {
        const size_t d = ends[t] - from;
        source = source_of(c, v + from, fresh + from, false);
        float *alone = through_of(c, &source, d, part_bytes);
        bytes -= bytes_of(c, &source, d, part_bytes);
        ENSURE(is_drawn(c) || memcmp(got + from, alone, d * sizeof *alone) == 0,
               "%s: tensor %zu differs", name_of(c), t);
    }
    const bool is_fixed = c->coding == SL_ENTROPY_NONE && sure_of(c) == EXACTLY;
    ENSURE(bytes == 0 || (is_drawn(c) && !is_fixed), "%s: %zd bytes more", name_of(c), bytes);
    memcpy(v + 1000, v, 1000 * sizeof *v);
    memcpy(fresh + 1000, fresh, 1000 * sizeof *fresh);
    memset(got, 0, 2000 * sizeof *got);
    source = source_of(c, v, fresh, false);
    through_split(c, &source, (const size_t[]){1000, 2000}, 2, part_bytes, got);
    ENSURE((memcmp(got, got + 1000, 1000 * sizeof *got) != 0) == is_drawn(c),
           "%s: two equal tensors", name_of(c));
}

/* ---- sizes ---- */

static void expect_size(const sl_compressor_config *c, const float *v, size_t d, how sure) {
    const size_t got = bytes_of(c, &(sl_source){.vector = v}, d, PART_ALL),
                 most = ((size_t)sl_compressor_bits(c, d) + 7) / 8;
    ENSURE(sure == EXACTLY ? got == most : sure != AT_MOST || got <= most,
           "%s, d %zu: %zu bytes, not %zu", name_of(c), d, got, most);
}

/* test_compress_hand.c and test_kernels.c have the bytes. */
START_LOOP_TEST(sizes_are_the_formula, slow_count) {
    sl_compressor_config c = cases[_i];
    if (c.coding != SL_ENTROPY_NONE)
        return; /* their tests know what is expected of them */
    for (size_t s = 0; s < LENGTH(lengths); s++) {
        const size_t d = lengths[s];
        const bool takes_k = sl_compressor_reads(c.kind, "k") && c.order != SL_ORDER_CYCLIC;
        float *v = uneven(d, 6), *signs = gaussian(d, 2);
        for (size_t i = 0; i < d; i++)
            signs[i] = copysignf(1, signs[i]);
        for (size_t k = 1; k <= (takes_k ? d : 1); k = k * 5 / 2 + 1) {
            c.k = takes_k ? k : 0;
            if (sl_compressor_check(&c, d, &(sl_error){0}) != 0)
                continue;
            expect_size(&c, v, d, sure_of(&c));
            if (c.kind == SL_COMPRESSOR_THREE_LC) /* no zero, no run */
                expect_size(&c, signs, d, EXACTLY);
        }
    }
}

/* ---- quality ---- */

enum { ELEMENTS = 60 };

/* Is the mean of what is decoded just the vector? What is clipped is lost, and a rotation by signs
 * and Walsh's matrix is near a random one only. */
static bool has_exact_mean(const sl_compressor_config *c) {
    return c->clip_sigma == 0 && c->kind != SL_COMPRESSOR_DRIVE && c->kind != SL_COMPRESSOR_EDEN;
}

/* Holds usual_delta of a short vector as well? Other programs look at eden's and 3lc's. */
static bool has_usual_delta(const sl_compressor_config *c) {
    return c->kind == SL_COMPRESSOR_STC || c->kind == SL_COMPRESSOR_SBC ||
           c->kind == SL_COMPRESSOR_POS_NEG || c->kind == SL_COMPRESSOR_SCALED_SIGN ||
           c->kind == SL_COMPRESSOR_ONE_BIT;
}

static double resolution_of(const sl_compressor_config *c) {
    if (width_of(c) == 0 || c->kind == SL_COMPRESSOR_NATURAL)
        return 0x1p-17;
    const size_t levels = c->levels > 1 ? c->levels : 1, bits = bits_for(levels + 1);
    return ldexp(1.0 / (double)levels, -(int)(bits > 5 ? 21 - bits : 16)) + 0x1p-23;
}

/* Within five standard deviations over many messages. */
static void expect_quality(const sl_compressor_config *c, const float *v, bool is_usual) {
    const sl_quality q = sl_compressor_quality(c, ELEMENTS);
    const int trials = q.unbiased ? 8000 : 1000;
    const double norm = sl_vec_cpu()->norm2_squared(v, ELEMENTS);
    double sum[ELEMENTS] = {0}, squares[ELEMENTS] = {0}, error = 0, error2 = 0;
    float *out = floats(ELEMENTS);
    wire p = open_wire(c, ELEMENTS, PART_SMALL);
    for (int t = 1; t <= trials; t++) {
        const sl_message m = {.seed = 99, .exchange = (uint64_t)t, .sender = 1};
        double e = 0;
        memset(out, 0, ELEMENTS * sizeof *out);
        ENSURE(send_vector(&p, &m, v) == 0, "%s: not sent", name_of(c));
        ENSURE(sl_decoder_check(p.decoder, &m, 0, p.parts[0]) == 0, "%s", name_of(c));
        sl_decoder_add(p.decoder, &m, 0, p.parts[0], 1, out);
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
    ENSURE(!is_usual || !has_usual_delta(c) || error <= 1 - q.usual_delta + bar,
           "%s: error %g, usual delta %g", name_of(c), error, q.usual_delta);
}

START_LOOP_TEST(quality_is_as_promised, slow_count) {
    const sl_compressor_config c = cases[_i];
    float *v = gaussian(ELEMENTS, 14);
    if (c.coding != SL_ENTROPY_NONE)
        return;
    expect_quality(&c, v, true);
    for (int form = 0; form < 4; form++) {
        for (int i = 0; i < ELEMENTS; i++)
            v[i] = form == 0   ? (i % 3 ? 0.75f : -0.75f) /* between two powers of two */
                   : form == 1 ? (i == 0 ? 1 : 1 / (1 + sqrtf(ELEMENTS))) /* worst for terngrad */
                   : form == 2 ? (i == 0 ? 1 : 0.75f)
                               : (i == 0 ? 1.3f : 1e-3f * (float)(i - 30));
        expect_quality(&c, v, false);
    }
}

/* ---- what cannot be sent ---- */

START_LOOP_TEST(zeros_stay_zeros, case_count) {
    EACH(size_t, d, 1, 5, 1024, 3001, 32771) {
        float *v = floats(*d), *fresh = gaussian(*d, 1);
        const sl_source source = source_of(&cases[_i], v, fresh, false);
        for (size_t i = 0; i < *d; i += 2)
            v[i] = -0.0f;
        float *got = through_of(&cases[_i], &source, *d, PART_USUAL);
        expect_equal(got, v, *d);
    }
}

/* The case, with all elements drawn where only the drawn ones are looked at. */
static sl_compressor_config that_sees_all(sl_compressor_config c) {
    if (sl_compressor_reads_drawn(c.kind)) {
        c.fraction = c.probability = 1;
        c.k = 0;
    }
    return c;
}

static void expect_unsent(wire *p, float *v, size_t place, float bad) {
    const float kept = v[place];
    v[place] = bad;
    ENSURE(send_vector(p, &message, v) == SL_EDIVERGED, "%s: %g at %zu went through",
           name_of(&p->codec->config), bad, place);
    v[place] = kept;
}

static void expect_none_sent(const sl_compressor_config *c, float *v, size_t d, size_t part_bytes) {
    float *got = floats(d), *want = through(c, v, d, part_bytes);
    wire w = open_wire(c, d, part_bytes);
    EACH(size_t, place, 0, 999, 1024, 8191, d - 1)
    EACH(float, bad, NAN, -INFINITY)
    if (*place < d)
        expect_unsent(&w, v, *place, *bad);
    ck_assert_int_eq(send_vector(&w, &message, v), 0);
    receive(&w, &message, 1, got);
    expect_equal(got, want, d);
}

/* And what came before leaves no trace. Identity looks at nothing; nonzeros has two forms. */
START_LOOP_TEST(what_is_not_finite_is_not_sent, slow_count) {
    const sl_compressor_config c = that_sees_all(cases[_i]);
    if (c.kind == SL_COMPRESSOR_IDENTITY)
        return;
    EACH(size_t, d, 1, 1000, 20003) EACH(size_t, bytes, PART_SMALL, PART_USUAL) {
        if (!opens(&c, *d, *bytes))
            continue;
        float *v = gaussian(*d, 2);
        expect_none_sent(&c, v, *d, *bytes);
        if (c.kind == SL_COMPRESSOR_NONZEROS) {
            for (size_t i = 0; i < *d; i++)
                v[i] *= i % 100 == 50;
            expect_none_sent(&c, v, *d, *bytes);
        }
    }
    const size_t many = 70001;
    float *v = gaussian(many, 2);
    wire p = open_wire(&c, many, PART_USUAL);
    for (size_t i = 7; i < many; i += many / 8)
        expect_unsent(&p, v, i, i % 2 ? NAN : -INFINITY);
    for (size_t i = 0; i < many; i++)
        v[i] = NAN;
    ck_assert_int_eq(send_vector(&p, &message, v), SL_EDIVERGED);
}

/* The largest float is refused, or comes through as a number; but where a vector is turned back,
 * the sums on the way may be none. */
START_LOOP_TEST(what_is_sent_stays_finite, case_count) {
    const sl_compressor_config c = that_sees_all(cases[_i]);
    EACH(size_t, d, 1, 5, 1024, 32771) for (int many = 0; many < 2; many++) {
        float *v = floats(*d), *got = floats(*d);
        for (size_t i = many ? 0 : *d - 1; i < *d; i++)
            v[i] = i % 2 ? FLT_MAX : -FLT_MAX;
        wire p = open_wire(&c, *d, PART_USUAL);
        const int result = send_vector(&p, &message, v);
        ENSURE(result == 0 || result == SL_EDIVERGED, "%s: %d", name_of(&c), result);
        if (result == 0 && !p.codec->ops->is_rotated)
            receive(&p, &message, 0.25f, got);
        for (size_t i = 0; i < *d; i++)
            ENSURE(isfinite(got[i]), "%s, d %zu: element %zu is %g", name_of(&c), *d, i, got[i]);
    }
}

/* ---- a peer's bytes: what passes all the same, fuzz_payload.c adds ---- */

/* May a message of other length be one, too? */
static bool has_any_length(const sl_compressor_config *c) {
    return c->kind == SL_COMPRESSOR_STROM || c->kind == SL_COMPRESSOR_ADACOMP ||
           c->kind == SL_COMPRESSOR_MAGNITUDE_DROPPING || c->kind == SL_COMPRESSOR_NONZEROS ||
           c->kind == SL_COMPRESSOR_THREE_LC;
}

/* The length of a coded part that no code makes shorter. */
static size_t bytes_without_code(const wire *p, uint32_t part, const uint8_t *bytes) {
    part_numbers n = {.ahead = 0};
    p->codec->ops->numbers(p->codec, part, NULL, &n);
    uint32_t count = (uint32_t)n.count;
    if (n.counted)
        memcpy(&count, bytes + n.ahead, sizeof count);
    return n.ahead + n.counted * sizeof count + ((size_t)count * n.width + 7) / 8;
}

/* May so many bytes be a part, too, whatever the vector? A code's words end with the last number:
 * what is cut off leaves too few bits, and what stands behind is too much, unless it makes the part
 * as long as without a code. A part that was sent without one may begin with a shorter, coded one.
 */
static bool may_be_as_long(const wire *p, uint32_t part, const uint8_t *bytes, size_t right,
                           size_t n) {
    const sl_compressor_config *c = &p->codec->config;
    if (c->coding == SL_ENTROPY_NONE)
        return has_any_length(c);
    const size_t longest = bytes_without_code(p, part, bytes);
    return right < longest ? n == longest : n < right;
}

static bool begins_with_a_float(const sl_compressor_config *c) {
    return scales_of(c, 1) > 0 || (width_of(c) == 0 && c->kind != SL_COMPRESSOR_STROM);
}

static void spoil_floats(wire *p, uint32_t part, uint8_t *bytes, size_t count) {
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
            ENSURE(take_bytes(p, part, bytes, count) == SL_EPROTO, "%s: %g at %zu was taken",
                   name_of(c), bad[b], at);
            memcpy(bytes + at, kept, 4);
        }
}

static void spoil_padding(wire *p, uint32_t part, uint8_t *bytes, size_t count) {
    size_t from, elements;
    sl_codec_part_range(p->codec, part, &from, &elements);
    const unsigned used = (unsigned)(elements * width_of(&p->codec->config) % 8);
    for (unsigned b = used; used != 0 && b < 8; b++) {
        bytes[count - 1] ^= (uint8_t)(1u << b);
        ENSURE(take_bytes(p, part, bytes, count) == SL_EPROTO, "%s: bit %u behind the codes",
               name_of(&p->codec->config), b);
        bytes[count - 1] ^= (uint8_t)(1u << b);
    }
}

static void spoil(wire *p, uint32_t part) {
    const sl_compressor_config *c = &p->codec->config;
    const size_t right = p->parts[part].bytes;
    const bool is_plain = c->coding == SL_ENTROPY_NONE;
    uint8_t *bytes = calloc(1, right + 9);
    memcpy(bytes, p->parts[part].data, right);
    ck_assert_int_eq(take_bytes(p, part, bytes, right), 0);
    for (size_t n = 0; n < right + 9; n += n + 9 < right ? 1 + n / 16 : 1) {
        const int result = n == right ? 0 : take_bytes(p, part, bytes, n);
        ENSURE(n == right || result == SL_EPROTO || may_be_as_long(p, part, bytes, right, n),
               "%s: %zu of %zu bytes are taken", name_of(c), n, right);
    }
    if (right >= 4 && begins_with_a_float(c))
        spoil_floats(p, part, bytes, right);
    if (is_plain && width_of(c) > 0 && c->kind != SL_COMPRESSOR_MODULAR) /* which ignores it */
        spoil_padding(p, part, bytes, right);
    free(bytes);
}

START_LOOP_TEST(a_wrong_payload_is_refused, case_count) {
    const sl_compressor_config *c = &cases[_i];
    EACH(size_t, d, 1, 9, 1501, 3000, 20003) {
        if (is_quick && *d > 2000)
            continue;
        float *v = uneven(*d, 15);
        wire p = open_wire(c, *d, opens(c, *d, PART_SMALL) ? PART_SMALL : PART_USUAL);
        const uint32_t parts = sl_codec_parts(p.codec);
        ck_assert_int_eq(send_vector(&p, &message, v), 0);
        for (uint32_t part = 0; part < parts; part += part + 2 < parts ? parts / 3 + 1 : 1)
            spoil(&p, part);
        spoil(&p, parts - 1);
        ck_assert_int_eq(take_bytes(&p, parts, p.parts[0].data, p.parts[0].bytes), SL_EPROTO);
    }
}
