/* compressors.c - how long every compressor takes to encode a vector, and to decode and accumulate
 * it, on one thread.
 *
 * All take turns. Prints one line of JSON for each, medians in milliseconds of the processor's
 * time, in which waiting for a core does not count. compressors.py makes the table; the limits of a
 * machine are checkvec --bench's.
 *
 *     compressors [DIMENSION [REPETITIONS]]
 */
#include <stdint.h>
#include <string.h>

#include "bench.h"
#include "starling/compressor.h"
#include "starling/rng.h"

enum { PART_BYTES = 114688, ALIGNMENT = 64, REPETITIONS_MAX = 999 };

typedef struct contender {
    const char *label;
    sl_compressor_config config;
} contender;

static const contender contenders[] = {
    {"identity", {.kind = SL_COMPRESSOR_IDENTITY}},
    {"float16", {.kind = SL_COMPRESSOR_FLOAT16}},
    {"bfloat16", {.kind = SL_COMPRESSOR_BFLOAT16}},
    {"top-k 1 %", {.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.01}},
    {"top-k 1 %, golomb",
     {.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.01, .coding = SL_ENTROPY_GOLOMB}},
    {"top-k 1 %, elias",
     {.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.01, .coding = SL_ENTROPY_ELIAS}},
    {"top-k 10 %", {.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.1}},
    {"stc 1 %", {.kind = SL_COMPRESSOR_STC, .fraction = 0.01}},
    {"stc 1 %, golomb", {.kind = SL_COMPRESSOR_STC, .fraction = 0.01, .coding = SL_ENTROPY_GOLOMB}},
    {"sbc 1 %", {.kind = SL_COMPRESSOR_SBC, .fraction = 0.01}},
    {"pos-neg 0.5 %", {.kind = SL_COMPRESSOR_POS_NEG, .fraction = 0.005}},
    {"strom 1 %", {.kind = SL_COMPRESSOR_STROM, .threshold = 2.5758}},
    {"random-k 1 %", {.kind = SL_COMPRESSOR_RANDOM_K, .fraction = 0.01, .scaled = true}},
    {"qsgd 4 bits, buckets of 512", {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 512}},
    {"qsgd 4 bits, one bucket", {.kind = SL_COMPRESSOR_QSGD, .levels = 7}},
    {"scaled-sign", {.kind = SL_COMPRESSOR_SCALED_SIGN}},
    {"1-bit, buckets of 512", {.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 512}},
    {"terngrad, buckets of 512", {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 512}},
    {"natural", {.kind = SL_COMPRESSOR_NATURAL}},
    {"drive", {.kind = SL_COMPRESSOR_DRIVE}},
    {"eden 2 bits", {.kind = SL_COMPRESSOR_EDEN, .bits = 2}},
    {"eden 4 bits", {.kind = SL_COMPRESSOR_EDEN, .bits = 4}},
    {"magnitude-dropping 1 %", {.kind = SL_COMPRESSOR_MAGNITUDE_DROPPING, .fraction = 0.01}},
    {"adacomp, bins of 500", {.kind = SL_COMPRESSOR_ADACOMP, .bin = 500}},
    {"3lc", {.kind = SL_COMPRESSOR_THREE_LC, .multiplier = 1}},
    {"random-dropping 50 %",
     {.kind = SL_COMPRESSOR_RANDOM_DROPPING, .probability = 0.5, .scaled = true}},
    {"random-dropping 1 %",
     {.kind = SL_COMPRESSOR_RANDOM_DROPPING, .probability = 0.01, .scaled = true}},
    {"threshold", {.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 1}},
};
enum { CONTENDERS = sizeof contenders / sizeof *contenders };

/* One codec, with all that it needs. */
typedef struct lane {
    sl_codec *codec;
    sl_encoder *encoder;
    sl_decoder *decoder;
    const float *vector;
    float *acc;
    uint8_t *buffer; /* (parts, part_bytes_max rounded up); NULL where the codec borrows */
    size_t stride;
    sl_payload *payloads;
    uint64_t exchange;
    double encode_ms[REPETITIONS_MAX], decode_ms[REPETITIONS_MAX];
} lane;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "compressors: %s: %s\n", what, why);
    exit(1);
}

