/* test_compress_dense.c - the dense-coded compressors against a second implementation that goes element by element and bit by bit, and
 * against what their definitions promise: size, unbiasedness, error, and refusal of what cannot be sent or was not sent by them. */
#include "harness.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "compress/codec.h"
#include "compress/pack.h"
#include "starling/compressor.h"
#include "starling/rng.h"

/* Check notes each of its own assertions in a file: too slow for those of each element. */
#define ENSURE(condition, ...)          \
    do {                                \
        if (!(condition))               \
            ck_abort_msg(__VA_ARGS__); \
    } while (0)

enum { PART_SMALL = 4096, PART_USUAL = 112 * 1024, PART_LARGE = 512 * 1024 };

static const sl_message message = {.seed = 0x5EED0123456789ABu, .exchange = 5, .sender = 3, .stage = 2};

/* ---- an encoder, a decoder and the bytes between them ---- */

typedef struct wire {
    sl_codec *codec;
    sl_encoder *encoder;
    sl_decoder *decoder;
    size_t dimension, stride; /* bytes from part to part */
    uint8_t *bytes;
    sl_payload *parts;
} wire;

static wire open_wire(const sl_compressor_config *config, size_t dimension, size_t part_bytes) {
    wire w = {.dimension = dimension};
    sl_error error = {0};
    ENSURE(sl_codec_open(&w.codec, config, dimension, part_bytes, &error) == 0, "%s", error.text);
    ck_assert_int_eq(sl_encoder_open(&w.encoder, w.codec, sl_vec_cpu(), &error), 0);
    ck_assert_int_eq(sl_decoder_open(&w.decoder, w.codec, sl_vec_cpu(), &error), 0);
    ck_assert_uint_le(sl_codec_part_bytes_max(w.codec), part_bytes);
    w.stride = (sl_codec_part_bytes_max(w.codec) + 63) / 64 * 64;
    w.bytes = aligned_alloc(64, w.stride * sl_codec_parts(w.codec));
    w.parts = calloc(sl_codec_parts(w.codec), sizeof *w.parts);
    ck_assert(w.bytes != NULL && w.parts != NULL);
    memset(w.bytes, 0xA5, w.stride * sl_codec_parts(w.codec));
    return w;
}

static void close_wire(wire *w) {
    sl_encoder_close(&w->encoder);
    sl_decoder_close(&w->decoder);
    sl_codec_close(&w->codec);
    free(w->bytes);
    free(w->parts);
}

static int send_from(wire *w, const sl_message *m, const sl_source *source) {
    int result = sl_encoder_begin(w->encoder, m, source);
    for (uint32_t p = 0; result == 0 && p < sl_codec_parts(w->codec); p++) {
        result = sl_encoder_part(w->encoder, p, source, w->bytes + p * w->stride, w->parts + p);
        for (size_t i = w->parts[p].bytes; result == 0 && i < w->stride; i++)
            ENSURE(w->bytes[p * w->stride + i] == 0xA5, "wrote behind part %u", p);
    }
    return result;
}

static int send_vector(wire *w, const sl_message *m, const float *v) {
    return send_from(w, m, &(sl_source){.vector = v});
}

static void receive(wire *w, const sl_message *m, float weight, float *acc) {
    for (uint32_t p = sl_codec_parts(w->codec); p-- > 0;) {
        ENSURE(sl_decoder_check(w->decoder, m, p, w->parts[p]) == 0, "part %u was refused", p);
        sl_decoder_add(w->decoder, m, p, w->parts[p], weight, acc);
    }
}

static float *floats(size_t n) {
    float *v = calloc(n, sizeof *v);
    ck_assert(v != NULL);
    return v;
}

/* Decoded with weight 1, onto zeros; to be freed. */
static float *through(const sl_compressor_config *config, const float *v, size_t n) {
    wire w = open_wire(config, n, PART_USUAL);
    float *out = floats(n);
    ck_assert_int_eq(send_vector(&w, &message, v), 0);
    receive(&w, &message, 1, out);
    close_wire(&w);
    return out;
}

static float *gaussian(size_t n, uint32_t rank) {
    float *v = floats(n);
    sl_rng rng = sl_rng_open(11, rank, 0, SL_PURPOSE_DATA);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)sl_rng_normal(&rng);
    return v;
}

/* Numbers of all sizes, with zeros of both signs, subnormals and repeated ones. */
static float *motley(size_t n, uint32_t rank) {
    float *v = gaussian(n, rank);
    static const float odd[] = {0, -0.0f, 1, -1, 0x1p-149f, -0x1p-127f, 0x1p-126f, 3e-5f, -6e-8f, 60000, -0.5f, 0x1.fffffep-1f};
    for (size_t i = 0; i < n; i += 1 + i % 5)
        v[i] = odd[(i + rank) % (sizeof odd / sizeof *odd)];
    return v;
}

static double squared(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((double)a[i] - (b ? b[i] : 0)) * ((double)a[i] - (b ? b[i] : 0));
    return sum;
}

static const sl_compressor_config kinds[] = {
    {.kind = SL_COMPRESSOR_FLOAT16},
    {.kind = SL_COMPRESSOR_BFLOAT16},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 1},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 512},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 4, .bucket = 1000},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 100, .norm = SL_NORM_MAX},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 127, .bucket = 3072},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 130, .bucket = 4},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 3000, .bucket = 4096, .contractive = true},
    {.kind = SL_COMPRESSOR_QSGD, .levels = 32767, .bucket = 70000, .norm = SL_NORM_MAX},
    {.kind = SL_COMPRESSOR_SCALED_SIGN},
    {.kind = SL_COMPRESSOR_SCALED_SIGN, .bucket = 512},
    {.kind = SL_COMPRESSOR_SCALED_SIGN, .bucket = 1000},
    {.kind = SL_COMPRESSOR_SCALED_SIGN, .bucket = 13},
    {.kind = SL_COMPRESSOR_SCALED_SIGN, .bucket = 266240}, /* each of 262144, which go at once, and some more */
    {.kind = SL_COMPRESSOR_ONE_BIT},
    {.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 2048},
    {.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 4},
    {.kind = SL_COMPRESSOR_TERNGRAD},
    {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 64, .contractive = true},
    {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 777},
    {.kind = SL_COMPRESSOR_NATURAL},
    {.kind = SL_COMPRESSOR_NATURAL, .contractive = true},
    {.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 0.75},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const char *describe(const sl_compressor_config *c) {
    static char text[128];
    snprintf(text, sizeof text, "%s levels %u bucket %u norm %d contractive %d", sl_compressor_name(c->kind), c->levels, c->bucket, (int)c->norm,
             c->contractive);
    return text;
}

/* ---- the second implementation ---- */

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float value_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static size_t bucket_of(const sl_compressor_config *c, size_t d) {
    return c->bucket == 0 || c->bucket > d ? d : c->bucket;
}

static bool has_buckets(const sl_compressor_config *c) {
    return c->kind == SL_COMPRESSOR_QSGD || c->kind == SL_COMPRESSOR_SCALED_SIGN || c->kind == SL_COMPRESSOR_ONE_BIT || c->kind == SL_COMPRESSOR_TERNGRAD;
}

static unsigned level_bits(uint32_t levels) {
    unsigned bits = 0;
    while ((uint64_t)levels + 1 > (uint64_t)1 << bits)
        bits++;
    return bits;
}

