/* speed.c - how fast operations, compressors and models are on a device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "checkvec.h"
#include "compress/coding.h"

enum { REPEATS = 10, REPEATS_QUICK = 100, BENCH_SECONDS = 1, PART_SIZES = 3, SENDERS = 2 };
static const size_t batch_bytes = 4 << 20; /* that agents add at once, of all senders */
/* Agents' by default, and what fewer launches would gain. */
static const size_t part_sizes[PART_SIZES] = {112 << 10, 1 << 20, 16 << 20};

typedef struct bench {
    target t;
    size_t n;
    float *v[4];
    sl_encoder *encoder;
    sl_decoder *decoders[SENDERS];
    const sl_codec *codec;
    void *host;        /* parts on their way out; NULL on a device */
    sl_payload *parts; /* of a message, where the vectors are */
    uint32_t *sizes;   /* of these */
    uint32_t together; /* parts of a sender that are added at once */
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
    for (uint32_t part = 0; part < sl_codec_parts(b->codec); part++)
        b->sizes[part] = (uint32_t)b->parts[part].bytes;
}

/* As a round does: the next parts of all senders. */
static void bench_add(bench *b) {
    const uint32_t parts = sl_codec_parts(b->codec);
    for (uint32_t first = 0; first < parts; first += b->together) {
        sl_run runs[SENDERS];
        for (int s = 0; s < SENDERS; s++)
            runs[s] = (sl_run){.decoder = b->decoders[s],
                               .message = bench_message,
                               .first = first,
                               .count = parts - first < b->together ? parts - first : b->together,
                               .payload = b->parts[first],
                               .sizes = b->sizes + first,
                               .weight = 1e-6f};
        sl_decoder_add_runs(runs, SENDERS, b->v[0]);
    }
}

/* Fastest of some, or of what BENCH_SECONDS leave time for. A device is waited for once for all,
 * and so rarely that the wait is none of the time. NaN: an operation failed. */
static double seconds_of(bench *b, void (*run)(bench *)) {
    double best = INFINITY, first = sl_clock_seconds();
    run(b);
    if (b->t.vec->fence(NULL) != 0)
        return NAN;
    const bool is_quick =
        (sl_clock_seconds() - first) * REPEATS_QUICK < BENCH_SECONDS && !b->t.vec->on_host;
    const int repeats = is_quick ? REPEATS_QUICK : REPEATS;
    for (int r = 0; r < 5 && (r == 0 || sl_clock_seconds() - first < BENCH_SECONDS); r++) {
        double began = sl_clock_seconds();
        for (int i = 0; i < repeats; i++)
            run(b);
        if (b->t.vec->fence(NULL) != 0)
            return NAN;
        double each = (sl_clock_seconds() - began) / repeats;
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

/* How often encoding reads the vector; what a CPU reads again is in its cache. */
static double reads_of(const bench *b, const sl_compressor_config *c) {
    sl_coding coding;
    if (b->t.vec->on_host)
        return 1;
    sl_codec_coding(b->codec, &coding);
    const unsigned reads = b->t.vec->coder->reads(&coding);
    return reads > 0 ? reads : share_of(c);
}

static uint32_t parts_together(const bench *b) {
    const size_t fit = batch_bytes / (SENDERS * sl_codec_stride(b->codec));
    const bool joins = !b->t.vec->on_host && sl_codec_joins(b->codec, SENDERS);
    return joins && fit > 1 ? (uint32_t)fit : 1;
}

static void open_bench(bench *b, const sl_codec *codec) {
    sl_error error;
    b->codec = codec;
    b->parts = need(calloc(sl_codec_parts(codec), sizeof *b->parts));
    b->sizes = need(calloc(sl_codec_parts(codec), sizeof *b->sizes));
    b->together = parts_together(b);
    b->host = b->t.vec->on_host
                  ? need(b->t.vec->allocate_host(stride_of(codec) * sl_codec_parts(codec)))
                  : NULL;
    int result = sl_encoder_open(&b->encoder, codec, b->t.vec, &error);
    for (int s = 0; s < SENDERS; s++)
        if (result == 0)
            result = sl_decoder_open(&b->decoders[s], codec, b->t.vec, &error);
    if (result != 0)
        need(NULL);
}

static void close_bench(bench *b) {
    sl_encoder_close(&b->encoder);
    for (int s = 0; s < SENDERS; s++)
        sl_decoder_close(&b->decoders[s]);
    free(b->sizes);
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
        if (sl_codec_borrows(codec))
            bench_encode(b); /* which encodes nothing */
        else
            print_speed(b, name, reads_of(b, config) * bytes + payload, seconds_of(b, bench_encode),
                        copy_rate);
        find_parts(b);
        snprintf(name, sizeof name, "add two %s, parts of %zu KiB", compressors[c].name,
                 part_bytes >> 10);
        print_speed(b, name, 2 * bytes * share_of(config) + SENDERS * payload,
                    seconds_of(b, bench_add), copy_rate);
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