static void open_lane(lane *l, const contender *c, const float *vector, float *acc,
                      size_t dimension) {
    sl_error error = {0};
    l->vector = vector;
    l->acc = acc;
    if (sl_codec_open(&l->codec, &c->config, dimension, PART_BYTES, &error) != 0 ||
        sl_encoder_open(&l->encoder, l->codec, sl_vec_cpu(), &error) != 0 ||
        sl_decoder_open(&l->decoder, l->codec, sl_vec_cpu(), &error) != 0)
        fail(c->label, error.text);
    size_t parts = sl_codec_parts(l->codec);
    l->stride = (sl_codec_part_bytes_max(l->codec) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    l->buffer = sl_codec_borrows(l->codec) ? NULL : aligned_alloc(ALIGNMENT, parts * l->stride);
    l->payloads = calloc(parts, sizeof *l->payloads);
    if (l->payloads == NULL || (l->buffer == NULL && !sl_codec_borrows(l->codec)))
        fail(c->label, "out of memory");
}

static void close_lane(lane *l) {
    free(l->payloads);
    free(l->buffer);
    sl_decoder_close(&l->decoder);
    sl_encoder_close(&l->encoder);
    sl_codec_close(&l->codec);
}

static sl_message message_of(const lane *l) {
    return (sl_message){.seed = 1, .exchange = l->exchange, .sender = 1};
}

static void encode(lane *l) {
    l->exchange++;
    sl_message message = message_of(l);
    sl_source source = {.vector = l->vector};
    int result = sl_encoder_begin(l->encoder, &message, &source);
    for (uint32_t p = 0; result == 0 && p < sl_codec_parts(l->codec); p++)
        result = sl_encoder_part(l->encoder, p, &source,
                                 l->buffer ? l->buffer + p * l->stride : NULL, &l->payloads[p]);
    if (result != 0)
        fail("encode", sl_error_meaning(result));
}

/* As a receiver does: each part is checked, then added. */
static void decode(lane *l) {
    sl_message message = message_of(l);
    for (uint32_t p = 0; p < sl_codec_parts(l->codec); p++) {
        if (sl_decoder_check(l->decoder, &message, p, l->payloads[p]) != 0)
            fail("decode", "a payload was refused");
        sl_decoder_add(l->decoder, &message, p, l->payloads[p], 0.25f, l->acc);
    }
}

static size_t message_bytes(const lane *l) {
    size_t bytes = 0;
    for (uint32_t p = 0; p < sl_codec_parts(l->codec); p++)
        bytes += l->payloads[p].bytes;
    return bytes;
}

static double processor_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static double time_of(void (*work)(lane *l), lane *l) {
    const double start = processor_ms();
    work(l);
    return processor_ms() - start;
}

static void measure(const float *vector, float *acc, size_t dimension, size_t repetitions) {
    static lane lanes[CONTENDERS];
    for (int c = 0; c < CONTENDERS; c++) {
        open_lane(&lanes[c], &contenders[c], vector, acc, dimension);
        encode(&lanes[c]); /* all memory is touched before anything is timed */
    }
    for (size_t r = 0; r < repetitions; r++)
        for (int c = 0; c < CONTENDERS; c++) {
            lanes[c].encode_ms[r] = time_of(encode, &lanes[c]);
            lanes[c].decode_ms[r] = time_of(decode, &lanes[c]);
        }
    for (int c = 0; c < CONTENDERS; c++) {
        printf("{\"codec\": \"%s\", \"bytes\": %zu, \"encode\": %.3f, \"decode\": %.3f}\n",
               contenders[c].label, message_bytes(&lanes[c]),
               bench_median(lanes[c].encode_ms, repetitions),
               bench_median(lanes[c].decode_ms, repetitions));
        close_lane(&lanes[c]);
    }
}

int main(int argc, char **argv) {
    const size_t dimension = argc > 1 ? strtoull(argv[1], NULL, 10) : 25557032,
                 repetitions = argc > 2 ? strtoull(argv[2], NULL, 10) : 5;
    if (dimension < 1 || repetitions < 1 || repetitions > REPETITIONS_MAX)
        fail("usage", "compressors [DIMENSION [REPETITIONS]]");
    float *vector = sl_vec_cpu()->allocate(dimension), *acc = sl_vec_cpu()->allocate(dimension);
    if (vector == NULL || acc == NULL)
        fail("vectors", "out of memory");
    sl_rng rng = sl_rng_open(1, 0, 0, SL_PURPOSE_INIT);
    for (size_t i = 0; i < dimension; i++)
        vector[i] = (float)sl_rng_normal(&rng);
    measure(vector, acc, dimension, repetitions);
    sl_vec_cpu()->release(vector);
    sl_vec_cpu()->release(acc);
    return 0;
}