static unsigned width_of(const sl_compressor_config *c) {
    switch (c->kind) {
    case SL_COMPRESSOR_FLOAT16:
    case SL_COMPRESSOR_BFLOAT16:
        return 16;
    case SL_COMPRESSOR_QSGD:
        return 1 + level_bits(c->levels);
    case SL_COMPRESSOR_TERNGRAD:
    case SL_COMPRESSOR_THRESHOLD:
        return 2;
    case SL_COMPRESSOR_NATURAL:
        return 9;
    default:
        return 1;
    }
}

/* Folded in the middle until one is left. */
static double sum_by_halves(double *lanes, int count) {
    for (int half = count / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

/* A tile's element i adds to lane i % 16, and the lanes are added by halves; the tiles of 4096 elements add to 256 folds. */
static double tile_sum(const float *v, size_t from, size_t to, double (*term)(double)) {
    double lanes[16] = {0};
    for (size_t i = from; i < to; i++)
        lanes[i % 16] += term(v[i]);
    return sum_by_halves(lanes, 16);
}

/* The same of magnitudes, but those that a lane has of 64 elements are added as floats before: ((1 + 2) + (3 + 4)), 0 for what the tile lacks. */
static double tile_magnitudes(const float *v, size_t from, size_t to) {
    double lanes[16] = {0};
    for (size_t group = from / 64; group * 64 < to; group++)
        for (size_t l = 0; l < 16; l++) {
            float four[4] = {0};
            for (size_t k = 0, i = group * 64 + l; k < 4; k++, i += 16)
                if (i >= from && i < to)
                    four[k] = fabsf(v[i]);
            float left = four[0] + four[1], right = four[2] + four[3];
            lanes[l] += left + right;
        }
    return sum_by_halves(lanes, 16);
}

static double bucket_sum(const float *v, size_t from, size_t to, double (*term)(double)) {
    double folds[256] = {0}, sum = 0;
    for (size_t at = from; at < to; at += 4096) {
        size_t end = at + 4096 < to ? at + 4096 : to;
        folds[(at - from) / 4096 % 256] += term == fabs ? tile_magnitudes(v, at, end) : tile_sum(v, at, end, term);
    }
    for (int f = 0; f < 256; f++)
        sum += folds[f];
    return sum;
}

static double square(double x) {
    return x * x;
}
static double above(double x) {
    return x < 0 ? 0 : x;
}
static double below(double x) {
    return x < 0 ? x : 0;
}

/* Of the bucket [from, to); returns how many. */
static int scales_of(const sl_compressor_config *c, const float *v, size_t from, size_t to, float *scale) {
    double largest = 0;
    size_t negatives = 0;
    for (size_t i = from; i < to; i++) {
        largest = fmax(largest, fabs(v[i]));
        negatives += v[i] < 0;
    }
    if (c->kind == SL_COMPRESSOR_QSGD && c->norm == SL_NORM_L2)
        scale[0] = (float)sqrt(bucket_sum(v, from, to, square));
    else if (c->kind == SL_COMPRESSOR_SCALED_SIGN)
        scale[0] = (float)(bucket_sum(v, from, to, fabs) / (double)(to - from));
    else if (c->kind == SL_COMPRESSOR_ONE_BIT) {
        size_t others = to - from - negatives;
        scale[0] = others > 0 ? (float)(bucket_sum(v, from, to, above) / (double)others) : 0;
        scale[1] = negatives > 0 ? (float)(bucket_sum(v, from, to, below) / (double)negatives) : 0;
        return 2;
    } else
        scale[0] = (float)largest;
    return 1;
}

static uint32_t random_byte(const sl_message *m, size_t block, size_t i) {
    sl_rng_key key = {m->seed, m->exchange, m->sender, SL_PURPOSE_COMPRESS | m->stage << 8};
    uint32_t words[4];
    sl_rng_quick_block(&key, (uint32_t)block, words);
    return words[i >> 2] >> (i & 3) * 8 & 0xFF;
}

/* Two bytes of sixteen in a ring. */
static uint32_t random_bits(const sl_message *m, size_t i) {
    return random_byte(m, i >> 4, i & 15) | random_byte(m, i >> 4, (i + 1) & 15) << 8;
}

/* |x| levels / scale, in units of 2^-bits, plus a random number below one level. */
static uint32_t round_up_or_down(float x, uint32_t levels, float scale, uint32_t random) {
    unsigned bits = level_bits(levels) > 5 ? 21 - level_bits(levels) : 16;
    double per_unit = scale == 0 ? 0 : ldexp(levels, (int)bits) / scale;
    double power = per_unit > 0x1p100 ? 0x1p100 : per_unit < 0x1p-100 ? 0x1p-24 : 1;
    float q = fabsf(x) * (float)power;
    q *= (float)(per_unit / power);
    q += 0.5f;
    uint32_t level = ((uint32_t)q + (random >> (16 - bits))) >> bits;
    return level < levels ? level : levels;
}

/* To the nearest float with `digits` binary digits whose last place is at least 2^least; ties to even. */
static double nearest(double x, int digits, int least) {
    int exponent;
    frexp(x, &exponent);
    int place = exponent - digits > least ? exponent - digits : least;
    return ldexp(nearbyint(ldexp(x, -place)), place);
}

static uint32_t half_code(double x) {
    double rounded = fabs(nearest(x, 11, -24));
    int exponent;
    frexp(rounded, &exponent);
    uint32_t code = rounded < 0x1p-14 ? (uint32_t)ldexp(rounded, 24) : (uint32_t)(exponent + 14) << 10 | ((uint32_t)ldexp(rounded, 11 - exponent) & 0x3FF);
    return code | (uint32_t)(signbit(x) != 0) << 15;
}

static uint32_t code_of(const sl_compressor_config *c, const sl_message *m, const float *scale, float x, size_t i) {
    uint32_t sign = bits_of(x) >> 31, level;
    switch (c->kind) {
    case SL_COMPRESSOR_FLOAT16:
        return half_code(x);
    case SL_COMPRESSOR_BFLOAT16:
        return bits_of((float)nearest(x, 8, -133)) >> 16 | sign << 15;
    case SL_COMPRESSOR_QSGD:
        return round_up_or_down(x, c->levels, scale[0], random_bits(m, i)) | sign << level_bits(c->levels);
    case SL_COMPRESSOR_TERNGRAD:
        level = round_up_or_down(x, 1, scale[0], random_bits(m, i));
        return level << sign;
    case SL_COMPRESSOR_NATURAL:
        return (uint32_t)(((uint64_t)(bits_of(x) & 0x7FFFFFFF) * 2 + random_bits(m, i) * 256 + 128) >> 24) | sign << 8;
    case SL_COMPRESSOR_THRESHOLD:
        return x >= (float)c->threshold ? 1 : x <= -(float)c->threshold ? 2 : 0;
    default:
        return x < 0;
    }
}

/* What a code adds, before its weight: acc += a * b. */
static void factors_of(const sl_compressor_config *c, const float *scale, float weight, uint32_t code, float *a, float *b) {
    float magnitude;
    *a = weight;
    switch (c->kind) {
    case SL_COMPRESSOR_FLOAT16:
        magnitude = (code >> 10 & 31) == 0 ? ldexpf((float)(code & 0x3FF), -24) : ldexpf((float)(1024 + (code & 0x3FF)), (int)(code >> 10 & 31) - 25);
        *b = code >> 15 ? -magnitude : magnitude;
        break;
    case SL_COMPRESSOR_BFLOAT16:
        *b = value_of(code << 16);
        break;
    case SL_COMPRESSOR_QSGD:
        *a = weight * (scale[0] / (float)c->levels);
        magnitude = (float)(code & ((1u << level_bits(c->levels)) - 1));
        *b = code >> level_bits(c->levels) ? -magnitude : magnitude;
        break;
    case SL_COMPRESSOR_TERNGRAD:
    case SL_COMPRESSOR_THRESHOLD:
        *a = weight * (c->kind == SL_COMPRESSOR_TERNGRAD ? scale[0] : (float)c->threshold);
        *b = code == 1 ? 1 : code == 2 ? -1 : 0;
        break;
    case SL_COMPRESSOR_NATURAL:
        magnitude = (code & 0xFF) == 0 ? 0 : ldexpf(1, (int)(code & 0xFF) - 127);
        *b = code >> 8 ? -magnitude : magnitude;
        break;
    default:
        *a = weight * scale[c->kind == SL_COMPRESSOR_ONE_BIT ? code : 0];
        *b = code && c->kind == SL_COMPRESSOR_SCALED_SIGN ? -1 : 1;
    }
}

static void put_bit(uint8_t *bytes, size_t at, uint32_t bit) {
    bytes[at / 8] = (uint8_t)(bytes[at / 8] | (bit & 1) << at % 8);
}

/* The payload of [from, from + count) into `out` (zeroed), which adds to acc too. Returns its bytes. */
static size_t reference(const sl_compressor_config *c, const sl_message *m, const float *v, size_t d, size_t from, size_t count, float weight,
                        uint8_t *out, float *acc) {
    size_t bucket = has_buckets(c) ? bucket_of(c, d) : d, head = 0;
    unsigned width = width_of(c);
    float scale[2] = {0};
    if (has_buckets(c))
        for (size_t b = from / bucket; b <= (from + count - 1) / bucket; b++) {
            int n = scales_of(c, v, b * bucket, (b + 1) * bucket < d ? (b + 1) * bucket : d, scale);
            memcpy(out + head, scale, (size_t)n * sizeof *scale);
            head += (size_t)n * sizeof *scale;
        }
    size_t each = has_buckets(c) ? head / ((from + count - 1) / bucket - from / bucket + 1) : 0;
    for (size_t i = from; i < from + count; i++) {
        memcpy(scale, out + (i / bucket - from / bucket) * each, each);
        uint32_t code = code_of(c, m, scale, v[i], i);
        for (unsigned b = 0; b < width; b++)
            put_bit(out + head, (i - from) * width + b, code >> b);
        float a, b;
        factors_of(c, scale, weight, code, &a, &b);
        float product = a * b;
        acc[i] += product;
    }
    return head + (count * width + 7) / 8;
}

static void compare(const sl_compressor_config *c, size_t d, size_t part_bytes) {
    wire w = open_wire(c, d, part_bytes);
    float *v = motley(d, (uint32_t)d), *got = gaussian(d, 77), *want = gaussian(d, 77);
    uint8_t *bytes = malloc(w.stride + 16);
    double omega = sl_compressor_quality(&(sl_compressor_config){.kind = c->kind, .levels = c->levels, .bucket = c->bucket, .norm = c->norm}, d).omega;
    float weight = 0.3f * (c->contractive ? (float)(1 / (1 + omega)) : 1);
    ck_assert_int_eq(send_vector(&w, &message, v), 0);
    receive(&w, &message, 0.3f, got);
    for (uint32_t p = 0; p < sl_codec_parts(w.codec); p++) {
        size_t from, count;
        sl_codec_part_range(w.codec, p, &from, &count);
        memset(bytes, 0, w.stride + 16);
        size_t n = reference(c, &message, v, d, from, count, weight, bytes, want);
        ENSURE(n == w.parts[p].bytes && memcmp(bytes, w.parts[p].data, n) == 0, "%s: d %zu part %u of %u bytes", describe(c), d, p,
                      (unsigned)part_bytes);
    }
    for (size_t i = 0; i < d; i++)
        ENSURE(bits_of(got[i]) == bits_of(want[i]), "%s: d %zu element %zu: %a, not %a", describe(c), d, i, got[i], want[i]);
    free(v);
    free(got);
    free(want);
    free(bytes);
    close_wire(&w);
}

START_TEST(test_same_bytes) {
    static const size_t sizes[] = {1, 2, 7, 8, 9, 15, 17, 63, 65, 511, 513, 1000, 1023, 1024, 1025, 2049, 5000, 33333, 70001};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        compare(kinds + _i, sizes[s], PART_SMALL);
        compare(kinds + _i, sizes[s], PART_USUAL);
    }
}
END_TEST

START_TEST(test_same_bytes_large) {
    compare(kinds + _i, (1u << 20) + 3, PART_USUAL);
    if (has_buckets(kinds + _i) && kinds[_i].bucket == 0) /* its sums go through the folds more than once */
        compare(kinds + _i, (5u << 19) + 9999, PART_USUAL);
}
END_TEST

START_TEST(test_random_blocks) {
    sl_rng_key key = {0xFEDCBA9876543210u, 0x123456789ABCu, 0x89ABCDEF, 0x205};
    uint32_t many[4 * 100], one[4];
    for (size_t count = 1; count <= 100; count += 11) {
        uint32_t first = 0xFFFFFFF0u - (uint32_t)count; /* and over the end */
        sl_rng_blocks(&key, first, count, many);
        for (size_t i = 0; i < count; i++) {
            sl_rng_block(&key, first + (uint32_t)i, one);
            ck_assert_mem_eq(one, many + 4 * i, sizeof one);
        }
        sl_rng_quick_blocks(&key, first, count, many);
        for (size_t i = 0; i < count; i++) {
            sl_rng_quick_block(&key, first + (uint32_t)i, one);
            ck_assert_mem_eq(one, many + 4 * i, sizeof one);
        }
    }
}
END_TEST

/* Every message of an exchange has random numbers of its own, however many there are. */
START_TEST(test_messages_have_streams_of_their_own) {
    static const uint32_t stages[] = {0, 1, 255, 256, 257, 511, 512, 65535};
    enum { STAGES = sizeof stages / sizeof *stages, EXCHANGES = 3 };
    static const uint64_t exchanges[EXCHANGES] = {1, 2, (UINT64_C(1) << 40) - 1};
    uint32_t blocks[STAGES * EXCHANGES][4];
    for (size_t i = 0; i < STAGES * EXCHANGES; i++) {
        const sl_message m = {.seed = 1, .exchange = exchanges[i / STAGES], .sender = 3, .stage = stages[i % STAGES]};
        const sl_rng_key key = sl_message_key(&m);
        sl_rng_block(&key, 0, blocks[i]);
        for (size_t j = 0; j < i; j++)
            ck_assert_int_ne(memcmp(blocks[i], blocks[j], sizeof blocks[i]), 0);
    }
}
END_TEST

/* ---- packing ---- */

/* Packed in a block of its own, so that what reads or writes behind it is found. */
static void pack_and_look(unsigned width, size_t n) {
    uint16_t codes[SL_BLOCK], back[SL_BLOCK];
    const size_t bytes = (n * width + 7) / 8;
    uint8_t *expected = calloc(bytes, 1), *packed = malloc(bytes);
    sl_rng rng = sl_rng_open(5, width, n, SL_PURPOSE_DATA);
    const uint32_t mask = sl_rng_u32(&rng) & ((1u << width) - 1);
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        codes[i] = (uint16_t)(sl_rng_u32(&rng) & ((1u << width) - 1));
        largest = (codes[i] & mask) > largest ? codes[i] & mask : largest;
        for (unsigned b = 0; b < width; b++)
            put_bit(expected, i * width + b, codes[i] >> b & 1);
    }
    sl_pack(memcpy(back, codes, n * sizeof *codes), n, width, packed);
    ENSURE(memcmp(packed, expected, bytes) == 0, "%zu codes of %u bits are packed wrongly", n, width);
    ENSURE(memcmp(sl_unpack(packed, n, width, back), codes, n * sizeof *codes) == 0, "%zu codes of %u bits are unpacked wrongly", n, width);
    ENSURE(sl_packed_largest(packed, n, width, mask) == largest, "the largest of %zu codes of %u bits & %u is not %u", n, width, mask, largest);
    free(expected);
    free(packed);
}

