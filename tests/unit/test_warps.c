/* test_warps.c - what threads of a GPU do together: 32 lanes of a warp, of which any may be
 * inactive, and the blocks of gpu/block.h, whose threads run in any order.
 *
 * A lane is a thread of the host. At each function of a warp, the active lanes wait for each other,
 * as those of a GPU do.
 */
#include <pthread.h>
#include <stdlib.h>

#define WARP_OF_TESTS
#include "gpu/emulated_kernels.h" /* before the kernels */

#include "base/philox.h"
static unsigned long philox_blocks; /* that the kernels draw */
#define philox_block(...) (philox_blocks++, philox_block(__VA_ARGS__))

#include "gpu/kernels.h"
#include "gpu/kernels_text.h"
#include "harness.h"

enum { LANES = 32, ADDRESSES = 5, TRIALS = 40 };

/* ---- a warp ---- */

static struct {
    uint32_t active; /* a bit for each lane */
    pthread_barrier_t all;
    uint64_t given[LANES];
} warp;
static _Thread_local uint32_t lane;
static _Thread_local bool alone = true; /* no lane of the warp: the test's own thread */

bool launch_watches;
void launch_note_read(const float *at, size_t count) {
    (void)at, (void)count;
}

uint32_t warp_lane(void) {
    return alone ? 0 : lane;
}

uint32_t warp_active(void) {
    return alone ? 1 : warp.active;
}

/* What each active lane has given; until `done` nobody gives again. */
static const uint64_t *exchange(uint64_t mine) {
    warp.given[lane] = mine;
    pthread_barrier_wait(&warp.all);
    return warp.given;
}

static void done(void) {
    pthread_barrier_wait(&warp.all);
}

uint32_t warp_alike(uint32_t lanes, uint64_t number) {
    if (alone)
        return lanes;
    const uint64_t *all = exchange(number);
    uint32_t alike = 0;
    for (uint32_t l = 0; l < LANES; l++)
        if ((lanes >> l & 1) != 0 && all[l] == number)
            alike |= 1u << l;
    done();
    return alike;
}

static uint32_t fold(uint32_t lanes, uint32_t value, bool sums) {
    if (alone)
        return value;
    const uint64_t *all = exchange(value);
    uint32_t total = 0;
    ck_assert_msg((lanes >> lane & 1) != 0, "lane %u folds for others", lane);
    for (uint32_t l = 0; l < LANES; l++)
        if ((lanes >> l & 1) != 0)
            total = sums ? total + (uint32_t)all[l] : all[l] > total ? (uint32_t)all[l] : total;
    done();
    return total;
}

uint32_t warp_sum(uint32_t lanes, uint32_t value) {
    return fold(lanes, value, true);
}

uint32_t warp_largest(uint32_t lanes, uint32_t value) {
    return fold(lanes, value, false);
}

/* ---- what lanes add and raise together ---- */

typedef struct work {
    uint32_t lane, address, value;
    pthread_t thread;
} work;
static uint32_t sums[ADDRESSES], largest[ADDRESSES];

static void *run_lane(void *work_) {
    const work *w = work_;
    lane = w->lane;
    alone = false;
    ATOMIC_ADD(&sums[w->address], w->value);
    ATOMIC_MAX(&largest[w->address], w->value);
    return NULL;
}

static uint32_t drawn(uint32_t *state) {
    *state = 1664525u * *state + 1013904223u;
    return *state >> 8;
}

/* Some lanes, or all of them, or one. */
static uint32_t some_lanes(uint32_t *state, int trial) {
    const uint32_t any = drawn(state) << 16 ^ drawn(state);
    return trial == 0 ? UINT32_MAX : trial == 1 ? 1u << 31 : any != 0 ? any : 1;
}

