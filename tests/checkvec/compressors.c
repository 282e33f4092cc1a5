/* compressors.c - every compressor on a device against the CPU: the bytes of its messages, and what
 * decoding them adds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/usual_compressor.h"
#include "checkvec.h"
#include "compress/coding.h"

enum { COMPRESSORS_MAX = 64, PART_BYTES = 8192 };
compressor_row compressors[COMPRESSORS_MAX] = {
    {"identity", {.kind = SL_COMPRESSOR_IDENTITY}},
    {"float16", {.kind = SL_COMPRESSOR_FLOAT16}},
    {"bfloat16", {.kind = SL_COMPRESSOR_BFLOAT16}},
    {"top-k 1 %", {.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.01}},
    {"top-k 25 %", {.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.25}},
    {"top-k all", {.kind = SL_COMPRESSOR_TOP_K, .fraction = 1}},
    {"random-k 1 %", {.kind = SL_COMPRESSOR_RANDOM_K, .fraction = 0.01}},
    {"random-k 50 % scaled", {.kind = SL_COMPRESSOR_RANDOM_K, .fraction = 0.5, .scaled = true}},
    {"random-k 80 % contractive",
     {.kind = SL_COMPRESSOR_RANDOM_K, .fraction = 0.8, .scaled = true, .contractive = true}},
    {"random-k all", {.kind = SL_COMPRESSOR_RANDOM_K, .fraction = 1}},
    {"qsgd 7 whole", {.kind = SL_COMPRESSOR_QSGD, .levels = 7}},
    {"qsgd 7 buckets of 512",
     {.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 512, .contractive = true}},
    {"qsgd 1 buckets of 5", {.kind = SL_COMPRESSOR_QSGD, .levels = 1, .bucket = 5}},
    {"qsgd 127 max buckets of 3000",
     {.kind = SL_COMPRESSOR_QSGD, .levels = 127, .bucket = 3000, .norm = SL_NORM_MAX}},
    {"qsgd 32767 max whole", {.kind = SL_COMPRESSOR_QSGD, .levels = 32767, .norm = SL_NORM_MAX}},
    {"qsgd 500 buckets of 100", {.kind = SL_COMPRESSOR_QSGD, .levels = 500, .bucket = 100}},
    {"scaled-sign whole", {.kind = SL_COMPRESSOR_SCALED_SIGN}},
    {"scaled-sign buckets of 1000", {.kind = SL_COMPRESSOR_SCALED_SIGN, .bucket = 1000}},
    {"1-bit whole", {.kind = SL_COMPRESSOR_ONE_BIT}},
    {"1-bit buckets of 77", {.kind = SL_COMPRESSOR_ONE_BIT, .bucket = 77}},
    {"terngrad whole", {.kind = SL_COMPRESSOR_TERNGRAD}},
    {"terngrad buckets of 256", {.kind = SL_COMPRESSOR_TERNGRAD, .bucket = 256}},
    {"terngrad clipped whole", {.kind = SL_COMPRESSOR_TERNGRAD, .clip_sigma = 2.5}},
    {"terngrad clipped buckets of 300",
     {.kind = SL_COMPRESSOR_TERNGRAD, .clip_sigma = 1, .bucket = 300}},
    {"natural", {.kind = SL_COMPRESSOR_NATURAL}},
    {"random-dropping 1 %", {.kind = SL_COMPRESSOR_RANDOM_DROPPING, .probability = 0.01}},
    {"random-dropping 60 % scaled",
     {.kind = SL_COMPRESSOR_RANDOM_DROPPING, .probability = 0.6, .scaled = true}},
    {"threshold", {.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 0.3}},
};

int count_compressors(void) {
    int count = 0;
    while (count < COMPRESSORS_MAX && compressors[count].name != NULL)
        count++;
    return count;
}

void name_the_rest(void) {
    for (int kind = 0; kind < SL_COMPRESSOR_COUNT; kind++) {
        const int count = count_compressors();
        int c = 0;
        while (c < count && (int)compressors[c].config.kind != kind)
            c++;
        if (c == count && count < COMPRESSORS_MAX) {
            compressors[c].name = sl_compressor_name((sl_compressor_kind)kind);
            compressors[c].config = usual_compressor((sl_compressor_kind)kind);
        }
    }
}

/* One side: what encodes and decodes on a device. */
typedef struct side {
    target t;
    sl_encoder *encoder;
    sl_decoder *decoder;
    void *host; /* parts on their way out */
    float *v, *other, *acc, *arrived;
} side;