START_TEST(test_packing) {
    for (unsigned width = 1; width <= 16; width++)
        for (size_t n = 1; n <= SL_BLOCK; n += n < 200 || n + 2 > SL_BLOCK ? 1 : 103)
            pack_and_look(width, n);
}
END_TEST

/* Of more than a block: one code is the largest, wherever it stands. */
START_TEST(test_largest_of_many) {
    enum { MANY = 3 * SL_BLOCK + 5, PLACES = 7 };
    static const size_t places[PLACES] = {0, 1, 500, SL_BLOCK, 2 * SL_BLOCK + 17, MANY - 9, MANY - 1};
    _Alignas(uint16_t) static uint8_t packed[2 * MANY];
    for (unsigned width = 2; width <= 16; width++)
        for (int p = 0; p < PLACES; p++) {
            const uint32_t most = (1u << width) - 2;
            memset(packed, 0, sizeof packed);
            for (unsigned b = 0; b < width; b++)
                put_bit(packed, places[p] * width + b, most >> b & 1);
            ck_assert_uint_eq(sl_packed_largest(packed, MANY, width, (1u << width) - 1), most);
        }
}
END_TEST

/* ---- by hand ---- */

START_TEST(test_small_examples) {
    const float v[] = {3, -4, 0, -0.0f};
    wire w = open_wire(&(sl_compressor_config){.kind = SL_COMPRESSOR_SCALED_SIGN}, 4, PART_USUAL);
    ck_assert_int_eq(send_vector(&w, &message, v), 0);
    const uint8_t sign[] = {0, 0, 0xE0, 0x3F, 2}; /* 7/4; only -4 is below zero */
    ck_assert_uint_eq(w.parts[0].bytes, sizeof sign);
    ck_assert_mem_eq(w.parts[0].data, sign, sizeof sign);
    close_wire(&w);

    w = open_wire(&(sl_compressor_config){.kind = SL_COMPRESSOR_ONE_BIT}, 4, PART_USUAL);
    ck_assert_int_eq(send_vector(&w, &message, v), 0);
    const uint8_t one_bit[] = {0, 0, 0x80, 0x3F, 0, 0, 0x80, 0xC0, 2}; /* 3/3, -4/1 */
    ck_assert_uint_eq(w.parts[0].bytes, sizeof one_bit);
    ck_assert_mem_eq(w.parts[0].data, one_bit, sizeof one_bit);
    close_wire(&w);

    const float grid[] = {5, -2.5f, 0, -5, 2.5f}; /* all on the grid of 2 levels: nothing random */
    w = open_wire(&(sl_compressor_config){.kind = SL_COMPRESSOR_QSGD, .levels = 2, .norm = SL_NORM_MAX}, 5, PART_USUAL);
    ck_assert_int_eq(send_vector(&w, &message, grid), 0);
    const uint8_t qsgd[] = {0, 0, 0xA0, 0x40, 2 | 5 << 3 | 0 << 6, 6 << 1 | 1 << 4}; /* codes 2, 5, 0, 6, 1 of 3 bits */
    ck_assert_uint_eq(w.parts[0].bytes, sizeof qsgd);
    ck_assert_mem_eq(w.parts[0].data, qsgd, sizeof qsgd);
    close_wire(&w);

    const float powers[] = {1, -2, 0, 0.25f};
    w = open_wire(&(sl_compressor_config){.kind = SL_COMPRESSOR_NATURAL}, 4, PART_USUAL);
    ck_assert_int_eq(send_vector(&w, &message, powers), 0);
    const uint8_t natural[] = {127, (128 << 1 & 0xFF), 0x80 >> 7 | 1 << 1, 125 << 3 & 0xFF, 125 >> 5}; /* 127, 256 + 128, 0, 125 of 9 bits */
    ck_assert_uint_eq(w.parts[0].bytes, sizeof natural);
    ck_assert_mem_eq(w.parts[0].data, natural, sizeof natural);
    close_wire(&w);

    const float r[] = {0.5f, 0.49f, -0.5f, -7, 0};
    float *t = through(&(sl_compressor_config){.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 0.5}, r, 5);
    const float cut[] = {0.5f, 0, -0.5f, -0.5f, 0};
    ck_assert_mem_eq(t, cut, sizeof cut);
    free(t);
}
END_TEST