START_TEST(lanes_go_together) {
    uint32_t state = 7u + (uint32_t)_i, expected[2][ADDRESSES] = {{0}};
    work all[LANES];
    unsigned count = 0;
    memset(sums, 0, sizeof sums);
    memset(largest, 0, sizeof largest);
    warp.active = some_lanes(&state, _i);
    for (uint32_t l = 0; l < LANES; l++)
        if ((warp.active >> l & 1) != 0) {
            const uint32_t address = drawn(&state) % ADDRESSES, value = drawn(&state);
            all[count++] = (work){.lane = l, .address = address, .value = value};
            expected[0][address] += value;
            if (value > expected[1][address])
                expected[1][address] = value;
        }
    ck_assert_int_eq(pthread_barrier_init(&warp.all, NULL, count), 0);
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(pthread_create(&all[i].thread, NULL, run_lane, &all[i]), 0);
    for (unsigned i = 0; i < count; i++)
        pthread_join(all[i].thread, NULL);
    pthread_barrier_destroy(&warp.all);
    ck_assert_mem_eq(sums, expected[0], sizeof sums);
    ck_assert_mem_eq(largest, expected[1], sizeof largest);
}
END_TEST

/* ---- blocks ---- */

enum { COUNT = 5003, WORDS = (COUNT + 63) / 64, SHIFT = 20, WIDTH = 11 };

DEFINE_BLOCK_SHARE(count_digits)
DEFINE_BLOCK_SHARE(scan_groups)
DEFINE_BLOCK_SHARE(scan_counts)

static struct {
    _Alignas(16) float v[COUNT + 1];
    uint64_t equal[WORDS];
    uint32_t classes[DIGIT_CLASSES + 1], expected[DIGIT_CLASSES];
} digits;

static void fill_digits(int trial) {
    uint32_t state = 3u + (uint32_t)trial;
    memset(&digits, 0, sizeof digits);
    for (size_t i = 0; i < COUNT + 1; i++)
        digits.v[i] = (float)drawn(&state) * (drawn(&state) % 2 == 0 ? 1e-6f : -1e3f);
    for (size_t i = 0; i < COUNT; i++)
        digits.equal[i / 64] |= (uint64_t)(drawn(&state) % 3 == 0) << i % 64;
}

static const struct {
    uint32_t blocks;
    bool equal, aligned, in_order;
} ways[] = {
    {1, false, true, true},  {1, false, false, false}, {3, false, true, false},
    {7, false, false, true}, {1, true, true, false},   {5, true, true, false},
};

static launch_share share_of(uint32_t blocks, bool in_order) {
    return in_order ? (launch_share){.to = blocks, .stride = 1, .count = blocks}
                    : (launch_share){
                          .to = blocks, .first = blocks / 2, .stride = blocks + 1, .count = blocks};
}

/* The digit at which the k-th largest lies, by the histogram of all blocks. */
START_TEST(blocks_count_and_the_last_one_picks) {
    fill_digits(_i);
    const float *v = ways[_i].aligned ? digits.v : digits.v + 1;
    selection chosen = {0};
    count_digits_args count = {.v = v,
                               .count = COUNT,
                               .equal = ways[_i].equal ? digits.equal : NULL,
                               .shift = SHIFT,
                               .width = WIDTH,
                               .classes = digits.classes,
                               .chosen = &chosen,
                               .aligned = ways[_i].aligned};
    const launch_share share = share_of(ways[_i].blocks, ways[_i].in_order);
    for (size_t i = 0; i < COUNT; i++)
        if (!ways[_i].equal || (digits.equal[i / 64] >> i % 64 & 1) != 0) {
            digits.expected[class_of(&count, v[i])]++;
            count.k++;
        }
    uint32_t digit = DIGIT_CLASSES - 1, rest = count.k /= 4;
    for (; digits.expected[digit] < rest; digit--)
        rest -= digits.expected[digit];
    share_count_digits(&count, &share);
    ck_assert_uint_eq(chosen.prefix, digit);
    ck_assert_uint_eq(chosen.left, rest);
    for (uint32_t c = 0; c <= DIGIT_CLASSES; c++)
        ck_assert_uint_eq(digits.classes[c], 0);
}
END_TEST

