/* test_kernels.c - every instruction set that this processor has, and plain C, give the same bytes,
 * which are those of every other processor: random numbers, checksums, vector operations, matrices,
 * samples, and each compressor's messages and what they decode to. */
#include <inttypes.h>

#include "base/kernels.h"
#include "learner/data/samples.h"
#include "messages.h"
#include "starling/kernels.h"
#include "starling/vec.h"
#include "topology/weights/matrix.h"
#include "wire/checksum.h"

/* Lengths that fill registers, leave rests, and end in the middle of a tile. */
static const size_t lengths[] = {1, 7, 16, 31, 1000, 1024, 4099, 70001};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static sl_error error;

/* Numbers of all sizes, with zeros of both signs, subnormals and repeated ones. */
static float *motley(size_t n, uint32_t rank) {
    float *v = normal(n, rank, 0, SL_PURPOSE_DATA);
    static const float odd[] = {0,         -0.0f, 1,      -1,    0x1p-149f, -0x1p-127f,
                                0x1p-126f, 3e-5f, -6e-8f, 60000, -0.5f,     0x1.fffffep-1f};
    for (size_t i = 0; i < n; i += 1 + i % 5)
        v[i] = odd[(i + rank) % (sizeof odd / sizeof *odd)];
    return v;
}

/* What was computed on one level. */
typedef struct transcript {
    uint8_t *bytes;
    size_t used;
} transcript;

static void note(transcript *t, const void *bytes, size_t count) {
    t->bytes = realloc(t->bytes, t->used + count + 1);
    ck_assert_ptr_nonnull(t->bytes);
    memcpy(t->bytes + t->used, bytes, count);
    t->used += count;
}

typedef void work_function(transcript *t);

/* `sum`: the bytes' checksum on every processor. */
static void on_each_level(work_function *work, const char *name, uint64_t sum) {
    const sl_kernel_level best = sl_kernels_level;
    transcript plain = {0};
    for (int level = SL_KERNELS_PLAIN; level <= (int)best; level++) {
        transcript t = {0};
        sl_kernels_level = (sl_kernel_level)level;
        work(level == SL_KERNELS_PLAIN ? &plain : &t);
        if (level == SL_KERNELS_PLAIN) {
            uint64_t found = sl_checksum(plain.bytes, plain.used);
            ENSURE(found == sum, "%s: checksum %#" PRIx64 ", not %#" PRIx64, name, found, sum);
            continue;
        }
        ENSURE(t.used == plain.used && t.used > 0, "%s: other lengths", name);
        for (size_t i = 0; i < t.used; i++)
            ENSURE(t.bytes[i] == plain.bytes[i], "%s, %s: byte %zu of %zu is not plain C's", name,
                   sl_kernels_name(), i, t.used);
        free(t.bytes);
    }
    sl_kernels_level = best;
    free(plain.bytes);
}

static void draw(transcript *t) {
    const sl_rng_key key = {.seed = 0x123456789ABCDEFu, .round = 7, .rank = 3, .purpose = 2};
    uint32_t numbers[4 * 100];
    for (size_t count = 1; count <= 100; count += 11) {
        sl_rng_blocks(&key, 5, count, numbers);
        note(t, numbers, count * 4 * sizeof *numbers);
        sl_rng_quick_blocks(&key, UINT32_MAX - 50, count, numbers);
        note(t, numbers, count * 4 * sizeof *numbers);
    }
}

static void sum_bytes(transcript *t) {
    float *v = normal(70001, 1, 0, SL_PURPOSE_DATA);
    for (size_t n = 0; n < LENGTHS; n++) {
        uint64_t sum = sl_checksum(v, lengths[n] * sizeof *v);
        note(t, &sum, sizeof sum);
    }
}

static void combine(transcript *t, size_t n) {
    const sl_vec_ops *vec = sl_vec_cpu();
    enum { MAX = 6 };
    const float weights[MAX] = {0.3f, 0.21f, 0.19f, 0.11f, 0.1f, 0.09f};
    const float *in[MAX];
    float *out = floats(n);
    for (uint32_t i = 0; i < MAX; i++)
        in[i] = motley(n, i);
    for (size_t k = 1; k <= MAX; k++) {
        vec->combine(out, in, weights, k, n);
        note(t, out, n * sizeof *out);
    }
    double norms[] = {vec->norm2_squared(in[0], n), vec->distance_squared(in[1], in[2], n)};
    note(t, norms, sizeof norms);
}