START_TEST(test_halves) {
    const float v[] = {1, 1 + 0x1p-11f, 1 + 0x3p-11f, -65504, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1.ffcp-15f, 65519.996f};
    const float half[] = {1, 1, 1 + 0x1p-9f, -65504, 0x1p-24f, 0, 0x1p-24f, 0x1p-14f, 65504};
    const float brain[] = {1, 1, 1, -0x1p16f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1p-14f, 0x1p16f};
    float *h = through(&(sl_compressor_config){.kind = SL_COMPRESSOR_FLOAT16}, v, 9);
    float *b = through(&(sl_compressor_config){.kind = SL_COMPRESSOR_BFLOAT16}, v, 9);
    for (int i = 0; i < 9; i++) {
        ENSURE(h[i] == half[i], "%a: %a, not %a", v[i], h[i], half[i]);
        ENSURE(b[i] == brain[i], "%a: %a, not %a", v[i], b[i], brain[i]);
    }
    free(h);
    free(b);
}
END_TEST

START_TEST(test_sizes) {
    static const size_t sizes[] = {1, 3, 1000, 5000, 65536};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const sl_compressor_config *c = kinds + _i;
        size_t d = sizes[s], total = 0;
        int scales = !has_buckets(c) ? 0 : c->kind == SL_COMPRESSOR_ONE_BIT ? 2 : 1;
        double bits = (double)d * width_of(c) + 32.0 * scales * (double)((d - 1) / bucket_of(c, d) + 1);
        ENSURE(sl_compressor_bits(c, d) == bits, "%s: %g bits, not %g", describe(c), sl_compressor_bits(c, d), bits);
        wire w = open_wire(c, d, 1 << 20);
        float *v = gaussian(d, 1);
        ck_assert_uint_eq(sl_codec_parts(w.codec), 1);
        ck_assert_int_eq(send_vector(&w, &message, v), 0);
        total = w.parts[0].bytes;
        ENSURE(total == (size_t)ceil(bits / 8) && total == sl_codec_part_bytes_max(w.codec), "%s: d %zu: %zu bytes", describe(c), d, total);
        free(v);
        close_wire(&w);
    }
}
END_TEST

