/* test_compress_dense.c - the dense-coded compressors against a second implementation that goes
 * element by element and bit by bit. */
#include "dense_kinds.h"

#include "compress/lossless/pack.h"
#include "compressor_sizes.h"

static unsigned bits_of_levels(uint32_t levels) {
    return (unsigned)bits_for((size_t)levels + 1);
}

/* ---- the second implementation ---- */

/* Folded in the middle until one is left. */
static double sum_by_halves(double *lanes, int count) {
    for (int half = count / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

/* A tile's element i adds to lane i % 16, and the lanes are added by halves; the tiles of 4096
 * elements add to 256 folds. */
static double tile_sum(const float *v, size_t from, size_t to, double (*term)(double)) {
    double lanes[16] = {0};
    for (size_t i = from; i < to; i++)
        lanes[i % 16] += term(v[i]);
    return sum_by_halves(lanes, 16);
}

/* The same of magnitudes, but those that a lane has of 64 elements are added as floats before: ((1
 * + 2) + (3 + 4)), 0 for what the tile lacks. */
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
        folds[(at - from) / 4096 % 256] +=
            term == fabs ? tile_magnitudes(v, at, end) : tile_sum(v, at, end, term);
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
static int bucket_scales(const sl_compressor_config *c, const float *v, size_t from, size_t to,
                         float *scale) {
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
    } else if (c->clip_sigma > 0) {
        const double sigma = sqrt(bucket_sum(v, from, to, square) / (double)(to - from));
        scale[0] = (float)fmin(largest, fmax(c->clip_sigma * sigma, ldexp(largest, -14)));
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
    unsigned bits = bits_of_levels(levels) > 5 ? 21 - bits_of_levels(levels) : 16;
    double per_unit = scale == 0 ? 0 : ldexp(levels, (int)bits) / scale;
    double power = per_unit > 0x1p100 ? 0x1p100 : per_unit < 0x1p-100 ? 0x1p-24 : 1;
    float q = fabsf(x) * (float)power;
    q *= (float)(per_unit / power);
    q += 0.5f;
    uint32_t level = ((uint32_t)q + (random >> (16 - bits))) >> bits;
    return level < levels ? level : levels;
}

/* To the nearest float with `digits` binary digits whose last place is at least 2^least; ties to
 * even. */
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
    uint32_t code = rounded < 0x1p-14 ? (uint32_t)ldexp(rounded, 24)
                                      : (uint32_t)(exponent + 14) << 10 |
                                            ((uint32_t)ldexp(rounded, 11 - exponent) & 0x3FF);
    return code | (uint32_t)(signbit(x) != 0) << 15;
}

static uint32_t reference_code(const sl_compressor_config *c, const sl_message *m,
                               const float *scale, float x, size_t i) {
    uint32_t sign = bits_of(x) >> 31, level;
    switch (c->kind) {
    case SL_COMPRESSOR_FLOAT16:
        return half_code(x);
    case SL_COMPRESSOR_BFLOAT16:
        return bits_of((float)nearest(x, 8, -133)) >> 16 | sign << 15;
    case SL_COMPRESSOR_QSGD:
        return round_up_or_down(x, c->levels, scale[0], random_bits(m, i)) |
               sign << bits_of_levels(c->levels);
    case SL_COMPRESSOR_TERNGRAD:
        level = round_up_or_down(x, 1, scale[0], random_bits(m, i));
        return level << sign;
    case SL_COMPRESSOR_NATURAL:
        return (uint32_t)(((uint64_t)(bits_of(x) & 0x7FFFFFFF) * 2 + random_bits(m, i) * 256 +
                           128) >>
                          24) |
               sign << 8;
    case SL_COMPRESSOR_THRESHOLD:
        return x >= (float)c->threshold ? 1 : x <= -(float)c->threshold ? 2 : 0;
    default:
        return x < 0;
    }
}

/* What a code adds, before its weight: acc += a * b. */
static void factors_of(const sl_compressor_config *c, const float *scale, float weight,
                       uint32_t code, float *a, float *b) {
    float magnitude;
    *a = weight;
    switch (c->kind) {
    case SL_COMPRESSOR_FLOAT16:
        magnitude = (code >> 10 & 31) == 0
                        ? ldexpf((float)(code & 0x3FF), -24)
                        : ldexpf((float)(1024 + (code & 0x3FF)), (int)(code >> 10 & 31) - 25);
        *b = code >> 15 ? -magnitude : magnitude;
        break;
    case SL_COMPRESSOR_BFLOAT16:
        *b = value_of(code << 16);
        break;
    case SL_COMPRESSOR_QSGD:
        *a = weight * (scale[0] / (float)c->levels);
        magnitude = (float)(code & ((1u << bits_of_levels(c->levels)) - 1));
        *b = code >> bits_of_levels(c->levels) ? -magnitude : magnitude;
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

/* The payload of [from, from + count) into `out` (zeroed), which adds to acc too. Returns its
 * bytes. */
static size_t reference(const sl_compressor_config *c, const sl_message *m, const float *v,
                        size_t d, size_t from, size_t count, float weight, uint8_t *out,
                        float *acc) {
    size_t bucket = has_buckets(c) ? bucket_of(c, d) : d, head = 0;
    const size_t width = width_of(c);
    float scale[2] = {0};
    if (has_buckets(c))
        for (size_t b = from / bucket; b <= (from + count - 1) / bucket; b++) {
            int n =
                bucket_scales(c, v, b * bucket, (b + 1) * bucket < d ? (b + 1) * bucket : d, scale);
            memcpy(out + head, scale, (size_t)n * sizeof *scale);
            head += (size_t)n * sizeof *scale;
        }
    size_t each = has_buckets(c) ? head / ((from + count - 1) / bucket - from / bucket + 1) : 0;
    for (size_t i = from; i < from + count; i++) {
        memcpy(scale, out + (i / bucket - from / bucket) * each, each);
        uint32_t code = reference_code(c, m, scale, v[i], i);
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
    double omega = sl_compressor_quality(&(sl_compressor_config){.kind = c->kind,
                                                                 .levels = c->levels,
                                                                 .bucket = c->bucket,
                                                                 .norm = c->norm},
                                         d)
                       .omega;
    float weight = 0.3f * (c->contractive ? (float)(1 / (1 + omega)) : 1);
    ck_assert_int_eq(send_vector(&w, &message, v), 0);
    receive(&w, &message, 0.3f, got);
    for (uint32_t p = 0; p < sl_codec_parts(w.codec); p++) {
        size_t from, count;
        sl_codec_part_range(w.codec, p, &from, &count);
        memset(bytes, 0, w.stride + 16);
        size_t n = reference(c, &message, v, d, from, count, weight, bytes, want);
        ENSURE(n == w.parts[p].bytes && memcmp(bytes, w.parts[p].data, n) == 0,
               "%s: d %zu part %u of %u bytes", name_of(c), d, p, (unsigned)part_bytes);
    }
    for (size_t i = 0; i < d; i++)
        ENSURE(bits_of(got[i]) == bits_of(want[i]), "%s: d %zu element %zu: %a, not %a", name_of(c),
               d, i, got[i], want[i]);
    release(v);
    release(got);
    release(want);
    free(bytes);
    close_wire(&w);
}

START_TEST(test_same_bytes) {
    static const size_t sizes[] = {1,   2,    7,    8,    9,    15,   17,   63,    65,   511,
                                   513, 1000, 1023, 1024, 1025, 2049, 5000, 33333, 70001};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        compare(kinds + _i, sizes[s], PART_SMALL);
        compare(kinds + _i, sizes[s], PART_USUAL);
    }
}
END_TEST

START_TEST(test_same_bytes_large) {
    compare(kinds + _i, (1u << 18) + 3, PART_USUAL);
    if (has_buckets(kinds + _i) && kinds[_i].bucket == 0 &&
        getenv("STARLING_QUICK") == NULL) /* its sums go through the folds more than once */
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
        const sl_message m = {
            .seed = 1, .exchange = exchanges[i / STAGES], .sender = 3, .stage = stages[i % STAGES]};
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
    ENSURE(memcmp(packed, expected, bytes) == 0, "%zu codes of %u bits are packed wrongly", n,
           width);
    ENSURE(memcmp(sl_unpack(packed, n, width, back), codes, n * sizeof *codes) == 0,
           "%zu codes of %u bits are unpacked wrongly", n, width);
    ENSURE(sl_packed_largest(packed, n, width, mask) == largest,
           "the largest of %zu codes of %u bits & %u is not %u", n, width, mask, largest);
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
    static const size_t places[PLACES] = {0,        1,       500, SL_BLOCK, 2 * SL_BLOCK + 17,
                                          MANY - 9, MANY - 1};
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

/* Any magnitude that can be sent comes back as the nearest of two bits' mantissa, even on a tie. */
START_TEST(test_float8) {
    enum { D = 4099 };
    float v[D];
    for (int i = 0; i < D; i++)
        v[i] = ldexpf((float)(i % 513 - 256) / 64, i % 47 - 33);
    float *out = through(&CONFIG(FLOAT8), v, D, PART_USUAL);
    for (int i = 0; i < D; i++)
        ck_assert_msg(out[i] == (float)nearest(v[i], 3, -16), "%a becomes %a, not %a", v[i], out[i],
                      nearest(v[i], 3, -16));
    release(out);
    wire w = open_wire(&(sl_compressor_config){.kind = SL_COMPRESSOR_FLOAT8}, 4, PART_USUAL);
    ck_assert_int_eq(send_vector(&w, &message, (const float[]){1, -2, 57344, 0}), 0);
    ck_assert_uint_eq(w.parts[0].bytes, 4);
    ck_assert_mem_eq(w.parts[0].data, ((const uint8_t[]){0x3C, 0xC0, 0x7B, 0}), 4);
    ck_assert_int_eq(send_vector(&w, &message, (const float[]){1, -61439, 0, 0}), 0);
    ck_assert_int_eq(send_vector(&w, &message, (const float[]){1, -61440, 0, 0}), SL_EDIVERGED);
    ck_assert_int_eq(send_vector(&w, &message, (const float[]){1, NAN, 0, 0}), SL_EDIVERGED);
    close_wire(&w);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress_dense");
    add_loop(suite, test_same_bytes, 0, KINDS);
    add_loop(suite, test_same_bytes_large, 0, KINDS);
    ADD_TESTS(suite, "examples", test_random_blocks, test_messages_have_streams_of_their_own,
              test_packing, test_largest_of_many, test_float8);
    return run_suite(suite);
}