static void take_steps(transcript *t, size_t n) {
    float *x = normal(n, 1, 0, SL_PURPOSE_DATA), *g = normal(n, 2, 0, SL_PURPOSE_DATA),
          *m = normal(n, 3, 0, SL_PURPOSE_DATA);
    for (int form = 0; form < 3; form++) {
        const sl_sgd sgd = {
            .learning_rate = 0.1f, .weight_decay = 1e-3f, .momentum = 0.9f, .nesterov = form == 2};
        sl_vec_cpu()->sgd_step(x, x, g, form > 0 ? m : NULL, &sgd, n);
        note(t, x, n * sizeof *x);
        note(t, m, n * sizeof *m);
    }
}

static void operate(transcript *t) {
    for (size_t n = 0; n < LENGTHS; n++) {
        combine(t, lengths[n]);
        take_steps(t, lengths[n]);
    }
}

static void solve(transcript *t) {
    enum { N = 37 };
    static double a[N * N], inverse[N * N], work[N * N], x[N];
    float *numbers = normal(N * N, 4, 0, SL_PURPOSE_DATA);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++)
            a[i * N + j] = (double)numbers[i * N + j] + numbers[j * N + i] + (i == j ? 60 : 0);
    for (size_t i = 0; i < N; i++)
        x[i] = numbers[i];
    sl_matrix_multiply(work, a, a, N);
    note(t, work, sizeof work);
    ck_assert(sl_matrix_cholesky(a, N));
    note(t, a, sizeof a);
    sl_matrix_invert(inverse, a, work, N);
    note(t, inverse, sizeof inverse);
    sl_matrix_solve(a, x, N);
    note(t, x, sizeof x);
}

static void read_pixels(transcript *t) {
    sl_samples samples;
    float x[99];
    EXPECT_WELL(sl_samples_allocate(&samples, SL_SAMPLES_PIXELS, 4, 99, "test", &error));
    for (int i = 0; i < 4 * 99; i++)
        samples.pixels[i] = (uint8_t)(i * 7);
    for (uint32_t i = 0; i < 4; i++) {
        sl_samples_get(&samples, i, x);
        note(t, x, sizeof x);
    }
    sl_samples_close(&samples);
}