/* ---- parts, sources, messages ---- */

static void read_copy(void *context, size_t from, size_t count, float *out) {
    ENSURE(count <= SL_BLOCK && from % SL_BLOCK == 0, "[%zu, %zu)", from, from + count);
    memcpy(out, (const float *)context + from, count * sizeof *out);
}

START_TEST(test_parts_and_sources_do_not_matter) {
    const size_t d = 150001;
    float *v = gaussian(d, 4), *whole = floats(d), *parts = floats(d), *read = floats(d);
    wire few = open_wire(kinds + _i, d, PART_USUAL), many = open_wire(kinds + _i, d, PART_SMALL), fewest = open_wire(kinds + _i, d, PART_LARGE);
    ck_assert_uint_eq(sl_codec_parts(fewest.codec), 2); /* of at most so many elements as floats fit */
    ck_assert_uint_gt(sl_codec_parts(many.codec), sl_codec_parts(few.codec) > 3 ? 3 : 1);
    ck_assert_int_eq(send_vector(&few, &message, v), 0);
    ck_assert_int_eq(send_vector(&many, &message, v), 0);
    receive(&few, &message, 0.7f, whole);
    receive(&many, &message, 0.7f, parts);
    memset(few.bytes, 0xA5, few.stride * sl_codec_parts(few.codec));
    ck_assert_int_eq(send_from(&few, &message, &(sl_source){.read = read_copy, .context = v}), 0);
    receive(&few, &message, 0.7f, read);
    ck_assert_mem_eq(whole, parts, d * sizeof *whole);
    ck_assert_mem_eq(whole, read, d * sizeof *whole);
    memset(read, 0, d * sizeof *read);
    ck_assert_int_eq(send_vector(&fewest, &message, v), 0);
    receive(&fewest, &message, 0.7f, read);
    ck_assert_mem_eq(whole, read, d * sizeof *whole);
    close_wire(&few);
    close_wire(&many);
    close_wire(&fewest);
    free(v);
    free(whole);
    free(parts);
    free(read);
}
END_TEST

/* ---- what theory promises ---- */

enum { TRIALS = 20000, ELEMENTS = 50 };

/* Mean and mean squared error over messages of one vector, with error bars of five standard deviations; `resolution`: of the rounding. */
static void try_unbiased(const sl_compressor_config *c, const float *v, double resolution) {
    wire w = open_wire(c, ELEMENTS, PART_USUAL);
    double sum[ELEMENTS] = {0}, squares[ELEMENTS] = {0}, error = 0, error2 = 0, norm = squared(v, NULL, ELEMENTS);
    sl_quality q = sl_compressor_quality(c, ELEMENTS);
    ck_assert(q.unbiased);
    for (uint64_t t = 1; t <= TRIALS; t++) {
        sl_message m = {.seed = 99, .exchange = t, .sender = 1};
        float out[ELEMENTS] = {0};
        memset(w.bytes, 0xA5, w.stride);
        ENSURE(send_vector(&w, &m, v) == 0, "not sent");
        receive(&w, &m, 1, out);
        for (int i = 0; i < ELEMENTS; i++) {
            sum[i] += out[i];
            squares[i] += (double)out[i] * out[i];
        }
        double e = squared(out, v, ELEMENTS);
        error += e / TRIALS;
        error2 += e * e / TRIALS;
    }
    for (int i = 0; i < ELEMENTS; i++) {
        double mean = sum[i] / TRIALS, spread = sqrt(fmax(squares[i] / TRIALS - mean * mean, 0) / TRIALS);
        ENSURE(fabs(mean - v[i]) <= 5 * spread + resolution, "%s: element %d: mean %.7g +- %.2g, not %.7g", describe(c), i, mean, spread, v[i]);
    }
    double bar = 5 * sqrt(fmax(error2 - error * error, 0) / TRIALS);
    ENSURE(error <= q.omega * norm + bar + 1e-12 * norm, "%s: error %g of %g, promised %g", describe(c), error, norm, q.omega * norm);
    close_wire(&w);
}

START_TEST(test_unbiased) {
    static const sl_compressor_config unbiased[] = {
        {.kind = SL_COMPRESSOR_QSGD, .levels = 1},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 7},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 16},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 3, .norm = SL_NORM_MAX},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 100, .bucket = 8},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 32767},
        {.kind = SL_COMPRESSOR_TERNGRAD},
        {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 12},
        {.kind = SL_COMPRESSOR_NATURAL},
    };
    const sl_compressor_config *c = unbiased + _i;
    float *v = gaussian(ELEMENTS, 8), equal[ELEMENTS], one_large[ELEMENTS];
    double norm = sqrt(squared(v, NULL, ELEMENTS));
    for (int i = 0; i < ELEMENTS; i++) {
        equal[i] = i % 3 ? 0.75f : -0.75f; /* halfway between powers of two, and the worst for the Euclidean norm */
        one_large[i] = i == 0 ? 1 : 1 / (1 + sqrtf(ELEMENTS)); /* the worst for TernGrad */
    }
    unsigned bits = level_bits(c->levels) > 5 ? 21 - level_bits(c->levels) : 16;
    double unit = c->kind == SL_COMPRESSOR_NATURAL ? 0x1p-17 : ldexp(1.0 / fmax(c->levels, 1), -(int)bits);
    try_unbiased(c, v, norm * unit);
    try_unbiased(c, equal, sqrt(ELEMENTS) * unit);
    try_unbiased(c, one_large, 2 * unit);
    free(v);
}
END_TEST

START_TEST(test_contractive) {
    static const sl_compressor_config contractive[] = {
        {.kind = SL_COMPRESSOR_QSGD, .levels = 1, .contractive = true},  {.kind = SL_COMPRESSOR_QSGD, .levels = 3, .bucket = 16, .contractive = true},
        {.kind = SL_COMPRESSOR_TERNGRAD, .contractive = true},           {.kind = SL_COMPRESSOR_NATURAL, .contractive = true},
        {.kind = SL_COMPRESSOR_NATURAL},                                 {.kind = SL_COMPRESSOR_QSGD, .levels = 15, .bucket = 20},
        {.kind = SL_COMPRESSOR_SCALED_SIGN},                             {.kind = SL_COMPRESSOR_SCALED_SIGN, .bucket = 7},
        {.kind = SL_COMPRESSOR_ONE_BIT},                                 {.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 7},
        {.kind = SL_COMPRESSOR_FLOAT16},                                 {.kind = SL_COMPRESSOR_BFLOAT16},
    };
    const sl_compressor_config *c = contractive + _i;
    sl_quality q = sl_compressor_quality(c, ELEMENTS);
    ENSURE(q.is_contractive && q.delta > 0 && q.delta < 1, "%s: delta %g", describe(c), q.delta);
    for (uint32_t form = 0; form < 4; form++) {
        float *v = gaussian(ELEMENTS, 20 + form);
        for (int i = 1; i < ELEMENTS && form > 1; i++)
            v[i] = form == 2 ? 0.75f * v[0] : 1e-3f * v[i]; /* all alike; one far above the rest */
        double error = 0, error2 = 0, norm = squared(v, NULL, ELEMENTS);
        wire w = open_wire(c, ELEMENTS, PART_USUAL);
        for (uint64_t t = 1; t <= 2000; t++) {
            sl_message m = {.seed = 98, .exchange = t, .sender = 1};
            float out[ELEMENTS] = {0};
            memset(w.bytes, 0xA5, w.stride);
            ENSURE(send_vector(&w, &m, v) == 0, "not sent");
            receive(&w, &m, 1, out);
            double e = squared(out, v, ELEMENTS);
            error += e / 2000;
            error2 += e * e / 2000;
        }
        double bar = 5 * sqrt(fmax(error2 - error * error, 0) / 2000);
        ENSURE(error <= (1 - q.delta) * norm * (1 + 1e-6) + bar, "%s: vector %u: error %g of %g, delta %g", describe(c), form, error, norm, q.delta);
        close_wire(&w);
        free(v);
    }
}
END_TEST

