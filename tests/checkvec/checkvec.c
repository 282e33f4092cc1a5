/* checkvec.c - every vector operation and every compressor, on every device found, against plain C
 * or the CPU, to the bit; every layer, within a tolerance (layers.c); and how fast they are.
 *
 *   checkvec                  sizes 0, 1, odd, 2^20 + 3 (with STARLING_QUICK in the environment up
 *                             to 4099); random, extreme, equal and zero elements; a line a check:
 *                             "ok", "not ok" with what differs
 *   checkvec --bench [D]      GB/s of each operation on vectors of D elements (default 25 500 000)
 *                             beside those of a copy; milliseconds of
 *                             each model's gradient. Bytes are those that must move: vectors and
 *                               payload, the vector twice where a scale of all of it
 *                             goes before the codes. On a device, which is measured alone where
 *                               there is one, payloads stay; "add" is a launch or
 *                             more for each part, as agents do it
 *
 * Devices are the CPU and those of the plug-in (starling/device.h). No vector operation is allowed
 * a tolerance: all backends must agree in every bit.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/usual_compressor.h"
#include "base/clock.h"
#include "layers.h"
#include "starling/starling.h"

enum {
    INPUTS = 11,
    DEVICES_MAX = 16,
    PART_BYTES = 8192,
    BENCH_PART_BYTES = 114688,
    DEVICE_PART_BYTES = 16 << 20
};
static const size_t sizes[] = {0,  1,    2,    3,    7,    8,    9,     63,           64,
                               65, 1000, 1023, 1024, 1025, 4099, 66001, (1 << 20) + 3};
enum { SIZES = sizeof sizes / sizeof *sizes };

typedef enum input_kind { RANDOM, EXTREME, EQUAL, ZERO, INPUT_KINDS } input_kind;
static const char *const input_names[] = {"random", "extreme", "equal", "zero"};

static unsigned passed, failed;
static int sizes_checked = SIZES;

static void *need(void *memory) {
    if (memory == NULL) {
        puts("not ok out of memory");
        exit(1);
    }
    return memory;
}

static float *host_vector(size_t count) {
    return need(calloc(count + 1, sizeof(float)));
}

enum { POOL = (1 << 20) + 1024 };

/* EQUAL: few magnitudes, for ties. EXTREME stays so far from overflow that sums of squares fit a
 * float. */
static void fill_pool(input_kind kind, float *v) {
    static const float extremes[] = {0.0f,     -0.0f, FLT_MIN / 8, -FLT_MIN / 2, FLT_TRUE_MIN,
                                     -FLT_MIN, 1e15f, -3e15f,      1.0f,         0.5f};
    sl_rng rng = sl_rng_open(11, 0, kind, SL_PURPOSE_INIT);
    for (size_t i = 0; i < POOL; i++) {
        uint32_t pick = sl_rng_below(&rng, 10);
        if (kind == RANDOM || (kind == EXTREME && pick < 5))
            v[i] = (float)sl_rng_normal(&rng);
        else if (kind == EXTREME)
            v[i] = extremes[sl_rng_below(&rng, 10)];
        else if (kind == EQUAL)
            v[i] = pick % 2 ? 0.25f : pick == 0 ? -1.5f : -0.25f;
    }
}

/* Streams are pieces of one long vector, which is drawn once, and repeated. */
static float *make_input(input_kind kind, uint32_t stream, size_t count) {
    static float *pools[INPUT_KINDS];
    if (pools[kind] == NULL)
        fill_pool(kind, pools[kind] = host_vector(POOL));
    float *v = host_vector(count);
    for (size_t i = 0; i < count; i++)
        v[i] = pools[kind][(i + 37 * stream) % POOL];
    return v;
}

/* ---- a device and its vectors ---- */

typedef struct target {
    const sl_vec_ops *vec;
    const char *label;
} target;

static float *upload(const target *t, const float *host, size_t count) {
    float *v = need(t->vec->allocate(count));
    t->vec->copy_in(v, host, count * sizeof *v);
    return v;
}

/* True if the device's vector has these bits; else says where it does not, behind "what". */
static bool agrees(const target *t, const float *v, const float *expected, size_t count,
                   const char *what) {
    float *got = host_vector(count);
    t->vec->copy_out(got, v, count * sizeof *got);
    size_t i = 0;
    while (i < count && memcmp(&got[i], &expected[i], sizeof *got) == 0)
        i++;
    if (i < count)
        printf("# %s: %s: element %zu of %zu is %.9g (%a), not %.9g (%a)\n", t->label, what, i,
               count, got[i], got[i], expected[i], expected[i]);
    free(got);
    return i == count;
}

