/* test_compress_hand.c - worked out by hand, a row each: messages as the papers have them, payloads
 * that no sender makes, and settings that are refused. */
#include "compressor_sizes.h"
#include "messages.h"

/* ---- messages ---- */

#define BYTES(...) .count = sizeof((uint8_t[]){__VA_ARGS__}), .bytes = {__VA_ARGS__}
enum { ANY = -1, MOST = 12 };

static const struct {
    sl_compressor_config config;
    size_t d;
    float v[MOST], decoded[MOST];
    int count; /* ANY: bytes are not said here */
    uint8_t bytes[MOST];
    float fresh[MOST]; /* of two inputs; all 0: of one */
} messages[] = {
    /* 7/4; only -4 is below zero */
    ROW(KIND(SCALED_SIGN), 4, {3, -4, 0, -0.0f}, {1.75f, -1.75f, 1.75f, 1.75f},
        BYTES(0, 0, 0xE0, 0x3F, 2)),
    /* 3/3, -4/1 */
    ROW(KIND(ONE_BIT), 4, {3, -4, 0, -0.0f}, {1, -4, 1, 1},
        BYTES(0, 0, 0x80, 0x3F, 0, 0, 0x80, 0xC0, 2)),
    /* all on the grid of 2 levels: codes 2, 5, 0, 6, 1 of 3 bits */
    ROW(KIND(QSGD, .levels = 2, .norm = SL_NORM_MAX), 5, {5, -2.5f, 0, -5, 2.5f},
        {5, -2.5f, 0, -5, 2.5f}, BYTES(0, 0, 0xA0, 0x40, 2 | 5 << 3 | 0 << 6, 6 << 1 | 1 << 4)),
    /* 127, 256 + 128, 0, 125 of 9 bits */
    ROW(KIND(NATURAL), 4, {1, -2, 0, 0.25f}, {1, -2, 0, 0.25f},
        BYTES(127, 128 << 1 & 0xFF, 0x80 >> 7 | 1 << 1, 125 << 3 & 0xFF, 125 >> 5)),
    ROW(KIND(THRESHOLD, .threshold = 0.5), 5, {0.5f, 0.49f, -0.5f, -7, 0},
        {0.5f, 0, -0.5f, -0.5f, 0}, .count = ANY),
    ROW(KIND(FLOAT16), 9,
        {1, 1 + 0x1p-11f, 1 + 0x3p-11f, -65504, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1.ffcp-15f,
         65519.996f},
        {1, 1, 1 + 0x1p-9f, -65504, 0x1p-24f, 0, 0x1p-24f, 0x1p-14f, 65504}, .count = ANY),
    ROW(KIND(BFLOAT16), 9,
        {1, 1 + 0x1p-11f, 1 + 0x3p-11f, -65504, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1.ffcp-15f,
         65519.996f},
        {1, 1, 1, -0x1p16f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1p-14f, 0x1p16f}, .count = ANY),
    ROW(KIND(FLOAT8), 4, {1, -2, 57344, 0}, {1, -2, 57344, 0}, BYTES(0x3C, 0xC0, 0x7B, 0)),
    /* two bits of a mantissa, and even ones of a tie */
    ROW(KIND(FLOAT8), 9,
        {1.125f, 1.126f, -1.375f, 1.374f, 61439, 0x1p-17f, 0x1.1p-17f, 0x1.8p-16f, 0x1.8p-15f},
        {1, 1.25f, -1.5f, 1.25f, 57344, 0, 0x1p-16f, 0x1p-15f, 0x1.8p-15f}, .count = ANY),
    /* of equal magnitudes the lower index is kept */
    ROW(KIND(TOP_K, .k = 3), 7, {1, -2, 2, 0.5f, -2, 2, -1}, {0, -2, 2, 0, -2, 0, 0}, .count = ANY),
    /* 4.0, then 1 << 1 | 1 and 3 << 1 | 0, of 4 bits each */
    ROW(KIND(STC, .k = 2), 5, {1, -5, 2, 3, -3}, {0, -4, 0, 4, 0}, BYTES(0, 0, 0x80, 0x40, 0x63)),
    /* -4.5, then 1 and 4, of 3 bits each */
    ROW(KIND(SBC, .k = 2), 5, {3, -5, 1, -1, -4}, {0, -4.5f, 0, 0, -4.5f},
        BYTES(0, 0, 0x90, 0xC0, 0x21)),
    ROW(KIND(SBC, .k = 1), 4, {-2, 2, 0, 0}, {0, 2, 0, 0}, BYTES(0, 0, 0, 0x40, 1)),
    /* 2.0, -4.5, then 0 << 1, 1 << 1 | 1, 2 << 1, 4 << 1 | 1, of 4 bits each */
    ROW(KIND(POS_NEG, .k = 2), 5, {3, -5, 1, -1, -4}, {2, -4.5f, 2, 0, -4.5f},
        BYTES(0, 0, 0, 0x40, 0, 0, 0x90, 0xC0, 0x30, 0x94)),
    ROW(KIND(POS_NEG, .k = 2), 5, {3, 3, 3, 3, 3}, {3, 3, 3, 3, 0}, .count = ANY),
    /* 0 << 1, 1 << 1 | 1, 4 << 1 | 1, of 4 bits each */
    ROW(KIND(STROM, .threshold = 2), 5, {3, -5, 1, -1.9f, -2}, {2, -2, 0, 0, -2},
        BYTES(0x30, 0x09)),
    ROW(KIND(STROM, .threshold = 2), 5, {0}, {0}, .count = 0),
    ROW(KIND(STROM, .threshold = 2), 5, {2}, {2}, BYTES(0)),
    ROW(KIND(STROM, .threshold = 2), 1, {-9}, {-2}, BYTES(1)),
    ROW(KIND(THREE_LC, .multiplier = 1), 8, {0.5f, -1, 0.49999f, 0, -0.5f, 2, -0.99999f, 1},
        {0, -2, 0, 0, 0, 2, 0, 2}, .count = ANY),
    ROW(KIND(THREE_LC, .multiplier = 1.5), 8, {0.5f, -1, 0.49999f, 0, -0.5f, 2, -0.99999f, 1},
        {0, 0, 0, 0, 0, 3, 0, 0}, .count = ANY),
    ROW(KIND(THREE_LC, .multiplier = 1), 5, {1, -1, 0, 0.6f, -0.6f}, {1, -1, 0, 1, -1},
        BYTES(0, 0, 0x80, 0x3F, 2 * 81 + 0 * 27 + 1 * 9 + 2 * 3 + 0)),
    ROW(KIND(THREE_LC, .multiplier = 1), 5, {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1},
        BYTES(0, 0, 0x80, 0x3F, 242)),
    /* digits 2 1, 1 1, 0 1, 1 and padding */
    ROW(KIND(THREE_LC, .multiplier = 1), 7, {1, 0, 0, 0, -1, 0, 0}, {1, 0, 0, 0, -1, 0, 0},
        BYTES(0, 0, 0x80, 0x3F, 2 * 81 + 27 + 0 * 9 + 3 + 1, 121)),
    /* B = 2 * 0.75 / (1 - 1/4) = 2, step 1/2 */
    ROW(KIND(MODULAR, .bits = 2, .theta = 0.75), 12,
        {0, 0.2f, 0.25f, -0.25f, 0.7f, 0.76f, 1, -1, 1.3f, 7.5f, -4.5f, 1000.5f},
        {0, 0, 0.5f, 0, 0.5f, -1, -1, -1, -0.5f, -0.5f, -0.5f, 0.5f}, .count = ANY),
    /* R = 3, step 2: points -3, -1, 1, 3; a half goes up */
    ROW(KIND(GRID, .bits = 2), 8, {3, 0, -0.01f, 1.9f, 2, -3, -2, -2.01f},
        {3, 1, -1, 1, 3, -3, -1, -3}, .count = ANY),
    /* Bins of 1..3, 4..6 and 7, with M = 4, 2, 0: the scale is 2. A number in 2 bits, an index in
     * 2, a sign: 01, 00 0, 01, 1; 0 1, 00, and what is left. */
    ROW(KIND(ADACOMP, .bin = 3), 7, {1, -4, 2.5f, 1, 2, -1.5f, 0}, {2, 0, 0, 0, 0, -2, 0},
        BYTES(0, 0, 0, 0x40, 0x43, 0x40), {3, 1, 1, 0, -1, -0.5f, 5}),
    /* What is not said to be old is new: H = 2 v. */
    ROW(KIND(ADACOMP, .bin = 3), 6, {2, -1, 0.99f, -4, 0, 2}, {3, -3, 0, -3, 0, 3}, .count = ANY),
};

