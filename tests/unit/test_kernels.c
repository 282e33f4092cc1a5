/* test_kernels.c - every instruction set that this processor has, and plain C, give the same bytes,
 * which are those of every other processor: random numbers, checksums, vector operations, matrices,
 * samples, and each compressor's messages and what they decode to. */
#include <inttypes.h>

#include "base/kernels.h"
#include "compressor_cases.h"
#include "compressor_sizes.h"
#include "learner/data/samples.h"
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

/* The bytes' checksum, on every processor. */
static uint64_t on_each_level(work_function *work, const char *name) {
    const sl_kernel_level best = sl_kernels_level;
    transcript plain = {0};
    for (int level = SL_KERNELS_PLAIN; level <= (int)best; level++) {
        transcript t = {0};
        sl_kernels_level = (sl_kernel_level)level;
        work(level == SL_KERNELS_PLAIN ? &plain : &t);
        if (level == SL_KERNELS_PLAIN)
            continue;
        ENSURE(t.used == plain.used && t.used > 0, "%s: other lengths", name);
        for (size_t i = 0; i < t.used; i++)
            ENSURE(t.bytes[i] == plain.bytes[i], "%s, %s: byte %zu of %zu is not plain C's", name,
                   sl_kernels_name(), i, t.used);
        free(t.bytes);
    }
    sl_kernels_level = best;
    const uint64_t sum = sl_checksum(plain.bytes, plain.used);
    free(plain.bytes);
    return sum;
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

/* Of all transcripts of a kind's cases, on every processor. */
static const uint64_t sums[SL_COMPRESSOR_KINDS] = {
    0x765c28814c81ff2c, 0x146f9cdbe1fa89be, 0x7c0a7b6282ad2a36, 0x9b4ccf6a3aa17083,
    0xc23d355cb8cd8130, 0x49728395819cf38f, 0xe6e71ead11a6c311, 0xac48d3b83232a5fc,
    0x6a19bc5281a148e0, 0xe19c5cbed1b2c722, 0x3b8b455951538cf4, 0x64c028de641433b4,
    0x314f9fcf28ea0597, 0xc6537589c3180b5c, 0x1be5f420a4996e7a, 0x1b965871fd430cb9,
    0xb6b98eaecdd549c3, 0xfe4d27d81fca04bb, 0xd360aaa55272de8f, 0x1090f5b8f1e482b7,
    0xc63c43833558fb2d, 0xb26374a8a959e72c, 0x2a86493a281d922d, 0x3fdba914988336d8,
    0x24d810069cb82d78, 0x4d0c05544b39af59, 0x54d43e1a6c745b1a, 0x5d9fb972fa48ee37};

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

/* In parts that take a rotated piece; vectors without numbers that decide all scales, too. */
static void send_and_receive(transcript *t) {
    const bool is_sparse = width_of(compressor) == 0 && compressor->coding == SL_ENTROPY_NONE;
    for (size_t n = 0; n < LENGTHS; n++)
        send_and_receive_of(t, motley(lengths[n], 9), lengths[n], 5 * PART_SMALL);
    send_and_receive_of(t, gaussian(4099, 9), 4099, 5 * PART_SMALL);
    if (is_sparse)
        send_and_receive_of(t, gaussian(150001, 9), 150001, 5 * PART_SMALL);
}

START_LOOP_TEST(compressors_are_plain_c, SL_COMPRESSOR_KINDS) {
    uint64_t found[CASES_MAX];
    size_t count = 0;
    gather_cases();
    for (int i = 0; i < case_count; i++) {
        compressor = &cases[i];
        if (compressor->kind == (sl_compressor_kind)_i)
            found[count++] = on_each_level(send_and_receive, name_of(compressor));
    }
    const uint64_t sum = sl_checksum(found, count * sizeof *found);
    ENSURE(sum == sums[_i], "%s: checksum %#" PRIx64, sl_compressor_name((sl_compressor_kind)_i),
           sum);
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
    const uint64_t found = on_each_level(all[_i].work, all[_i].name);
    ENSURE(found == all[_i].sum, "%s: checksum %#" PRIx64, all[_i].name, found);
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
