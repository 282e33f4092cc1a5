/* test_kernels.c - every instruction set that this processor has, and plain C, give the same bytes,
 * which are those of every other processor: random numbers, checksums, vector operations, matrices,
 * samples, and each compressor's messages and what they decode to. */
#include "dense_kinds.h"

#include <inttypes.h>

#include "base/kernels.h"
#include "learner/data/samples.h"
#include "starling/kernels.h"
#include "starling/vec.h"
#include "topology/weights/matrix.h"
#include "wire/checksum.h"

/* Lengths that fill registers, leave rests, and end in the middle of a tile. */
static const size_t lengths[] = {1, 7, 16, 31, 1000, 1024, 4099, 70001};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

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
    release(v);
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
    for (int i = 0; i < MAX; i++)
        release((float *)in[i]);
    release(out);
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
    release(x);
    release(g);
    release(m);
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
    release(numbers);
}

static void read_pixels(transcript *t) {
    sl_samples samples;
    sl_error error;
    float x[99];
    ck_assert_int_eq(sl_samples_allocate(&samples, SL_SAMPLES_PIXELS, 4, 99, "test", &error), 0);
    for (int i = 0; i < 4 * 99; i++)
        samples.pixels[i] = (uint8_t)(i * 7);
    for (uint32_t i = 0; i < 4; i++) {
        sl_samples_get(&samples, i, x);
        note(t, x, sizeof x);
    }
    sl_samples_close(&samples);
}

/* Checksums of their transcripts. */
static const uint64_t kind_sums[KINDS] = {
    0x58b36f1bb69be424, 0x5121d419daf0eedb, 0x24f4866447eafb4b, 0x072addbc6540e059,
    0x2485ed614e0bbf42, 0xa4218a50916ed219, 0xc418283583edeb7d, 0x70cbf1909ab113b3,
    0x7378ef4ca572248b, 0x858d7d6cd984af22, 0x456b198c09538c93, 0x8fd20fc89d6c821c,
    0x60ba29a38e67ecd6, 0x9bfe6d3f524d85d2, 0x456b198c09538c93, 0x737035101eceaf2d,
    0x212497d796685db6, 0xd9b955c8e1806247, 0x4057006bf4affef0, 0xcacf9c5a94c1d390,
    0x45fbb168f0983580, 0x28a0c7c31cf97eb3, 0x330944ae184dd21f, 0xb4bb070afcf3cff0,
    0x59a2deae0a79a73f, 0x57582cd8fd2236c5};
static const struct {
    sl_compressor_config config;
    uint64_t sum;
} others[] = {
    {KIND(IDENTITY), 0xc9506f6664bdfcfc},
    {KIND(TOP_K, .fraction = 0.01), 0x04146bd6b3342f73},
    {KIND(TOP_K, .fraction = 0.4), 0x9f6ac0f13963d4a2},
    {KIND(RANDOM_K, .fraction = 0.01, .scaled = true), 0x022b5ff739b968fb},
    {KIND(RANDOM_K, .fraction = 0.6), 0xc4c697c9c7250a42},
    {KIND(RANDOM_DROPPING, .probability = 0.03), 0x4f029d79fa7cb6c1},
    {KIND(RANDOM_DROPPING, .probability = 0.7, .scaled = true), 0xb83c449fbd010f82},
    {KIND(STC, .fraction = 0.01), 0x3c900387d6ea3c9a},
    {KIND(SBC, .fraction = 0.01), 0xfb2b361ff1d6d668},
    {KIND(POS_NEG, .fraction = 0.01), 0xfe45b28c93058952},
    {KIND(STROM, .threshold = 2.5), 0xb09d88c66a7f2e3c},
    {KIND(DRIVE), 0x72e054fd97a90b94},
    {KIND(EDEN, .bits = 1, .contractive = true), 0xdb79dce6509b829c},
    {KIND(EDEN, .bits = 2), 0x1cf10b3d6b43dbec},
    {KIND(EDEN, .bits = 3, .contractive = true), 0x3469aea68b9072e4},
    {KIND(EDEN, .bits = 4), 0x511ffe4bf15e5c83},
};
enum { OTHERS = LENGTH(others) };

static const sl_message sent = {
    .seed = 0x5EED0123456789ABu, .exchange = 5, .sender = 3, .stage = 2};
static const sl_compressor_config *compressor; /* that send_and_receive takes */

static void send_and_receive_of(transcript *t, size_t n, size_t part_bytes) {
    wire w = open_wire(compressor, n, part_bytes);
    float *v = motley(n, 9), *acc = motley(n, 10);
    ck_assert_int_eq(send_vector(&w, &sent, v), 0);
    for (uint32_t p = 0; p < sl_codec_parts(w.codec); p++)
        note(t, w.parts[p].data, w.parts[p].bytes);
    receive(&w, &sent, 0.37f, acc);
    note(t, acc, n * sizeof *acc);
    close_wire(&w);
    release(v);
    release(acc);
}

static void send_and_receive(transcript *t) {
    for (size_t n = 0; n < LENGTHS; n++)
        send_and_receive_of(t, lengths[n], PART_SMALL);
}

/* A long one, too, in parts that take a rotated piece. */
static void send_and_receive_more(transcript *t) {
    for (size_t n = 0; n < LENGTHS; n++)
        send_and_receive_of(t, lengths[n], 3 * PART_SMALL);
    send_and_receive_of(t, 200003, 3 * PART_SMALL);
}

START_TEST(compressors_are_plain_c) {
    const bool is_other = _i >= KINDS;
    compressor = is_other ? &others[_i - KINDS].config : &kinds[_i];
    on_each_level(is_other ? send_and_receive_more : send_and_receive, name_of(compressor),
                  is_other ? others[_i - KINDS].sum : kind_sums[_i]);
}
END_TEST

START_TEST(kernels_are_plain_c) {
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
END_TEST

START_TEST(a_level_can_be_asked_for) {
    sl_error error;
    ck_assert_int_eq(setenv("STARLING_KERNELS", "plain", 1), 0);
    ck_assert_int_eq(sl_kernels_check(&error), 0);
    ck_assert_int_eq(setenv("STARLING_KERNELS", "avx2", 1), 0);
    ck_assert_int_eq(sl_kernels_check(&error), SL_EINVAL);
    ck_assert_str_eq(error.text, "STARLING_KERNELS=avx2 is not allowed; it must be \"plain\", "
                                 "\"x86-64-v3\" or \"x86-64-v4\"");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("kernels");
    add_loop(suite, kernels_are_plain_c, 0, 5);
    add_loop(suite, compressors_are_plain_c, 0, KINDS + OTHERS);
    ADD_TESTS(suite, "choice", a_level_can_be_asked_for);
    if (getenv("STARLING_KERNELS") == NULL && sl_kernels_level < SL_KERNELS_V4)
        printf("skip x86-64-v4: %s is what this processor has\n", sl_kernels_name());
    return run_suite(suite);
}