START_TEST(messages_are_those_of_the_papers) {
    for (size_t r = 0; r < LENGTH(messages); r++) {
        const sl_compressor_config *c = &messages[r].config;
        const size_t d = messages[r].d;
        const float none[MOST] = {0};
        const bool is_new = memcmp(messages[r].fresh, none, sizeof none) == 0;
        float got[MOST] = {0};
        wire w = open_wire(c, d, PART_ALL);
        const sl_source source = {.vector = messages[r].v,
                                  .fresh = is_new ? NULL : messages[r].fresh};
        ck_assert_int_eq(send_from(&w, &message, &source), 0);
        ck_assert_uint_eq(sl_codec_parts(w.codec), 1);
        ENSURE(messages[r].count == ANY ||
                   (w.parts[0].bytes == (size_t)messages[r].count &&
                    memcmp(w.parts[0].data, messages[r].bytes, w.parts[0].bytes) == 0),
               "row %zu, %s: other bytes", r, name_of(c));
        receive(&w, &message, 1, got);
        ENSURE(memcmp(got, messages[r].decoded, sizeof got) == 0, "row %zu, %s: decoded otherwise",
               r, name_of(c));
    }
}

/* ---- payloads ---- */

#define ADACOMP_4 KIND(ADACOMP, .bin = 3), 4
#define THREE_LC_10 KIND(THREE_LC, .multiplier = 1), 10
#define SEVEN_BITS(a, b) BYTES((a) | ((b) << 7 & 0x80), (b) >> 1)
#define MAGNITUDE_100 KIND(MAGNITUDE_DROPPING, .k = 10), 100

