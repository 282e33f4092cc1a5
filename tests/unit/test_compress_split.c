/* test_compress_split.c - a vector of tensors compressed one by one is what each of them would be
 * alone. */
#include <math.h>
#include <string.h>

#include "harness.h"
#include "starling/compressor.h"

enum { D = 7000, TENSORS = 4 };

static const size_t ends[TENSORS] = {3, 5000, 5001, D};
static float input[D], decoded[D], expected[D];
static _Alignas(64) char buffer[1 << 16];
static sl_error error;

static void fill(void) {
    for (size_t i = 0; i < D; i++)
        input[i] = sinf((float)(i * i % 10007)) * (i < 5000 ? 1 : 100);
}

/* acc = decode(encode(v)), all parts. */
static void there_and_back(const sl_codec *codec, const sl_message *message, const float *v,
                           float *acc) {
    sl_encoder *encoder;
    sl_decoder *decoder;
    ck_assert_int_eq(sl_encoder_open(&encoder, codec, sl_vec_cpu(), &error), 0);
    ck_assert_int_eq(sl_decoder_open(&decoder, codec, sl_vec_cpu(), &error), 0);
    sl_source source = {.vector = v};
    ck_assert_int_eq(sl_encoder_begin(encoder, message, &source), 0);
    for (uint32_t part = 0; part < sl_codec_parts(codec); part++) {
        sl_payload payload;
        ck_assert_int_eq(sl_encoder_part(encoder, part, &source, buffer, &payload), 0);
        ck_assert_uint_le(payload.bytes, sl_codec_part_bytes_max(codec));
        ck_assert_int_eq(sl_decoder_check(decoder, message, part, payload), 0);
        sl_decoder_add(decoder, message, part, payload, 1, acc);
    }
    sl_encoder_close(&encoder);
    sl_decoder_close(&decoder);
}

static void compare_with_single_tensors(sl_compressor_config config) {
    sl_codec *whole, *one;
    sl_message message = {.seed = 3, .exchange = 2, .sender = 1};
    fill();
    memset(decoded, 0, sizeof decoded);
    memset(expected, 0, sizeof expected);
    ck_assert_int_eq(sl_codec_open_split(&whole, &config, ends, TENSORS, 4096, &error), 0);
    there_and_back(whole, &message, input, decoded);
    for (size_t i = 0, from = 0; i < TENSORS; from = ends[i++]) {
        ck_assert_int_eq(sl_codec_open(&one, &config, ends[i] - from, 4096, &error), 0);
        there_and_back(one, &message, input + from, expected + from);
        sl_codec_close(&one);
    }
    ck_assert_mem_eq(decoded, expected, sizeof expected);
    sl_codec_close(&whole);
}

START_TEST(deterministic_compressors_treat_each_tensor_alone) {
    compare_with_single_tensors(
        (sl_compressor_config){.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.1});
    compare_with_single_tensors((sl_compressor_config){.kind = SL_COMPRESSOR_SCALED_SIGN});
    compare_with_single_tensors(
        (sl_compressor_config){.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 100});
}
END_TEST

START_TEST(random_ones_draw_other_numbers_for_each_tensor) {
    static float same[2000], acc[2000];
    for (size_t i = 0; i < 2000; i++)
        same[i] = 1 + (float)(i % 1000);
    sl_codec *codec;
    sl_message message = {.seed = 3, .exchange = 2, .sender = 1};
    sl_compressor_config config = {.kind = SL_COMPRESSOR_RANDOM_K, .fraction = 0.5};
    ck_assert_int_eq(
        sl_codec_open_split(&codec, &config, (const size_t[]){1000, 2000}, 2, 4096, &error), 0);
    there_and_back(codec, &message, same, acc);
    ck_assert_int_ne(memcmp(acc, acc + 1000, 1000 * sizeof *acc), 0);
    size_t kept = 0;
    for (size_t i = 0; i < 1000; i++)
        kept += acc[i] != 0;
    ck_assert_uint_eq(kept, 500);
    sl_codec_close(&codec);
}
END_TEST

START_TEST(a_k_beyond_a_tensor_is_refused) {
    sl_codec *codec = NULL;
    sl_compressor_config config = {.kind = SL_COMPRESSOR_TOP_K, .k = 4};
    ck_assert_int_eq(sl_codec_open_split(&codec, &config, ends, TENSORS, 4096, &error), SL_EINVAL);
    ck_assert_ptr_null(codec);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("compress split");
    ADD_TESTS(suite, "tensors", deterministic_compressors_treat_each_tensor_alone,
              random_ones_draw_other_numbers_for_each_tensor, a_k_beyond_a_tensor_is_refused);
    return run_suite(suite);
}