/* For one vector: delta of scaled sign as algorithms have it, and the two means err no more. */
START_TEST(test_sign_errors) {
    enum { D = 1003 };
    float *v = gaussian(D, 6);
    for (int i = 0; i < D; i++)
        v[i] += 0.3f;
    float *sign = through(&(sl_compressor_config){.kind = SL_COMPRESSOR_SCALED_SIGN}, v, D);
    float *means = through(&(sl_compressor_config){.kind = SL_COMPRESSOR_ONE_BIT}, v, D);
    double l1 = 0, l2 = squared(v, NULL, D);
    for (int i = 0; i < D; i++)
        l1 += fabs(v[i]);
    ck_assert_double_eq_tol(squared(sign, v, D), l2 - l1 * l1 / D, 1e-5 * l2);
    ck_assert_double_lt(squared(means, v, D), squared(sign, v, D));
    free(v);
    free(sign);
    free(means);
}
END_TEST

START_TEST(test_quality) {
    const struct {
        sl_compressor_config config;
        sl_quality want;
    } rows[] = {
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 512}, {.unbiased = true, .omega = sqrt(512) / 7}},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 20, .bucket = 100}, {.unbiased = true, .omega = 0.25, .is_contractive = true, .delta = 0.75}},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 1, .contractive = true}, {.omega = INFINITY, .is_contractive = true, .delta = 1 / (1 + sqrt(1000))}},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 1, .norm = SL_NORM_MAX, .bucket = 25}, {.unbiased = true, .omega = 2}},
        {{.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 25}, {.unbiased = true, .omega = 2}},
        {{.kind = SL_COMPRESSOR_NATURAL}, {.unbiased = true, .omega = 0.125, .is_contractive = true, .delta = 0.875}},
        {{.kind = SL_COMPRESSOR_SCALED_SIGN}, {.omega = INFINITY, .is_contractive = true, .delta = 1e-3}},
        {{.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 10}, {.omega = INFINITY, .is_contractive = true, .delta = 0.1}},
        {{.kind = SL_COMPRESSOR_FLOAT16}, {.omega = INFINITY, .is_contractive = true, .delta = 1 - 0x1p-22}},
        {{.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 1}, {.omega = INFINITY}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        sl_quality q = sl_compressor_quality(&rows[r].config, 1000), want = rows[r].want;
        ENSURE(q.unbiased == want.unbiased && q.is_contractive == want.is_contractive && (q.omega == want.omega || fabs(q.omega - want.omega) < 1e-12) &&
                          fabs(q.delta - want.delta) < 1e-12,
                      "%s: %d omega %.17g, %d delta %.17g", describe(&rows[r].config), q.unbiased, q.omega, q.is_contractive, q.delta);
    }
}
END_TEST

/* ---- extreme inputs ---- */

START_TEST(test_zeros_stay_zero) {
    enum { D = 3001 };
    float v[D] = {0};
    for (int i = 0; i < D; i += 2)
        v[i] = -0.0f;
    float *out = through(kinds + _i, v, D);
    for (int i = 0; i < D; i++)
        ENSURE(out[i] == 0, "%s: element %d: %g", describe(kinds + _i), i, out[i]);
    free(out);
}
END_TEST

START_TEST(test_one_element) {
    static const float values[] = {1.5f, -1.5f, 0x1p-149f, -0x1p-126f, 1000, -0x1p-20f};
    for (int i = 0; i < 6; i++) {
        const sl_compressor_config *c = kinds + _i;
        float *out = through(c, values + i, 1), factor = c->contractive && sl_compressor_quality(c, 1).delta < 1 ? 0.5f : 1;
        if (has_buckets(c)) /* its scale is the element's magnitude */
            ENSURE(fabsf(out[0] - values[i]) <= 0x1p-22f * fabsf(values[i]) + (float)c->levels * 0x1p-149f, "%s: %a, not %a", describe(c), out[0],
                          values[i]);
        else
            ENSURE(isfinite(out[0]) && factor > 0, "%s: %a", describe(c), out[0]);
        free(out);
    }
}
END_TEST

/* Every element in [2^-149, 2^-126), or near the largest: nothing breaks, and scales stay right. */
START_TEST(test_far_exponents) {
    enum { D = 2000 };
    const sl_compressor_config *c = kinds + _i;
    static const float units[] = {0x1p-140f, 0x1p-100f, 0x1p60f, 0x1p105f};
    for (int u = 0; u < 4; u++) {
        if (units[u] > 1 && c->kind == SL_COMPRESSOR_FLOAT16)
            continue;
        float *v = gaussian(D, 3);
        for (int i = 0; i < D; i++)
            v[i] *= units[u];
        float *out = through(c, v, D);
        double error = squared(out, v, D), norm = squared(v, NULL, D), slack = D * 0x1p-149 * 0x1p-149;
        sl_quality q = sl_compressor_quality(c, D);
        double promised = q.is_contractive ? 1 - q.delta : q.unbiased ? q.omega : 1;
        if (c->kind == SL_COMPRESSOR_FLOAT16 || (u == 0 && (c->kind == SL_COMPRESSOR_NATURAL || c->kind == SL_COMPRESSOR_BFLOAT16)))
            promised = 1e6; /* below these compressors' range */
        if (u == 0)
            slack *= (double)c->levels * c->levels + 4; /* a level, scale / levels, loses its digits */
        ENSURE(isfinite(error) && error <= 1.3 * promised * norm + slack, "%s: unit %g: error %g of %g", describe(c), units[u], error, norm);
        free(v);
        free(out);
    }
}
END_TEST