static const struct {
    sl_compressor_config config;
    size_t d;
    int verdict, heads; /* floats before the bytes */
    float head[2];
    int count;
    uint8_t bytes[4];
} payloads[] = {
    {ADACOMP_4, 0, 1, {1}, BYTES(0x00)},
    {ADACOMP_4, SL_EPROTO, 1, {1}, BYTES(0x01)},       /* a bit behind */
    {ADACOMP_4, 0, 1, {1}, BYTES(0x82, 0x40)},         /* 10 000 010 01 000 */
    {ADACOMP_4, 0, 1, {1}, BYTES(0x84, 0x00)},         /* 10 000 100 00 */
    {ADACOMP_4, SL_EPROTO, 1, {1}, BYTES(0x90, 0x00)}, /* 2, then 0 */
    {ADACOMP_4, SL_EPROTO, 1, {1}, BYTES(0x80, 0x00)}, /* 0 twice */
    {ADACOMP_4, SL_EPROTO, 1, {1}, BYTES(0x70, 0x00)}, /* index 3 of 3 */
    {ADACOMP_4, SL_EPROTO, 1, {1}, BYTES(0x14)},       /* index 1 of 1: 00 01 010 0 */
    {ADACOMP_4, SL_EPROTO, 1, {1}, BYTES(0x20, 0x00)}, /* 2 of 1, 0 twice */
    {ADACOMP_4, SL_EPROTO, 1, {1}, BYTES(0x00, 0x00)}, /* one more */
    {ADACOMP_4, SL_EPROTO, 1, {1}, .count = 0},
    {ADACOMP_4, SL_EPROTO, 1, {-1}, BYTES(0x00)},
    {THREE_LC_10, 0, 1, {1}, BYTES(0, 242)},
    {THREE_LC_10, 0, 1, {1}, BYTES(243)},
    {THREE_LC_10, SL_EPROTO, 1, {1}, BYTES(244)},
    {THREE_LC_10, SL_EPROTO, 1, {1}, BYTES(0)},
    {THREE_LC_10, SL_EPROTO, 1, {1}, BYTES(0, 243)},
    {THREE_LC_10, SL_EPROTO, 1, {1}, BYTES(0, 1, 2)},
    {THREE_LC_10, SL_EPROTO, 1, {-1}, BYTES(243)},
    {THREE_LC_10, SL_EPROTO, 0, {0}, BYTES('a', 'b', 'c')},
    {KIND(THREE_LC, .multiplier = 1), 9, SL_EPROTO, 1, {1}, BYTES(121, 122)}, /* padding */
    /* values, and indices of seven bits */
    {MAGNITUDE_100, 0, 2, {1, 2}, SEVEN_BITS(5, 99)},
    {MAGNITUDE_100, 0, 0, {0}, .count = 0},
    {MAGNITUDE_100, SL_EPROTO, 2, {1, NAN}, SEVEN_BITS(5, 99)},
    {MAGNITUDE_100, SL_EPROTO, 2, {1, 2}, SEVEN_BITS(5, 100)},
    {MAGNITUDE_100, SL_EPROTO, 2, {1, 2}, SEVEN_BITS(99, 5)},
    {MAGNITUDE_100, SL_EPROTO, 2, {1, 2}, SEVEN_BITS(5, 5)},
    {MAGNITUDE_100, SL_EPROTO, 2, {1, 2}, SEVEN_BITS(5, 0x100 | 99)},
    {KIND(STROM, .threshold = 2.5), 5, SL_EPROTO, 0, {0}, BYTES(0x33)}, /* twice the same index */
    {KIND(STROM, .threshold = 2.5), 5, SL_EPROTO, 0, {0}, BYTES(0x13)}, /* falling */
    {KIND(STROM, .threshold = 2.5), 5, SL_EPROTO, 0, {0}, BYTES(0x0A)}, /* index 5 of 5 */
    {KIND(STROM, .threshold = 2.5), 5, SL_EPROTO, 0, {0}, BYTES(0x30, 0, 0)}, /* too long */
    {KIND(STC, .k = 2), 5, SL_EPROTO, 1, {4}, BYTES(0x36)},                   /* falling */
    {KIND(STC, .k = 2), 5, SL_EPROTO, 1, {4}, BYTES(0x68)},                   /* no room behind 4 */
    /* values, and indices of four bits */
    {KIND(TOP_K, .k = 2), 15, 0, 2, {1, 2}, BYTES(2 | 14 << 4)},
    {KIND(TOP_K, .k = 2), 15, SL_EPROTO, 2, {1, 2}, BYTES(2 | 15 << 4)},
    {KIND(TOP_K, .k = 2), 15, SL_EPROTO, 2, {1, 2}, BYTES(5 | 2 << 4)}, /* falling */
    {KIND(TOP_K, .k = 2), 15, SL_EPROTO, 2, {1, 2}, BYTES(5 | 5 << 4)},
    {KIND(TOP_K, .k = 1), 15, SL_EPROTO, 1, {1}, BYTES(2 | 1 << 4)}, /* a bit behind */
    /* values, and a bit for each of three elements */
    {KIND(TOP_K, .k = 2), 3, 0, 2, {1, 2}, BYTES(5)},
    {KIND(TOP_K, .k = 2), 3, SL_EPROTO, 2, {1, 2}, BYTES(1)},
    {KIND(TOP_K, .k = 2), 3, SL_EPROTO, 2, {1, 2}, BYTES(7)},
    {KIND(TOP_K, .k = 2), 3, SL_EPROTO, 2, {1, 2}, BYTES(1 | 8)},
    /* values, and indices of two bits: what is right, one that falls, twice the same, what is no
     * number, a bit behind, too long */
    {KIND(NONZEROS), 4, 0, 2, {1, 2}, BYTES(1 | 3 << 2)},
    {KIND(NONZEROS), 4, SL_EPROTO, 2, {1, 2}, BYTES(3 | 1 << 2)},
    {KIND(NONZEROS), 4, SL_EPROTO, 2, {1, 2}, BYTES(1 | 1 << 2)},
    {KIND(NONZEROS), 4, SL_EPROTO, 2, {1, NAN}, BYTES(1 | 3 << 2)},
    {KIND(NONZEROS), 4, SL_EPROTO, 2, {1, 2}, BYTES(1 | 3 << 2 | 0x80)},
    {KIND(NONZEROS), 4, SL_EPROTO, 2, {1, 2}, BYTES(1 | 3 << 2, 0)},
    {KIND(NONZEROS), 4, SL_EPROTO, 2, {1, 2}, .count = 0},
    {KIND(NONZEROS), 3, SL_EPROTO, 2, {1, 2}, BYTES(1 | 3 << 2)}, /* index 3 of 3 */
    {KIND(NONZEROS), 1, 0, 1, {1}, .count = 0},
    {KIND(NONZEROS), 1, SL_EPROTO, 1, {1}, BYTES(0)},
};