size_t stride_of(const sl_codec *codec) {
    return (sl_codec_part_bytes_max(codec) + SL_VEC_ALIGNMENT - 1) / SL_VEC_ALIGNMENT *
           SL_VEC_ALIGNMENT;
}

static side open_side(const target *t, const sl_codec *codec, const float *v, const float *other,
                      size_t n) {
    side s = {
        .t = *t, .v = upload(t, v, n), .other = upload(t, other, n), .acc = upload(t, other, n)};
    size_t stride = stride_of(codec);
    s.host = need(t->vec->allocate_host(stride * sl_codec_parts(codec)));
    s.arrived = need(t->vec->allocate(stride / sizeof(float)));
    sl_error error;
    if (sl_encoder_open(&s.encoder, codec, t->vec, &error) != 0 ||
        sl_decoder_open(&s.decoder, codec, t->vec, &error) != 0)
        need(NULL);
    sl_encoder_stage(s.encoder, s.host);
    return s;
}

static void close_side(side *s) {
    sl_encoder_close(&s->encoder);
    sl_decoder_close(&s->decoder);
    s->t.vec->release_host(s->host);
    float *all[] = {s->v, s->other, s->acc, s->arrived};
    for (int i = 0; i < 4; i++)
        s->t.vec->release(all[i]);
}

static void read_difference(void *context, size_t from, size_t count, float *out) {
    const side *s = context;
    s->t.vec->combine(out, (const float *const[]){s->v + from, s->other + from},
                      (const float[]){1, -1}, 2, count);
}

/* acc += weight * part, from bytes on the host. */
static void add_part(side *s, const sl_message *message, uint32_t part, sl_payload payload,
                     float weight) {
    s->t.vec->copy_in(s->arrived, payload.data, payload.bytes);
    sl_decoder_add(s->decoder, message, part, (sl_payload){s->arrived, payload.bytes}, weight,
                   s->acc);
}

static bool same_bytes(const char *label, uint32_t part, sl_payload got, sl_payload expected) {
    if (got.bytes != expected.bytes) {
        printf("# %s: part %u has %zu bytes, not %zu\n", label, part, got.bytes, expected.bytes);
        return false;
    }
    const uint8_t *a = got.data, *b = expected.data;
    for (size_t i = 0; i < got.bytes; i++)
        if (a[i] != b[i]) {
            printf("# %s: byte %zu of %zu of part %u is %02x, not %02x\n", label, i, got.bytes,
                   part, a[i], b[i]);
            return false;
        }
    return true;
}

typedef struct encoding {
    sl_message message;
    sl_source source;
    int result; /* of begin and the parts so far */
} encoding;

static void begin_message(side *s, encoding *e, bool read, uint64_t exchange) {
    *e =
        (encoding){.message = {.seed = 77, .exchange = exchange, .sender = 3, .stage = 1},
                   .source = {.vector = read ? NULL : s->v, .read = read_difference, .context = s}};
    e->result = sl_encoder_begin(s->encoder, &e->message, &e->source);
}

static sl_payload next_part(side *s, encoding *e, const sl_codec *codec, uint32_t part) {
    sl_payload out = {0};
    if (e->result == 0)
        e->result = sl_encoder_part(s->encoder, part, &e->source,
                                    (char *)s->host + part * stride_of(codec), &out);
    return out;
}

/* Both may refuse what cannot be sent, at different parts: a device has seen the whole vector
 * before its first. */
static bool compare_message(side *cpu, side *device, const sl_codec *codec, bool read,
                            uint64_t exchange) {
    encoding on_cpu, on_device;
    bool good = true;
    begin_message(cpu, &on_cpu, read, exchange);
    begin_message(device, &on_device, read, exchange);
    for (uint32_t part = 0; part < sl_codec_parts(codec) && good; part++) {
        sl_payload expected = next_part(cpu, &on_cpu, codec, part),
                   got = next_part(device, &on_device, codec, part);
        if (on_cpu.result != 0 || on_device.result != 0)
            continue;
        good = same_bytes(device->t.label, part, got, expected) &&
               sl_decoder_check(device->decoder, &on_device.message, part, got) == 0;
        add_part(cpu, &on_cpu.message, part, expected, 0.37f);
        add_part(device, &on_device.message, part, got, 0.37f);
        sl_decoder_add(cpu->decoder, &on_cpu.message, part, sl_encoder_local(cpu->encoder), -1.0f,
                       cpu->acc);
        sl_decoder_add(device->decoder, &on_device.message, part, sl_encoder_local(device->encoder),
                       -1.0f, device->acc);
    }
    if (on_cpu.result != on_device.result)
        printf("# %s: encoding ends with %d, not %d\n", device->t.label, on_device.result,
               on_cpu.result);
    return good && on_cpu.result == on_device.result;
}