static void tell(const target *t, const char *name, bool good) {
    printf("%s %s: %s\n", good ? "ok" : "not ok", t->label, name);
    fflush(stdout);
    *(good ? &passed : &failed) += 1;
}

/* ---- vector operations ---- */

static float times(float a, float b) {
    volatile float product = a * b; /* never fused with what follows */
    return product;
}

static bool check_combine_of(const target *t, input_kind kind, size_t n, size_t k, bool in_place) {
    static const float w[INPUTS] = {0.3f,  0.1f,   0.2f,   -0.05f, 0.15f, 0.07f,
                                    0.11f, 0.013f, 0.107f, -1.0f,  0.5f};
    float *in[INPUTS], *host[INPUTS], *expected = host_vector(n);
    for (uint32_t j = 0; j < k; j++) {
        host[j] = make_input(kind, j, n);
        in[j] = upload(t, host[j], n);
    }
    for (size_t i = 0; i < n; i++) {
        expected[i] = times(w[0], host[0][i]);
        for (size_t j = 1; j < k; j++)
            expected[i] += times(w[j], host[j][i]);
    }
    float *out = in_place ? in[0] : need(t->vec->allocate(n));
    t->vec->combine(out, (const float *const *)in, w, k, n);
    char what[96];
    snprintf(what, sizeof what, "combine of %zu%s, %s", k, in_place ? " in place" : "",
             input_names[kind]);
    bool good = agrees(t, out, expected, n, what);
    if (!in_place)
        t->vec->release(out);
    for (size_t j = 0; j < k; j++) {
        t->vec->release(in[j]);
        free(host[j]);
    }
    free(expected);
    return good;
}

static bool check_combine(const target *t, input_kind kind, size_t n) {
    bool good = true;
    for (size_t k = 1; k <= INPUTS; k += n > 100000 ? 5 : 1)
        good =
            check_combine_of(t, kind, n, k, false) && check_combine_of(t, kind, n, k, true) && good;
    return good;
}

/* Ranges need not begin on a boundary. */
static bool check_shifted(const target *t, input_kind kind, size_t n) {
    if (n < 8)
        return true;
    float *a = make_input(kind, 1, n), *x = upload(t, a, n);
    for (size_t i = 3; i < n; i++)
        a[i] = times(0.5f, a[i]);
    t->vec->combine(x + 3, (const float *const[]){x + 3}, (const float[]){0.5f}, 1, n - 3);
    bool good = agrees(t, x, a, n, "combine from element 3 on");
    t->vec->release(x);
    free(a);
    return good;
}

/* From element `from` on. */
static bool check_step_of(const target *t, input_kind kind, size_t n, size_t from, sl_sgd s) {
    float *x = make_input(kind, 1, n), *decay = make_input(kind, 2, n), *g = make_input(kind, 3, n),
          *m = make_input(kind, 4, n);
    float *dx = upload(t, x, n), *dd = upload(t, decay, n), *dg = upload(t, g, n),
          *dm = upload(t, m, n);
    t->vec->sgd_step(dx + from, dd + from, dg + from, s.momentum > 0 ? dm + from : NULL, &s,
                     n - from);
    for (size_t i = from; i < n; i++) {
        float d = g[i] + times(s.weight_decay, decay[i]);
        if (s.momentum > 0) {
            m[i] = times(s.momentum, m[i]) + d;
            d = s.nesterov ? d + times(s.momentum, m[i]) : m[i];
        }
        x[i] -= times(s.learning_rate, d);
    }
    bool good = agrees(t, dx, x, n, "sgd_step") && agrees(t, dm, m, n, "sgd_step's momentum");
    float *all[] = {dx, dd, dg, dm}, *host[] = {x, decay, g, m};
    for (int i = 0; i < 4; i++) {
        t->vec->release(all[i]);
        free(host[i]);
    }
    return good;
}

static bool check_step(const target *t, input_kind kind, size_t n) {
    static const sl_sgd settings[] = {
        {.learning_rate = 0.1f},
        {.learning_rate = 0.1f, .weight_decay = 1e-2f},
        {.learning_rate = 0.1f, .weight_decay = 1e-2f, .momentum = 0.9f},
        {.learning_rate = 0.1f, .weight_decay = 1e-2f, .momentum = 0.9f, .nesterov = true}};
    bool good = true;
    for (int i = 0; i < 4; i++)
        for (size_t from = 0; from < 2 && from <= n; from++)
            good = check_step_of(t, kind, n, from, settings[i]) && good;
    return good;
}