/* Two rows, of one group, a whole number of them, and one more. */
START_TEST(blocks_scan) {
    enum { GROUPS = 301, LONGEST = GROUPS * SCANNED };
    static uint64_t counts[2][LONGEST], groups[2][GROUPS];
    uint64_t before[2] = {0};
    static const size_t lengths[] = {1, 77, SCANNED, SCANNED + 1, LONGEST - 9, LONGEST};
    scan_args a = {.counts = {counts[0], counts[1]}, .sums = {groups[0], groups[1]}};
    uint32_t state = 11;
    a.count = lengths[_i];
    a.groups = (uint32_t)((a.count + SCANNED - 1) / SCANNED);
    for (int row = 0; row < 2; row++)
        for (size_t i = 0; i < a.count; i++)
            counts[row][i] = drawn(&state) % 65 | (uint64_t)(drawn(&state) % 65) << 32;
    static uint64_t given[2][LONGEST];
    memcpy(given, counts, sizeof given);
    const launch_share share = share_of(2 * a.groups, _i % 2 == 0);
    share_scan_groups(&a, &share);
    share_scan_counts(&a, &share);
    for (int row = 0; row < 2; row++)
        for (size_t i = 0; i < a.count; before[row] += given[row][i++])
            ck_assert_uint_eq(counts[row][i], before[row]);
}
END_TEST

/* ---- random numbers: each block of the stream is drawn once ---- */

DEFINE_BLOCK_SHARE(encode_eight)
DEFINE_SHARE(draw_block)

/* Sixteen elements share a block; the second part begins in one's midst. */
START_TEST(codes_draw_each_block_once) {
    enum { PART = 4 * 2048 + 8, ALL = 2 * PART };
    static float v[ALL];
    static uint32_t parts[2][PART];
    uint32_t refused = 0;
    const encode_eight_args a = {
        .layout = {(uint8_t *)parts, sizeof parts[0], ALL, PART},
        .v = v,
        .code = CODE_NATURAL,
        .width = 9,
        .magnitude_limit = FLOAT_INFINITY,
        .scales = {.bucket = SIZE_MAX},
        .refused = &refused,
        .part_blocks = 5,
    };
    const launch_share share = share_of(2 * a.part_blocks, true);
    philox_blocks = 0;
    share_encode_eight(&a, &share);
    ck_assert_uint_eq(refused, 0);
    ck_assert_uint_le(philox_blocks, ALL / PHILOX_WINDOWS + share.count);
}
END_TEST

START_TEST(subsets_draw_each_block_once) {
    enum { DRAWN = 4000 };
    static uint64_t words[1 << 14];
    draw_state state = {.next = 7, .missing = DRAWN};
    const draw_block_args a = {&state, words, {.seed = 3}, 64u << 14, DRAWN / 2};
    philox_blocks = 0;
    share_draw_block(&a, &(launch_share){.to = DRAWN / 2 / 4 + 2, .stride = 1});
    uint32_t found = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        found += (uint32_t)__builtin_popcountll(words[i]);
    ck_assert_uint_eq(state.found, found);
    ck_assert_uint_ge(found, DRAWN / 2 - 40);
    ck_assert_uint_eq(philox_blocks, DRAWN / 2 / 4 + 1);
}
END_TEST

/* ---- a step of an LSTM: each product is one sum, in order, whatever the block ---- */

#define ROWS_MAX 9
#define UNITS_MAX 130
enum { STEPS = 3, PLACES = ROWS_MAX * STEPS * UNITS_MAX };
typedef struct lstm_vectors {
    float gates[4 * PLACES], cells[PLACES], before[PLACES], h[PLACES], carry[ROWS_MAX * UNITS_MAX];
} lstm_vectors;
static struct {
    lstm_vectors blocks, plain;
    float u[4 * UNITS_MAX * UNITS_MAX], turned[4 * UNITS_MAX * UNITS_MAX], b[4 * UNITS_MAX];
} lstm;

DEFINE_SHARE(transpose)
DEFINE_BLOCK_SHARE(lstm_advance)
DEFINE_BLOCK_SHARE(lstm_retreat)