/* The first ones have a code for each element; of the others parts are longer. */
enum { DENSE = 26 };
static const struct {
    sl_compressor_config config;
    uint64_t sum; /* of its transcript */
} compressors[] = {
    {KIND(FLOAT16), 0x58b36f1bb69be424},
    {KIND(BFLOAT16), 0x5121d419daf0eedb},
    {KIND(QSGD, .levels = 1), 0x24f4866447eafb4b},
    {KIND(QSGD, .levels = 7, .bucket = 512), 0x072addbc6540e059},
    {KIND(QSGD, .levels = 4, .bucket = 1000), 0x2485ed614e0bbf42},
    {KIND(QSGD, .levels = 7, .bucket = 100, .norm = SL_NORM_MAX), 0xa4218a50916ed219},
    {KIND(QSGD, .levels = 127, .bucket = 3072), 0xc418283583edeb7d},
    {KIND(QSGD, .levels = 130, .bucket = 4), 0x70cbf1909ab113b3},
    {KIND(QSGD, .levels = 3000, .bucket = 4096, .contractive = true), 0x7378ef4ca572248b},
    {KIND(QSGD, .levels = 32767, .bucket = 70000, .norm = SL_NORM_MAX), 0x858d7d6cd984af22},
    {KIND(SCALED_SIGN), 0x456b198c09538c93},
    {KIND(SCALED_SIGN, .bucket = 512), 0x8fd20fc89d6c821c},
    {KIND(SCALED_SIGN, .bucket = 1000), 0x60ba29a38e67ecd6},
    {KIND(SCALED_SIGN, .bucket = 13), 0x9bfe6d3f524d85d2},
    {KIND(SCALED_SIGN, .bucket = 266240),
     0x456b198c09538c93}, /* each of 262144, which go at once, and some more */
    {KIND(ONE_BIT), 0x737035101eceaf2d},
    {KIND(ONE_BIT, .bucket = 2048), 0x212497d796685db6},
    {KIND(ONE_BIT, .bucket = 4), 0xd9b955c8e1806247},
    {KIND(TERNGRAD), 0x4057006bf4affef0},
    {KIND(TERNGRAD, .bucket = 64, .contractive = true), 0xcacf9c5a94c1d390},
    {KIND(TERNGRAD, .bucket = 777), 0x45fbb168f0983580},
    {KIND(TERNGRAD, .clip_sigma = 2.5), 0x28a0c7c31cf97eb3},
    {KIND(TERNGRAD, .bucket = 100, .clip_sigma = 1.5), 0x330944ae184dd21f},
    {KIND(NATURAL), 0xb4bb070afcf3cff0},
    {KIND(NATURAL, .contractive = true), 0x59a2deae0a79a73f},
    {KIND(THRESHOLD, .threshold = 0.75), 0x57582cd8fd2236c5},
    {KIND(IDENTITY), 0xc37c10e046e93803},
    {KIND(TOP_K, .fraction = 0.01), 0x41b3595dfeffb02f},
    {KIND(TOP_K, .fraction = 0.4), 0xa7d8833a26d55b5a},
    {KIND(RANDOM_K, .fraction = 0.01, .scaled = true), 0xd12ed72af6154554},
    {KIND(RANDOM_K, .fraction = 0.6), 0x71b7d67569024cdc},
    {KIND(RANDOM_DROPPING, .probability = 0.03), 0x7c9b05872a8cf694},
    {KIND(RANDOM_DROPPING, .probability = 0.7, .scaled = true), 0x3bcbbebb70655225},
    {KIND(STC, .fraction = 0.01), 0xbe4a1605ac7b60a8},
    {KIND(SBC, .fraction = 0.01), 0xb04167906048e050},
    {KIND(POS_NEG, .fraction = 0.01), 0x986f368c27c005af},
    {KIND(STROM, .threshold = 2.5), 0x091f7dfafc09a3db},
    {KIND(DRIVE), 0x0cf5a109188067b5},
    {KIND(EDEN, .bits = 1, .contractive = true), 0x5100135a574aaf87},
    {KIND(EDEN, .bits = 2), 0xbb3b5d68447830ef},
    {KIND(EDEN, .bits = 3, .contractive = true), 0x62221f37a7392aa5},
    {KIND(EDEN, .bits = 4), 0x9a4206543330d6e3},
    {KIND(FLOAT8), 0xe939fd4682ea4e75},
    {KIND(SHARED_MASK, .fraction = 0.3), 0x0e9ec3b022579b54},
    {KIND(SHARED_MASK, .fraction = 0.3, .order = SL_ORDER_CYCLIC), 0x474153c20389803f},
    {KIND(MAGNITUDE_DROPPING, .fraction = 0.1), 0x95573cf7b809eaf2},
    {KIND(NONZEROS), 0x9d3fd539cdbad5e8},
    {KIND(THREE_LC, .multiplier = 1.1), 0x00e7c9974f2455a8},
    {KIND(ADACOMP, .bin = 50), 0xa186f9491bba61ea},
    {KIND(ADACOMP, .bin = 1500), 0x05c6cf1c327172a9},
    {KIND(MODULAR, .bits = 1, .theta = 0.4), 0xafab32924835332a},
    {KIND(MODULAR, .bits = 7, .theta = 0.4), 0x8966b70b8c306c99},
    {KIND(MODULAR, .bits = 24, .theta = 0.4), 0x59e77707173a3d7c},
    {KIND(GRID, .bits = 1), 0x516ef4099fd4872f},
    {KIND(GRID, .bits = 9), 0x61f3620496c2c854},
    {KIND(ROTATED_QSGD, .levels = 3, .bucket = 512), 0xa2637b31ce426275},
    {KIND(ROTATED_QSGD, .levels = 7, .norm = SL_NORM_MAX), 0x5572a497b04664ad},
    {KIND(ROTATED_TERNGRAD, .bucket = 256), 0xd87d3bee8d87c2c5},
    {KIND(TOP_K, .fraction = 0.01, .coding = SL_ENTROPY_GOLOMB), 0x4f09a16c4dc7d408},
    {KIND(STC, .fraction = 0.01, .coding = SL_ENTROPY_GOLOMB), 0x4bbc85330f39a113},
    {KIND(SBC, .fraction = 0.01, .coding = SL_ENTROPY_ELIAS), 0xc51483a8fb46d9bc},
    {KIND(STROM, .threshold = 2.5, .coding = SL_ENTROPY_GOLOMB), 0x3847715d38ddfd73},
    {KIND(QSGD, .levels = 5, .bucket = 512, .coding = SL_ENTROPY_ELIAS), 0x2b84c4c76ff40b0d},
    {KIND(QSGD, .levels = 40, .bucket = 512, .coding = SL_ENTROPY_ELIAS), 0x3d958456da9e95f6},
    {KIND(QSGD, .levels = 1, .bucket = 512, .coding = SL_ENTROPY_HUFFMAN), 0x00bf3fef6fe2bcd6},
    {KIND(QSGD, .levels = 127, .bucket = 512, .coding = SL_ENTROPY_HUFFMAN), 0xf318ff45c76eeb30},
    {KIND(TERNGRAD, .coding = SL_ENTROPY_HUFFMAN), 0x5052012604ad1608},
    {KIND(NATURAL, .coding = SL_ENTROPY_HUFFMAN), 0xeb614fdd44a87afd},
};