START_TEST(test_not_finite_is_refused) {
    enum { D = 9000 };
    static const size_t places[] = {0, 1, 1023, 1024, 4095, 8191, D - 1};
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    float *v = gaussian(D, 2);
    for (size_t bytes = PART_SMALL; bytes <= PART_USUAL; bytes += PART_USUAL - PART_SMALL) {
        wire w = open_wire(kinds + _i, D, bytes);
        for (int p = 0; p < 7; p++)
            for (int b = 0; b < 4; b++) {
                float kept = v[places[p]];
                v[places[p]] = bad[b];
                memset(w.bytes, 0xA5, w.stride * sl_codec_parts(w.codec));
                ENSURE(send_vector(&w, &message, v) == SL_EDIVERGED, "%s: %g at %zu went through", describe(kinds + _i), bad[b], places[p]);
                v[places[p]] = kept;
            }
        memset(w.bytes, 0xA5, w.stride * sl_codec_parts(w.codec));
        ck_assert_int_eq(send_vector(&w, &message, v), 0); /* and what came before leaves no trace */
        float *got = floats(D), *want = floats(D);
        receive(&w, &message, 1, got);
        close_wire(&w);
        w = open_wire(kinds + _i, D, bytes);
        ck_assert_int_eq(send_vector(&w, &message, v), 0);
        receive(&w, &message, 1, want);
        ck_assert_mem_eq(got, want, D * sizeof *got);
        free(got);
        free(want);
        close_wire(&w);
    }
    free(v);
}
END_TEST

static int send_pair(sl_compressor_config config, float a, float b) {
    wire w = open_wire(&config, 2, PART_USUAL);
    int result = send_vector(&w, &message, (const float[]){a, b});
    close_wire(&w);
    return result;
}

START_TEST(test_out_of_range_is_refused) {
    const sl_compressor_config half = {.kind = SL_COMPRESSOR_FLOAT16}, brain = {.kind = SL_COMPRESSOR_BFLOAT16};
    const sl_compressor_config natural = {.kind = SL_COMPRESSOR_NATURAL}, qsgd = {.kind = SL_COMPRESSOR_QSGD, .levels = 3};
    ck_assert_int_eq(send_pair(half, 0, -65519.996f), 0);
    ck_assert_int_eq(send_pair(half, 0, 65520), SL_EDIVERGED);
    ck_assert_int_eq(send_pair(brain, 0, value_of(0x7F7F7FFF)), 0);
    ck_assert_int_eq(send_pair(brain, 0, value_of(0x7F7F8000)), SL_EDIVERGED);
    ck_assert_int_eq(send_pair(natural, 0, -0x1p127f), 0);
    ck_assert_int_eq(send_pair(natural, 0, nextafterf(0x1p127f, INFINITY)), SL_EDIVERGED);
    ck_assert_int_eq(send_pair(qsgd, 0, -FLT_MAX), 0);
    ck_assert_int_eq(send_pair(qsgd, FLT_MAX, -FLT_MAX), SL_EDIVERGED); /* the norm is none */
    ck_assert_int_eq(send_pair((sl_compressor_config){.kind = SL_COMPRESSOR_QSGD, .levels = 3, .norm = SL_NORM_MAX}, FLT_MAX, -FLT_MAX), 0);
    ck_assert_int_eq(send_pair((sl_compressor_config){.kind = SL_COMPRESSOR_SCALED_SIGN}, FLT_MAX, -FLT_MAX), 0);
    ck_assert_int_eq(send_pair((sl_compressor_config){.kind = SL_COMPRESSOR_ONE_BIT}, FLT_MAX, -FLT_MAX), 0);
    ck_assert_int_eq(send_pair((sl_compressor_config){.kind = SL_COMPRESSOR_TERNGRAD}, FLT_MAX, -FLT_MAX), 0);
}
END_TEST

/* Of the magnitudes of 64 elements fours are added as floats. */
START_TEST(test_magnitudes_that_add_to_no_float) {
    const sl_compressor_config sign = {.kind = SL_COMPRESSOR_SCALED_SIGN};
    float v[64], out[64] = {0};
    wire w = open_wire(&sign, 64, PART_USUAL);
    for (int i = 0; i < 64; i++)
        v[i] = i % 3 ? FLT_MAX / 4 : -FLT_MAX / 4;
    ck_assert_int_eq(send_vector(&w, &message, v), 0);
    receive(&w, &message, 1, out);
    ck_assert_mem_eq(out, v, sizeof v);
    for (int i = 0; i < 64; i++)
        v[i] = FLT_MAX / 3;
    ck_assert_int_eq(send_vector(&w, &message, v), SL_EDIVERGED);
    close_wire(&w);
}
END_TEST

START_TEST(test_long_vector_not_finite) {
    enum { D = 300000 };
    const sl_compressor_config sign = {.kind = SL_COMPRESSOR_SCALED_SIGN};
    float *v = gaussian(D, 2);
    wire w = open_wire(&sign, D, PART_USUAL);
    for (size_t i = 7; i < D; i += D / 20) {
        const float kept = v[i];
        v[i] = i % 2 ? NAN : -INFINITY;
        ENSURE(send_vector(&w, &message, v) == SL_EDIVERGED, "%g at %zu went through", v[i], i);
        v[i] = kept;
    }
    free(v);
    close_wire(&w);
}
END_TEST

/* What was decoded is on the grid, and encoding it again changes no code, whatever the random numbers; a scale may lose its last digit. */
START_TEST(test_stable) {
    enum { D = 3000 };
    static const sl_compressor_config stable[] = {
        {.kind = SL_COMPRESSOR_FLOAT16},
        {.kind = SL_COMPRESSOR_BFLOAT16},
        {.kind = SL_COMPRESSOR_NATURAL},
        {.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 0.3},
        {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 100},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 1, .norm = SL_NORM_MAX},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .norm = SL_NORM_MAX, .bucket = 512},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 31, .norm = SL_NORM_MAX},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 63, .norm = SL_NORM_MAX},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 1000, .norm = SL_NORM_MAX},
        {.kind = SL_COMPRESSOR_QSGD, .levels = 32767, .norm = SL_NORM_MAX},
    };
    const sl_compressor_config *c = stable + _i;
    float *v = gaussian(D, 12);
    for (uint64_t t = 1; t <= 30; t++) {
        wire first = open_wire(c, D, PART_USUAL), second = open_wire(c, D, PART_USUAL);
        sl_message m = {.seed = 5, .exchange = t}, other = {.seed = 6, .exchange = t};
        float *out = floats(D), *again = floats(D);
        for (int i = 0; i < D; i++)
            v[i] *= 1.1f;
        ck_assert_int_eq(send_vector(&first, &m, v), 0);
        receive(&first, &m, 1, out);
        ck_assert_int_eq(send_vector(&second, &other, out), 0);
        receive(&second, &other, 1, again);
        for (int i = 0; i < D; i++)
            ENSURE(fabsf(again[i] - out[i]) <= 0x1p-22f * fabsf(out[i]), "%s: %a became %a", describe(c), out[i], again[i]);
        free(again);
        free(out);
        close_wire(&first);
        close_wire(&second);
    }
    free(v);
}
END_TEST

/* ---- bytes from a peer ---- */

static int check_of(wire *w, uint32_t part, const void *bytes, size_t n) {
    return sl_decoder_check(w->decoder, &message, part, (sl_payload){bytes, n});
}