static lstm_args lstm_of(lstm_vectors *v, const float *u, uint32_t rows, uint32_t n) {
    return (lstm_args){.gates = v->gates,
                       .cells = v->cells,
                       .before = v->before,
                       .h = v->h,
                       .u = u,
                       .b = lstm.b,
                       .carry = v->carry,
                       .rows = rows,
                       .steps = STEPS,
                       .n = n};
}

/* One unit, with sums of its own. */
static void plain_unit(const lstm_args *a, bool back, uint32_t row, uint32_t k) {
    float found[4 * LSTM_UNITS] = {0};
    const uint32_t n = a->n;
    const size_t position = (size_t)row * STEPS + a->t;
    const bool has = back ? a->t + 1 < STEPS : a->t > 0;
    for (uint32_t q = 0; q < 4; q++)
        for (uint32_t j = 0; j < n && has; j++)
            found[q * LSTM_UNITS] +=
                back ? a->gates[(4 * (position + 1) + q) * n + j] * lstm.u[(4 * k + q) * n + j]
                     : a->h[(position - 1) * n + j] * lstm.u[(4 * j + q) * n + k];
    if (back)
        lstm_backward_unit(a, row, k, found);
    else
        lstm_forward_unit(a, row, k, found);
}

static void take_step(const lstm_args *blocks, const lstm_args *plain, bool back, bool in_order) {
    const uint32_t count = lstm_blocks(blocks->rows, blocks->n);
    const launch_share share = {.to = count, .stride = in_order ? 1 : count + 1, .count = count};
    if (back)
        share_lstm_retreat(blocks, &share);
    else
        share_lstm_advance(blocks, &share);
    for (uint32_t row = 0; row < plain->rows; row++)
        for (uint32_t k = 0; k < plain->n; k++)
            plain_unit(plain, back, row, k);
}

static const struct {
    uint32_t rows, n;
    bool in_order;
} lstms[] = {{1, 1, true}, {4, 64, false}, {5, 65, true}, {9, 13, false}, {3, 130, false}};

START_TEST(blocks_step_an_lstm) {
    const uint32_t rows = lstms[_i].rows, n = lstms[_i].n;
    uint32_t state = 3;
    lstm_vectors *const both[] = {&lstm.blocks, &lstm.plain};
    for (size_t i = 0; i < 4 * PLACES; i++)
        lstm.plain.gates[i] = (float)drawn(&state) / 16777216.0f - 0.5f;
    for (size_t i = 0; i < (size_t)4 * n * n; i++)
        lstm.u[i] = (float)drawn(&state) / 16777216.0f - 0.5f;
    lstm.blocks = lstm.plain;
    const transpose_args turning = {lstm.u, lstm.turned, n, 4 * n};
    share_transpose(&turning, &(launch_share){.to = 4 * n * n, .stride = 1, .count = 4 * n * n});
    lstm_args blocks = lstm_of(both[0], lstm.u, rows, n), plain = lstm_of(both[1], NULL, rows, n);
    for (blocks.t = plain.t = 0; blocks.t < STEPS; blocks.t = ++plain.t)
        take_step(&blocks, &plain, false, lstms[_i].in_order);
    ck_assert_mem_eq(both[0], both[1], sizeof *both[0]);
    blocks.u = lstm.turned;
    for (blocks.t = plain.t = STEPS; blocks.t-- > 0;) {
        plain.t--;
        take_step(&blocks, &plain, true, lstms[_i].in_order);
    }
    ck_assert_mem_eq(both[0], both[1], sizeof *both[0]);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("warps");
    add_loop(suite, lanes_go_together, 0, TRIALS);
    add_loop(suite, blocks_count_and_the_last_one_picks, 0, sizeof ways / sizeof *ways);
    add_loop(suite, blocks_scan, 0, 6);
    add_loop(suite, blocks_step_an_lstm, 0, sizeof lstms / sizeof *lstms);
    ADD_TESTS(suite, "once", codes_draw_each_block_once, subsets_draw_each_block_once);
    return run_suite(suite);
}