static const sl_message sent = {
    .seed = 0x5EED0123456789ABu, .exchange = 5, .sender = 3, .stage = 2};
static const sl_compressor_config *compressor; /* that send_and_receive takes */

static void send_and_receive_of(transcript *t, float *v, size_t n, size_t part_bytes) {
    wire w = open_wire(compressor, n, part_bytes);
    float *acc = motley(n, 10);
    ck_assert_int_eq(send_vector(&w, &sent, v), 0);
    for (uint32_t p = 0; p < sl_codec_parts(w.codec); p++)
        note(t, w.parts[p].data, w.parts[p].bytes);
    receive(&w, &sent, 0.37f, acc);
    note(t, acc, n * sizeof *acc);
}

static void send_and_receive(transcript *t) {
    for (size_t n = 0; n < LENGTHS; n++)
        send_and_receive_of(t, motley(lengths[n], 9), lengths[n], PART_SMALL);
}

/* In parts that take a rotated piece; and vectors without numbers that decide all scales. */
static void send_and_receive_more(transcript *t) {
    for (size_t n = 0; n < LENGTHS; n++)
        send_and_receive_of(t, motley(lengths[n], 9), lengths[n], 3 * PART_SMALL);
    send_and_receive_of(t, gaussian(4099, 9), 4099, 3 * PART_SMALL);
    send_and_receive_of(t, gaussian(150001, 9), 150001, 3 * PART_SMALL);
}

START_LOOP_TEST(compressors_are_plain_c, sizeof compressors / sizeof *compressors) {
    compressor = &compressors[_i].config;
    on_each_level(_i < DENSE ? send_and_receive : send_and_receive_more, name_of(compressor),
                  compressors[_i].sum);
}

START_LOOP_TEST(kernels_are_plain_c, 5) {
    static const struct {
        work_function *work;
        const char *name;
        uint64_t sum;
    } all[] = {{draw, "random numbers", 0x020437e8e4e77657},
               {sum_bytes, "checksums", 0xf431decce8c1bd1b},
               {operate, "vectors", 0x43a6dd7d95d22087},
               {solve, "matrices", 0x4b98d7a172812ce4},
               {read_pixels, "samples", 0xa10ccae8cb7dcd92}};
    on_each_level(all[_i].work, all[_i].name, all[_i].sum);
}

START_TEST(a_level_can_be_asked_for) {
    ck_assert_int_eq(setenv("STARLING_KERNELS", "plain", 1), 0);
    EXPECT_WELL(sl_kernels_check(&error));
    ck_assert_int_eq(setenv("STARLING_KERNELS", "avx2", 1), 0);
    ck_assert_int_eq(sl_kernels_check(&error), SL_EINVAL);
    ck_assert_str_eq(error.text, "STARLING_KERNELS=avx2 is not allowed; it must be \"plain\", "
                                 "\"x86-64-v3\" or \"x86-64-v4\"");
}

int main(void) {
    if (getenv("STARLING_KERNELS") == NULL && sl_kernels_level < SL_KERNELS_V4)
        printf("skip x86-64-v4: %s is what this processor has\n", sl_kernels_name());
    return run_tests("kernels");
}