static bool check_message(const target *t, const sl_codec *codec, const float *v,
                          const float *other, size_t n, bool sendable) {
    const target host = {sl_vec_cpu(), "cpu"};
    side cpu = open_side(&host, codec, v, other, n), device = open_side(t, codec, v, other, n);
    bool good = compare_message(&cpu, &device, codec, false, 5) &&
                compare_message(&cpu, &device, codec, true, 6);
    if (sendable)
        good = good && agrees(t, device.acc, cpu.acc, n, "decoding") &&
               agrees(t, device.v, v, n, "the encoded vector");
    close_side(&cpu);
    close_side(&device);
    return good;
}

bool has_kernel(const target *t, const sl_codec *codec) {
    sl_encoder *encoder = NULL;
    const bool has = sl_encoder_open(&encoder, codec, t->vec, NULL) != SL_EDEVICE;
    sl_encoder_close(&encoder);
    return has;
}

static bool check_compressor(const target *t, int c, input_kind kind, size_t n, size_t part_bytes) {
    const size_t ends[] = {n / 3, n - n / 5, n};
    sl_codec *codec;
    sl_error error;
    bool split = n > 10 && n % 2 == 1 && c % 2 == 1;
    int result = split ? sl_codec_open_split(&codec, &compressors[c].config, ends, NULL, 3,
                                             part_bytes, &error)
                       : sl_codec_open(&codec, &compressors[c].config, n, part_bytes, &error);
    if (result != 0)
        return true; /* not possible at this length */
    if (!has_kernel(t, codec)) {
        sl_codec_close(&codec);
        return true;
    }
    float *v = make_input(kind, 1, n), *other = make_input(RANDOM, 2, n);
    bool good = check_message(t, codec, v, other, n, true);
    if (n > 2 && kind == RANDOM) { /* what cannot be sent is refused alike */
        v[n / 2] = n % 2 ? NAN : -INFINITY;
        good = check_message(t, codec, v, other, n, false) && good;
    }
    if (!good)
        printf("# %s: %s, %zu elements (%s), parts of %zu bytes%s\n", t->label, compressors[c].name,
               n, input_names[kind], part_bytes, split ? ", three tensors" : "");
    sl_codec_close(&codec);
    free(v);
    free(other);
    return good;
}

/* By which the benchmark counts bytes. */
static void check_reads(const target *t) {
    static const struct {
        sl_compressor_config config;
        unsigned reads;
    } known[] = {{{.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 512}, 1},
                 {{.kind = SL_COMPRESSOR_QSGD, .levels = 7, .bucket = 100}, 2},
                 {{.kind = SL_COMPRESSOR_TOP_K, .fraction = 0.01}, 2},
                 {{.kind = SL_COMPRESSOR_RANDOM_K, .fraction = 0.01}, 0}};
    bool good = true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        sl_codec *codec;
        sl_coding coding;
        sl_error error;
        need(sl_codec_open(&codec, &known[i].config, 100000, PART_BYTES, &error) == 0 ? codec
                                                                                      : NULL);
        sl_codec_coding(codec, &coding);
        good = t->vec->coder->reads(&coding) == known[i].reads && good;
        sl_codec_close(&codec);
    }
    tell(t, "how often messages read the vector", good);
}

void check_compressors(const target *t) {
    if (!t->vec->on_host)
        check_reads(t);
    for (int c = 0; c < count_compressors(); c++) {
        bool good = true;
        if (!is_wanted(compressors[c].name))
            continue;
        for (int s = 1; s < sizes_checked; s++)
            for (input_kind kind = 0; kind < (sizes[s] > 100000 ? EXTREME : INPUT_KINDS); kind++)
                good = check_compressor(t, c, kind, sizes[s],
                                        sizes[s] > 100000 ? BENCH_PART_BYTES : PART_BYTES) &&
                       good;
        tell(t, compressors[c].name, good);
    }
}
