/* speed.c - how fast operations, compressors and models are on a device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "checkvec.h"

enum { REPEATS = 10, BENCH_SECONDS = 1, PART_SIZES = 3 };
/* Agents' by default, and what fewer launches would gain. */
static const size_t part_sizes[PART_SIZES] = {112 << 10, 1 << 20, 16 << 20};

typedef struct bench {
    target t;
    size_t n;
    float *v[4];
    sl_encoder *encoder;
    sl_decoder *decoder;
    const sl_codec *codec;
    void *host;        /* parts on their way out; NULL on a device */
    sl_payload *parts; /* of a message, where the vectors are */
} bench;

static void bench_copy(bench *b) {
    b->t.vec->copy(b->v[0], b->v[1], b->n * sizeof(float));
}

static void bench_combine(bench *b) {
    b->t.vec->combine(b->v[0], (const float *const[]){b->v[0], b->v[1], b->v[2]},
                      (const float[]){0.3f, 0.3f, 0.4f}, 3, b->n);
}

static void bench_step(bench *b) {
    b->t.vec->sgd_step(b->v[0], b->v[0], b->v[1], b->v[2],
                       &(sl_sgd){.learning_rate = 1e-6f, .momentum = 0.9f}, b->n);
}

static const sl_message bench_message = {.seed = 1, .exchange = 1};

/* A device begins the whole message, and leaves it where it is. */
static void bench_encode(bench *b) {
    const sl_source source = {.vector = b->v[1]};
    sl_encoder_begin(b->encoder, &bench_message, &source);
    for (uint32_t part = 0; b->t.vec->on_host && part < sl_codec_parts(b->codec); part++)
        sl_encoder_part(b->encoder, part, &source, (char *)b->host + part * stride_of(b->codec),
                        &b->parts[part]);
}

static void find_parts(bench *b) {
    const sl_source source = {.vector = b->v[1]};
    for (uint32_t part = 0; !b->t.vec->on_host && part < sl_codec_parts(b->codec); part++)
        sl_encoder_part(b->encoder, part, &source, NULL, &b->parts[part]);
}

static void bench_decode(bench *b) {
    for (uint32_t part = 0; part < sl_codec_parts(b->codec); part++)
        sl_decoder_add(b->decoder, &bench_message, part, b->parts[part], 1e-6f, b->v[0]);
}

/* Fastest of some, or of what BENCH_SECONDS leave time for. A device is waited for once for all.
 * NaN: an operation failed. */
static double seconds_of(bench *b, void (*run)(bench *)) {
    double best = INFINITY, first = sl_clock_seconds();
    if (b->t.vec->fence(NULL) != 0)
        return NAN;
    for (int r = 0; r < 5 && (r == 0 || sl_clock_seconds() - first < BENCH_SECONDS); r++) {
        double began = sl_clock_seconds();
        for (int i = 0; i < REPEATS; i++)
            run(b);
        if (b->t.vec->fence(NULL) != 0)
            return NAN;
        double each = (sl_clock_seconds() - began) / REPEATS;
        best = each < best ? each : best;
    }
    return best;
}

static void print_speed(const bench *b, const char *name, double bytes, double seconds,
                        double copy_rate) {
    if (isnan(seconds)) {
        tell(&b->t, name, false);
        return;
    }
    printf("%-10s %-40s %10zu %10.1f us %9.1f GB/s %6.1f %% of a copy\n", b->t.label, name, b->n,
           1e6 * seconds, 1e-9 * bytes / seconds, 100 * bytes / seconds / copy_rate);
    fflush(stdout);
}

/* Of the vector's elements, those that a message changes. */
static double share_of(const sl_compressor_config *c) {
    return c->kind == SL_COMPRESSOR_TOP_K || c->kind == SL_COMPRESSOR_RANDOM_K ? c->fraction
           : c->kind == SL_COMPRESSOR_RANDOM_DROPPING                          ? c->probability
                                                                               : 1;
}

/* How often an encoder reads what it looks at: a scale goes before the codes. */
static int reads_of(const sl_compressor_config *c) {
    const bool is_scaled = c->kind == SL_COMPRESSOR_QSGD || c->kind == SL_COMPRESSOR_SCALED_SIGN ||
                           c->kind == SL_COMPRESSOR_ONE_BIT || c->kind == SL_COMPRESSOR_TERNGRAD;
    return is_scaled ? 2 : 1;
}

static void open_bench(bench *b, const sl_codec *codec) {
    sl_error error;
    b->codec = codec;
    b->parts = need(calloc(sl_codec_parts(codec), sizeof *b->parts));
    b->host = b->t.vec->on_host
                  ? need(b->t.vec->allocate_host(stride_of(codec) * sl_codec_parts(codec)))
                  : NULL;
    if (sl_encoder_open(&b->encoder, codec, b->t.vec, &error) != 0 ||
        sl_decoder_open(&b->decoder, codec, b->t.vec, &error) != 0)
        need(NULL);
}

static void close_bench(bench *b) {
    sl_encoder_close(&b->encoder);
    sl_decoder_close(&b->decoder);
    b->t.vec->release_host(b->host);
    free(b->parts);
}

static void bench_compressor(bench *b, int c, size_t part_bytes, double copy_rate) {
    const sl_compressor_config *config = &compressors[c].config;
    const double payload = sl_compressor_bits(config, b->n) / 8, bytes = 4.0 * (double)b->n;
    sl_codec *codec;
    sl_error error;
    char name[64];
    if (sl_codec_open(&codec, config, b->n, part_bytes, &error) != 0)
        return;
    if (has_kernel(&b->t, codec)) {
        open_bench(b, codec);
        snprintf(name, sizeof name, "encode %s", compressors[c].name);
        print_speed(b, name, reads_of(config) * bytes + payload, seconds_of(b, bench_encode),
                    copy_rate);
        find_parts(b);
        snprintf(name, sizeof name, "add %s, parts of %zu KiB", compressors[c].name,
                 part_bytes >> 10);
        print_speed(b, name, 2 * bytes * share_of(config) + payload, seconds_of(b, bench_decode),
                    copy_rate);
        close_bench(b);
    }
    sl_codec_close(&codec);
}

void bench_target(const target *t, size_t n) {
    bench b = {.t = *t, .n = n};
    float *random = make_input(RANDOM, 1, n);
    for (int i = 0; i < 4; i++)
        b.v[i] = upload(t, random, n);
    free(random);
    const double bytes = 4.0 * (double)n;
    bench_copy(&b);
    const double copy = seconds_of(&b, bench_copy), rate = 2 * bytes / copy;
    print_speed(&b, "copy", 2 * bytes, copy, rate);
    print_speed(&b, "combine, 2 neighbours", 4 * bytes, seconds_of(&b, bench_combine), rate);
    print_speed(&b, "sgd_step, momentum", 5 * bytes, seconds_of(&b, bench_step), rate);
    for (int c = 0; c < count_compressors(); c++)
        for (int p = 0; p < (t->vec->on_host ? 1 : PART_SIZES); p++)
            bench_compressor(&b, c, part_sizes[p], rate);
    for (int i = 0; i < 4; i++)
        t->vec->release(b.v[i]);
    bench_models(t);
    if (t->vec->fence(NULL) != 0)
        tell(t, "gradients", false);
}
