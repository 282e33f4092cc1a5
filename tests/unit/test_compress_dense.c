/* test_compress_dense.c - codes of one width: how they are packed, and float8. test_kernels.c has
 * the bytes of all dense-coded compressors. */
#include "compress/lossless/pack.h"
#include "messages.h"

static void put_bit(uint8_t *bytes, size_t at, uint32_t bit) {
    bytes[at / 8] = (uint8_t)(bytes[at / 8] | (bit & 1) << at % 8);
}

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

/* ---- by hand ---- */

/* To the nearest float with `digits` binary digits whose last place is at least 2^least; ties to
 * even. */
static double nearest(double x, int digits, int least) {
    int exponent;
    frexp(x, &exponent);
    int place = exponent - digits > least ? exponent - digits : least;
    return ldexp(nearbyint(ldexp(x, -place)), place);
}

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
    wire w = open_wire(&(sl_compressor_config){.kind = SL_COMPRESSOR_FLOAT8}, 4, PART_USUAL);
    ck_assert_int_eq(send_vector(&w, &message, (const float[]){1, -2, 57344, 0}), 0);
    ck_assert_uint_eq(w.parts[0].bytes, 4);
    ck_assert_mem_eq(w.parts[0].data, ((const uint8_t[]){0x3C, 0xC0, 0x7B, 0}), 4);
    ck_assert_int_eq(send_vector(&w, &message, (const float[]){1, -61439, 0, 0}), 0);
    ck_assert_int_eq(send_vector(&w, &message, (const float[]){1, -61440, 0, 0}), SL_EDIVERGED);
    ck_assert_int_eq(send_vector(&w, &message, (const float[]){1, NAN, 0, 0}), SL_EDIVERGED);
}