START_TEST(payloads_are_refused) {
    for (size_t r = 0; r < LENGTH(payloads); r++) {
        uint8_t bytes[16];
        const size_t heads = (size_t)payloads[r].heads * sizeof(float);
        wire w = open_wire(&payloads[r].config, payloads[r].d, PART_ALL);
        memcpy(bytes, payloads[r].head, heads);
        memcpy(bytes + heads, payloads[r].bytes, (size_t)payloads[r].count);
        const sl_payload payload = {bytes, heads + (size_t)payloads[r].count};
        ENSURE(take_part(&w, &message, 0, payload, 1, NULL) == payloads[r].verdict,
               "row %zu, %s: %zu bytes are not %s", r, name_of(&payloads[r].config), payload.bytes,
               payloads[r].verdict == 0 ? "taken" : "refused");
    }
}

/* Sets the code of every element in turn to each value that its bits can hold. */
START_TEST(codes_beyond_the_largest_are_refused) {
    static const struct {
        sl_compressor_config config;
        uint32_t mask, max;
    } rows[] = {
        {KIND(FLOAT16), 0x7FFF, 0x7BFF},
        {KIND(BFLOAT16), 0x7FFF, 0x7F7F},
        {KIND(QSGD, .levels = 5), 7, 5},
        {KIND(QSGD, .levels = 7), 7, 7},
        {KIND(QSGD, .levels = 130), 255, 130},
        {KIND(TERNGRAD), 3, 2},
        {KIND(THRESHOLD, .threshold = 1), 3, 2},
        {KIND(NATURAL), 255, 254},
        {KIND(SCALED_SIGN), 1, 1},
    };
    enum { D = 1049 };
    for (size_t r = 0; r < LENGTH(rows); r++) {
        const sl_compressor_config *c = &rows[r].config;
        const size_t width = width_of(c);
        wire w = open_wire(c, D, PART_USUAL);
        float *v = gaussian(D, 5);
        ck_assert_int_eq(send_vector(&w, &message, v), 0);
        uint8_t *codes = w.bytes + (w.parts[0].bytes - (D * width + 7) / 8);
        for (size_t i = 0; i < D; i += i < 30 || i > D - 30 ? 1 : 97)
            for (uint32_t code = 0; code < 1u << width; code += width == 16 ? 0x7F : 1) {
                uint8_t kept[4] = {0};
                const size_t at = i * width / 8, n = ((i + 1) * width + 7) / 8 - at;
                memcpy(kept, codes + at, n);
                for (size_t b = 0, bit = i * width; b < width; b++, bit++)
                    codes[bit / 8] =
                        (uint8_t)((codes[bit / 8] & ~(1 << bit % 8)) | (code >> b & 1) << bit % 8);
                const int want = (code & rows[r].mask) <= rows[r].max ? 0 : SL_EPROTO;
                ENSURE(sl_decoder_check(w.decoder, &message, 0, w.parts[0]) == want,
                       "%s: code %u of element %zu", name_of(c), code, i);
                memcpy(codes + at, kept, n);
            }
    }
}