START_TEST(test_wrong_lengths_and_scales) {
    const sl_compressor_config *c = kinds + _i;
    const size_t d = 20003;
    wire w = open_wire(c, d, PART_SMALL);
    float *v = gaussian(d, 9);
    uint64_t room[PART_SMALL / 8 + 2];
    uint8_t *copy = (uint8_t *)room;
    const uint32_t bad[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF, 0xBF800000, 0x80000000};
    ck_assert_int_eq(send_vector(&w, &message, v), 0);
    for (uint32_t p = 0; p < sl_codec_parts(w.codec); p++) {
        size_t from, count, n = w.parts[p].bytes;
        sl_codec_part_range(w.codec, p, &from, &count);
        memcpy(copy, w.parts[p].data, n);
        memset(copy + n, 0, 8);
        ck_assert_int_eq(check_of(&w, p, copy, n), 0);
        ck_assert_int_eq(check_of(&w, p, copy, n + 1), SL_EPROTO);
        ck_assert_int_eq(check_of(&w, p, copy, n - 1), SL_EPROTO);
        ck_assert_int_eq(check_of(&w, p, copy, 0), SL_EPROTO);
        size_t scales = n - (count * width_of(c) + 7) / 8;
        for (size_t s = 0; s < scales; s += 4)
            for (int b = 0; b < (c->kind == SL_COMPRESSOR_ONE_BIT ? 4 : 6); b++) {
                uint32_t kept;
                memcpy(&kept, copy + s, 4);
                memcpy(copy + s, bad + b, 4);
                ENSURE(check_of(&w, p, copy, n) == SL_EPROTO, "%s: scale %zu: %08x was taken", describe(c), s / 4, bad[b]);
                memcpy(copy + s, &kept, 4);
            }
        unsigned used = count * width_of(c) % 8;
        for (unsigned b = used; used != 0 && b < 8; b++) {
            copy[n - 1] = (uint8_t)(copy[n - 1] ^ 1 << b);
            ck_assert_int_eq(check_of(&w, p, copy, n), SL_EPROTO);
            copy[n - 1] = (uint8_t)(copy[n - 1] ^ 1 << b);
        }
    }
    ck_assert_int_eq(check_of(&w, sl_codec_parts(w.codec), w.parts[0].data, w.parts[0].bytes), SL_EPROTO);
    free(v);
    close_wire(&w);
}
END_TEST

/* Sets the code of every element in turn to each value that its bits can hold. */
START_TEST(test_wrong_codes) {
    static const struct {
        sl_compressor_config config;
        uint32_t mask, max;
    } rows[] = {
        {{.kind = SL_COMPRESSOR_FLOAT16}, 0x7FFF, 0x7BFF},
        {{.kind = SL_COMPRESSOR_BFLOAT16}, 0x7FFF, 0x7F7F},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 5}, 7, 5},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 7}, 7, 7},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 130}, 255, 130},
        {{.kind = SL_COMPRESSOR_TERNGRAD}, 3, 2},
        {{.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 1}, 3, 2},
        {{.kind = SL_COMPRESSOR_NATURAL}, 255, 254},
        {{.kind = SL_COMPRESSOR_SCALED_SIGN}, 1, 1},
    };
    enum { D = 1049 };
    const sl_compressor_config *c = &rows[_i].config;
    unsigned width = width_of(c);
    wire w = open_wire(c, D, PART_USUAL);
    float *v = gaussian(D, 5);
    ck_assert_int_eq(send_vector(&w, &message, v), 0);
    uint8_t *codes = w.bytes + (w.parts[0].bytes - (D * width + 7) / 8);
    for (size_t i = 0; i < D; i += i < 30 || i > D - 30 ? 1 : 97)
        for (uint32_t code = 0; code < 1u << width; code += width == 16 ? 0x7F : 1) {
            uint8_t kept[4] = {0};
            size_t at = i * width / 8, n = ((i + 1) * width + 7) / 8 - at;
            memcpy(kept, codes + at, n);
            for (unsigned b = 0; b < width; b++) {
                size_t bit = i * width + b;
                codes[bit / 8] = (uint8_t)((codes[bit / 8] & ~(1 << bit % 8)) | (code >> b & 1) << bit % 8);
            }
            int want = (code & rows[_i].mask) <= rows[_i].max ? 0 : SL_EPROTO;
            ENSURE(sl_decoder_check(w.decoder, &message, 0, w.parts[0]) == want, "%s: code %u of element %zu", describe(c), code, i);
            memcpy(codes + at, kept, n);
        }
    free(v);
    close_wire(&w);
}
END_TEST

/* ---- settings ---- */

START_TEST(test_settings) {
    const struct {
        sl_compressor_config config;
        const char *names; /* in the error; NULL: allowed */
    } rows[] = {
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 0}, "algorithm.compressor.levels: 0"},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 32768}, "algorithm.compressor.levels: 32768"},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 32767}, NULL},
        {{.kind = SL_COMPRESSOR_QSGD, .levels = 1, .bucket = 3}, "algorithm.compressor.bucket: 3"},
        {{.kind = SL_COMPRESSOR_SCALED_SIGN, .bucket = 1}, "algorithm.compressor.bucket: 1"},
        {{.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 2}, "algorithm.compressor.bucket: 2"},
        {{.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 4}, NULL},
        {{.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 3}, "algorithm.compressor.bucket: 3"},
        {{.kind = SL_COMPRESSOR_SCALED_SIGN, .bucket = 4000000000u}, NULL},
        {{.kind = SL_COMPRESSOR_THRESHOLD}, "algorithm.compressor.threshold: 0"},
        {{.kind = SL_COMPRESSOR_THRESHOLD, .threshold = -1}, "algorithm.compressor.threshold: -1"},
        {{.kind = SL_COMPRESSOR_THRESHOLD, .threshold = NAN}, "algorithm.compressor.threshold: nan"},
        {{.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 1e39}, "algorithm.compressor.threshold: 1e+39"},
        {{.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 0.01}, NULL},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        sl_error error = {0};
        int result = sl_compressor_check(&rows[r].config, 100, &error);
        ck_assert_int_eq(result, rows[r].names == NULL ? 0 : SL_EINVAL);
        ENSURE(rows[r].names == NULL || strncmp(error.text, rows[r].names, strlen(rows[r].names)) == 0, "%s", error.text);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_dense");
    TCase *loops = tcase_create("every kind");
    tcase_set_timeout(loops, 120);
    tcase_add_loop_test(loops, test_same_bytes, 0, KINDS);
    tcase_add_loop_test(loops, test_same_bytes_large, 0, KINDS);
    tcase_add_loop_test(loops, test_sizes, 0, KINDS);
    tcase_add_loop_test(loops, test_parts_and_sources_do_not_matter, 0, KINDS);
    tcase_add_loop_test(loops, test_unbiased, 0, 9);
    tcase_add_loop_test(loops, test_contractive, 0, 12);
    tcase_add_loop_test(loops, test_zeros_stay_zero, 0, KINDS);
    tcase_add_loop_test(loops, test_one_element, 0, KINDS);
    tcase_add_loop_test(loops, test_far_exponents, 0, KINDS);
    tcase_add_loop_test(loops, test_not_finite_is_refused, 0, KINDS);
    tcase_add_loop_test(loops, test_stable, 0, 11);
    tcase_add_loop_test(loops, test_wrong_lengths_and_scales, 0, KINDS);
    tcase_add_loop_test(loops, test_wrong_codes, 0, 9);
    suite_add_tcase(suite, loops);
    ADD_TESTS(suite, "examples", test_random_blocks, test_messages_have_streams_of_their_own, test_packing, test_largest_of_many, test_small_examples, test_halves,
              test_sign_errors, test_quality, test_out_of_range_is_refused, test_magnitudes_that_add_to_no_float, test_long_vector_not_finite,
              test_settings);
    return run_suite(suite);
}