static bool check_fill(const target *t, input_kind kind, size_t n) {
    float *v = make_input(kind, 1, n), *x = upload(t, v, n);
    for (size_t i = n / 3; i < n; i++)
        v[i] = -0.1f;
    t->vec->fill(x + n / 3, -0.1f, n - n / 3);
    bool good = agrees(t, x, v, n, "fill");
    t->vec->release(x);
    free(v);
    return good;
}

/* In double, 16 lanes a tile of 4096, added by halves, the tiles in 256 folds: the order is part of
 * what is promised. */
static double tile_sum(const float *x, const float *y, size_t from, size_t to) {
    volatile double lanes[16] = {0};
    for (size_t i = from; i < to; i++) {
        volatile double difference = y != NULL ? (double)x[i] - y[i] : x[i],
                        square = difference * difference;
        lanes[i % 16] += square;
    }
    for (int half = 8; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

static double sum_of_squares(const float *x, const float *y, size_t n) {
    volatile double folds[256] = {0}, sum = 0;
    for (size_t from = 0; from < n; from += 4096)
        folds[from / 4096 % 256] += tile_sum(x, y, from, from + 4096 < n ? from + 4096 : n);
    for (int f = 0; f < 256; f++)
        sum += folds[f];
    return sum;
}

static bool check_sums(const target *t, input_kind kind, size_t n) {
    float *x = make_input(kind, 1, n), *y = make_input(kind, 2, n), *dx = upload(t, x, n),
          *dy = upload(t, y, n);
    double norm = t->vec->norm2_squared(dx, n), distance = t->vec->distance_squared(dx, dy, n);
    double norm_expected = sum_of_squares(x, NULL, n), distance_expected = sum_of_squares(x, y, n);
    bool good = norm == norm_expected && distance == distance_expected;
    if (!good)
        printf("# %s: %zu %s elements: norm %a, not %a; distance %a, not %a\n", t->label, n,
               input_names[kind], norm, norm_expected, distance, distance_expected);
    t->vec->release(dx);
    t->vec->release(dy);
    free(x);
    free(y);
    return good;
}

static bool check_allocation(const target *t, input_kind kind, size_t n) {
    (void)kind;
    float *v = need(t->vec->allocate(n)), *zeros = host_vector(n);
    bool good = (uintptr_t)v % SL_VEC_ALIGNMENT == 0 && agrees(t, v, zeros, n, "allocate");
    t->vec->release(v);
    free(zeros);
    return good;
}

static void check_operations(const target *t) {
    static const struct {
        const char *name;
        bool (*check)(const target *t, input_kind kind, size_t n);
    } operations[] = {
        {"allocate", check_allocation}, {"fill", check_fill},
        {"combine", check_combine},     {"combine shifted", check_shifted},
        {"sgd_step", check_step},       {"norm2_squared, distance_squared", check_sums}};
    for (size_t o = 0; o < sizeof operations / sizeof *operations; o++) {
        bool good = true;
        for (int s = 0; s < sizes_checked; s++)
            for (input_kind kind = 0; kind < (sizes[s] > 100000 ? EQUAL : INPUT_KINDS); kind++)
                good = operations[o].check(t, kind, sizes[s]) && good;
        tell(t, operations[o].name, good);
    }
}

/* ---- compressors: the CPU's bytes, and what decoding them adds ---- */

/* Parameters for which a compressor is looked at; kinds that are not named get usual ones. */
enum { COMPRESSORS_MAX = 64 };
static struct {
    const char *name;
    sl_compressor_config config;
} compressors[COMPRESSORS_MAX] = {
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
    {"natural", {.kind = SL_COMPRESSOR_NATURAL}},
    {"random-dropping 1 %", {.kind = SL_COMPRESSOR_RANDOM_DROPPING, .probability = 0.01}},
    {"random-dropping 60 % scaled",
     {.kind = SL_COMPRESSOR_RANDOM_DROPPING, .probability = 0.6, .scaled = true}},
    {"threshold", {.kind = SL_COMPRESSOR_THRESHOLD, .threshold = 0.3}},
};

static int count_compressors(void) {
    int count = 0;
    while (count < COMPRESSORS_MAX && compressors[count].name != NULL)
        count++;
    return count;
}

static void name_the_rest(void) {
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

static size_t stride_of(const sl_codec *codec) {
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

static bool check_compressor(const target *t, int c, input_kind kind, size_t n, size_t part_bytes) {
    const size_t ends[] = {n / 3, n - n / 5, n};
    sl_codec *codec;
    sl_error error;
    bool split = n > 10 && n % 2 == 1 && c % 2 == 1;
    int result =
        split ? sl_codec_open_split(&codec, &compressors[c].config, ends, 3, part_bytes, &error)
              : sl_codec_open(&codec, &compressors[c].config, n, part_bytes, &error);
    if (result != 0)
        return true; /* not possible at this length */
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

static void check_compressors(const target *t) {
    for (int c = 0; c < count_compressors(); c++) {
        bool good = true;
        for (int s = 1; s < sizes_checked; s++)
            for (input_kind kind = 0; kind < (sizes[s] > 100000 ? EXTREME : INPUT_KINDS); kind++)
                good = check_compressor(t, c, kind, sizes[s],
                                        sizes[s] > 100000 ? BENCH_PART_BYTES : PART_BYTES) &&
                       good;
        tell(t, compressors[c].name, good);
    }
}

static void tell_layer(void *context, const char *name, bool good) {
    tell(context, name, good);
}

static void check_target(const target *t) {
    check_operations(t);
    if (!t->vec->on_host) {
        check_compressors(t);
        check_layers(t->vec, t->label, tell_layer, (void *)t);
    }
    sl_error error = {0};
    int result = t->vec->fence(&error);
    if (result != 0)
        printf("# %s\n", error.text);
    tell(t, "no operation failed", result == 0);
}

/* ---- speed ---- */

enum { REPEATS = 10, BENCH_SECONDS = 1 };

typedef struct bench {
    target t;
    size_t n;
    float *v[4];
    side side;
    const sl_codec *codec;
    sl_payload *parts; /* of a message, where the vectors are */
} bench;

static void bench_copy(bench *b) {
    b->t.vec->combine(b->v[0], (const float *const[]){b->v[1]}, (const float[]){1}, 1, b->n);
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
    sl_encoder_begin(b->side.encoder, &bench_message, &source);
    for (uint32_t part = 0; b->t.vec->on_host && part < sl_codec_parts(b->codec); part++)
        sl_encoder_part(b->side.encoder, part, &source,
                        (char *)b->side.host + part * stride_of(b->codec), &b->parts[part]);
}

static void find_parts(bench *b) {
    const sl_source source = {.vector = b->v[1]};
    for (uint32_t part = 0; !b->t.vec->on_host && part < sl_codec_parts(b->codec); part++)
        sl_encoder_part(b->side.encoder, part, &source, NULL, &b->parts[part]);
}

static void bench_decode(bench *b) {
    for (uint32_t part = 0; part < sl_codec_parts(b->codec); part++)
        sl_decoder_add(b->side.decoder, &bench_message, part, b->parts[part], 1e-6f, b->v[0]);
}

/* Fastest of some, or of what BENCH_SECONDS leave time for. A device is waited for once for all. */
static double seconds_of(bench *b, void (*run)(bench *)) {
    double best = INFINITY, first = sl_clock_seconds();
    for (int r = 0; r < 5 && (r == 0 || sl_clock_seconds() - first < BENCH_SECONDS); r++) {
        b->t.vec->fence(NULL);
        double began = sl_clock_seconds();
        for (int i = 0; i < REPEATS; i++)
            run(b);
        b->t.vec->fence(NULL);
        double each = (sl_clock_seconds() - began) / REPEATS;
        best = each < best ? each : best;
    }
    return best;
}

static void print_speed(const bench *b, const char *name, double bytes, double seconds,
                        double copy_rate) {
    printf("%-10s %-32s %10zu %10.1f us %9.1f GB/s %6.1f %% of a copy\n", b->t.label, name, b->n,
           1e6 * seconds, 1e-9 * bytes / seconds, 100 * bytes / seconds / copy_rate);
    fflush(stdout);
}

/* Of the vector's elements, those that a message changes. */
static double share_of(const sl_compressor_config *c) {
    return c->kind == SL_COMPRESSOR_TOP_K || c->kind == SL_COMPRESSOR_RANDOM_K ? c->fraction
           : c->kind == SL_COMPRESSOR_RANDOM_DROPPING                          ? c->probability
                                                                               : 1;
}

/* How often an encoder reads what it looks at: a scale of the whole vector goes before the codes.
 */
static int reads_of(const sl_compressor_config *c) {
    const bool is_scaled = c->kind == SL_COMPRESSOR_QSGD || c->kind == SL_COMPRESSOR_SCALED_SIGN ||
                           c->kind == SL_COMPRESSOR_ONE_BIT || c->kind == SL_COMPRESSOR_TERNGRAD;
    return is_scaled && c->bucket == 0 ? 2 : 1;
}

static void open_bench(bench *b, const sl_codec *codec) {
    sl_error error;
    b->codec = codec;
    b->parts = need(calloc(sl_codec_parts(codec), sizeof *b->parts));
    b->side =
        (side){.t = b->t,
               .host = b->t.vec->on_host
                           ? need(b->t.vec->allocate_host(stride_of(codec) * sl_codec_parts(codec)))
                           : NULL};
    if (sl_encoder_open(&b->side.encoder, codec, b->t.vec, &error) != 0 ||
        sl_decoder_open(&b->side.decoder, codec, b->t.vec, &error) != 0)
        need(NULL);
}

static void close_bench(bench *b) {
    sl_encoder_close(&b->side.encoder);
    sl_decoder_close(&b->side.decoder);
    b->t.vec->release_host(b->side.host);
    free(b->parts);
}

static void bench_compressor(bench *b, int c, double copy_rate) {
    const sl_compressor_config *config = &compressors[c].config;
    const double payload = sl_compressor_bits(config, b->n) / 8, bytes = 4.0 * (double)b->n;
    sl_codec *codec;
    sl_error error;
    char name[64];
    if (sl_codec_open(&codec, config, b->n,
                      b->t.vec->on_host ? BENCH_PART_BYTES : DEVICE_PART_BYTES, &error) != 0)
        return;
    open_bench(b, codec);
    snprintf(name, sizeof name, "encode %s", compressors[c].name);
    print_speed(b, name, reads_of(config) * bytes + payload, seconds_of(b, bench_encode),
                copy_rate);
    find_parts(b);
    snprintf(name, sizeof name, "add %s", compressors[c].name);
    print_speed(b, name, 2 * bytes * share_of(config) + payload, seconds_of(b, bench_decode),
                copy_rate);
    close_bench(b);
    sl_codec_close(&codec);
}

static void bench_target(const target *t, size_t n) {
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
        bench_compressor(&b, c, rate);
    for (int i = 0; i < 4; i++)
        t->vec->release(b.v[i]);
    bench_models(t->vec, t->label);
}

/* ---- devices ---- */

/* with_cpu: on the CPU also where there is another. */
static void each_device(void (*act)(const target *t, size_t n), size_t n, bool with_cpu) {
    static sl_device_info devices[DEVICES_MAX];
    char reason[SL_DEVICE_TEXT_MAX], name[32];
    size_t count = sl_devices_list(devices, DEVICES_MAX, reason);
    if (count == 0 || with_cpu)
        act(&(target){sl_vec_cpu(), "cpu"}, n);
    if (count == 0)
        printf("# no GPU: %s\n", reason);
    for (size_t i = 0; i < count && i < 1; i++) { /* a process opens one */
        const sl_vec_ops *vec;
        sl_error error;
        snprintf(name, sizeof name, "cuda:%d", devices[i].index);
        if (!devices[i].usable) {
            printf("# %s: %s\n", name, devices[i].reason);
        } else if (sl_device_open(&vec, name, 0, &error) != 0) {
            printf("not ok %s: %s\n", name, error.text);
            failed++;
        } else {
            printf("# %s: %s\n", name, devices[i].name);
            act(&(target){vec, devices[i].emulated ? "emulated" : name}, n);
        }
    }
}

static void check_one(const target *t, size_t n) {
    (void)n;
    check_target(t);
}

int main(int argc, char **argv) {
    name_the_rest();
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        char *end = NULL;
        unsigned long long n = argc > 2 ? strtoull(argv[2], &end, 10) : 25500000;
        if (argc > 3 || n == 0 || n > UINT32_MAX || (end != NULL && *end != '\0')) {
            fputs("usage: checkvec [--bench [ELEMENTS]]\n", stderr);
            return 2;
        }
        each_device(bench_target, (size_t)n, false);
        return 0;
    }
    while (getenv("STARLING_QUICK") != NULL && sizes[sizes_checked - 1] > 4099)
        sizes_checked--;
    each_device(check_one, 0, true);
    printf("%u passed, %u failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