/* ---- settings ---- */

static const struct {
    sl_compressor_config config;
    size_t d;
    const char *begin, *more; /* of the error, and within it; NULL: allowed */
} settings[] = {
    {KIND(QSGD, .levels = 0), 100, "algorithm.compressor.levels: 0", ""},
    {KIND(QSGD, .levels = 32768), 100, "algorithm.compressor.levels: 32768", ""},
    {KIND(QSGD, .levels = 32767), 100, NULL, NULL},
    {KIND(QSGD, .levels = 1, .bucket = 3), 100, "algorithm.compressor.bucket: 3", ""},
    {KIND(SCALED_SIGN, .bucket = 1), 100, "algorithm.compressor.bucket: 1", ""},
    {KIND(ONE_BIT, .bucket = 2), 100, "algorithm.compressor.bucket: 2", ""},
    {KIND(TERNGRAD, .bucket = 4), 100, NULL, NULL},
    {KIND(TERNGRAD, .bucket = 3), 100, "algorithm.compressor.bucket: 3", ""},
    {KIND(TERNGRAD, .clip_sigma = 1), 100, NULL, NULL},
    {KIND(TERNGRAD, .clip_sigma = 0.5), 100, "algorithm.compressor.clip_sigma: 0.5", ""},
    {KIND(SCALED_SIGN, .bucket = 4000000000u), 100, NULL, NULL},
    {KIND(THRESHOLD), 100, "algorithm.compressor.threshold: 0", ""},
    {KIND(THRESHOLD, .threshold = -1), 100, "algorithm.compressor.threshold: -1", ""},
    {KIND(THRESHOLD, .threshold = NAN), 100, "algorithm.compressor.threshold: nan", ""},
    {KIND(THRESHOLD, .threshold = 1e39), 100, "algorithm.compressor.threshold: 1e+39", ""},
    {KIND(THRESHOLD, .threshold = 0.01), 100, NULL, NULL},
    {KIND(MODULAR, .bits = 0, .theta = 1), 10, "algorithm.bits: 0", ""},
    {KIND(MODULAR, .bits = 25, .theta = 1), 10, "algorithm.bits: 25", ""},
    {KIND(MODULAR, .bits = 8, .theta = 0), 10, "algorithm.theta: 0", ""},
    {KIND(MODULAR, .bits = 8, .theta = -1), 10, "algorithm.theta: -1", ""},
    {KIND(MODULAR, .bits = 8, .theta = NAN), 10, "algorithm.theta", ""},
    {KIND(MODULAR, .bits = 8, .theta = INFINITY), 10, "algorithm.theta: inf", ""},
    {KIND(GRID, .bits = 0), 10, "algorithm.bits: 0", "1 to 16"},
    {KIND(GRID, .bits = 17), 10, "algorithm.bits: 17", "1 to 16"},
    {KIND(EDEN, .bits = 5), 16384, "algorithm.compressor.bits: 5: allowed are 1 to 4", ""},
    {KIND(ADACOMP, .bin = 0), 10, "algorithm.compressor.bin: 0", "must be from 1 to 16384"},
    {KIND(ADACOMP, .bin = 16385), 10, "algorithm.compressor.bin: 16385", "must be from 1 to 16384"},
    {KIND(THREE_LC, .multiplier = 0.99), 10, "", "must be at least 1 and below 2"},
    {KIND(THREE_LC, .multiplier = 2), 10, "", "must be at least 1 and below 2"},
    {KIND(THREE_LC, .multiplier = -1), 10, "", "must be at least 1 and below 2"},
    {KIND(THREE_LC, .multiplier = NAN), 10, "", "must be at least 1 and below 2"},
    {KIND(SBC, .k = 6), 10, "algorithm.compressor.k: makes 6 entries", ""},
    {KIND(POS_NEG, .k = 6), 10, "algorithm.compressor.k: makes 6 entries", ""},
    {KIND(SBC, .fraction = 0.51), 100, "algorithm.compressor.fraction: makes 51", ""},
    {KIND(TOP_K, .k = 11), 10, "algorithm.compressor.k: 11 ", ""},
    {KIND(TOP_K, .fraction = 0), 10, "algorithm.compressor.fraction: ", ""},
    {KIND(TOP_K, .fraction = -0.1), 10, "algorithm.compressor.fraction: ", ""},
    {KIND(TOP_K, .fraction = 1.0001), 10, "algorithm.compressor.fraction: ", ""},
    {KIND(TOP_K, .fraction = NAN), 10, "algorithm.compressor.fraction: ", ""},
    {KIND(RANDOM_K, .k = 11), 10, "algorithm.compressor.k: 11 ", ""},
    {KIND(RANDOM_K, .fraction = NAN), 10, "algorithm.compressor.fraction: ", ""},
    {KIND(RANDOM_DROPPING, .probability = 0), 10, "algorithm.compressor.probability: ", ""},
    {KIND(RANDOM_DROPPING, .probability = 1.0001), 10, "algorithm.compressor.probability: ", ""},
    {KIND(RANDOM_DROPPING, .probability = NAN), 10, "algorithm.compressor.probability: ", ""},
    {KIND(TOP_K, .k = 5, .coding = SL_ENTROPY_HUFFMAN), 100,
     "algorithm.compressor.coding: ", "top-k takes none and golomb elias"},
    {KIND(NATURAL, .coding = SL_ENTROPY_ELIAS), 100,
     "algorithm.compressor.coding: ", "natural takes none and huffman"},
    {KIND(QSGD, .levels = 7, .bucket = 512, .coding = SL_ENTROPY_GOLOMB), 100,
     "algorithm.compressor.coding: \"golomb\"", ""},
    {KIND(QSGD, .levels = 1024, .bucket = 512, .coding = SL_ENTROPY_HUFFMAN), 100, "",
     "at most 1023"},
    /* A part of 4096 bytes holds no piece. */
    {KIND(EDEN, .bits = 2), 16384,
     "transport.chunk_bytes: 4096: the parts of eden cannot be shorter than 4100", ""},
    {KIND(ROTATED_QSGD, .levels = 60, .bucket = 1000, .coding = SL_ENTROPY_HUFFMAN), 100000,
     "transport.chunk_bytes", ""},
    {KIND(ROTATED_QSGD, .levels = 60, .bucket = 1000, .coding = SL_ENTROPY_HUFFMAN), 2000, NULL,
     NULL},
};

START_TEST(settings_are_refused) {
    for (size_t r = 0; r < LENGTH(settings); r++) {
        sl_codec *codec = NULL;
        sl_error error = {0};
        const char *begin = settings[r].begin;
        const int want = begin == NULL ? 0 : SL_EINVAL;
        ENSURE(sl_codec_open(&codec, &settings[r].config, settings[r].d, PART_SMALL, &error) ==
                   want,
               "row %zu, %s: %s", r, name_of(&settings[r].config), error.text);
        ENSURE(begin == NULL || (strncmp(error.text, begin, strlen(begin)) == 0 &&
                                 strstr(error.text, settings[r].more) != NULL),
               "row %zu: %s", r, error.text);
        ck_assert((codec != NULL) == (begin == NULL));
        sl_codec_close(&codec);
    }
}

START_TEST(a_k_beyond_a_tensor_is_refused) {
    static const size_t ends[] = {3, 5000, 5001, 7000};
    sl_codec *codec = NULL;
    ck_assert_int_eq(
        sl_codec_open_split(&codec, &CONFIG(TOP_K, .k = 4), ends, NULL, 4, PART_SMALL, NULL),
        SL_EINVAL);
    ck_assert_ptr_null(codec);
}
