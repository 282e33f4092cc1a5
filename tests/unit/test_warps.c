/* test_warps.c - what threads of a GPU do together: 32 lanes of a warp, of which any may be
 * inactive; and that each block of random numbers is drawn once. checkvec has what their blocks
 * compute, in any order.
 *
 * A lane is a thread of the host. At each function of a warp, the active lanes wait for each other,
 * as those of a GPU do.
 */
#include <pthread.h>

#define WARP_OF_TESTS
#include "gpu/emulated/kernels.h" /* before the kernels */

#include "base/philox.h"
static unsigned long philox_blocks; /* that the kernels draw */
#define philox_block(...) (philox_blocks++, philox_block(__VA_ARGS__))

#include "gpu/kernels.h"
#include "gpu/kernels_text.h"
#include "harness.h"

enum { LANES = 32, ADDRESSES = 5, TRIALS = 12 };

/* ---- a warp ---- */

static struct {
    uint32_t active; /* a bit for each lane */
    pthread_barrier_t all;
    uint64_t given[LANES];
} warp;
static _Thread_local uint32_t lane;
static _Thread_local bool alone = true; /* no lane of the warp: the test's own thread */

bool launch_watches;
void launch_note_read(const float *at, size_t count) {}

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

START_LOOP_TEST(lanes_go_together, TRIALS) {
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
    const launch_share share = {.to = 2 * a.part_blocks, .stride = 1, .count = 2 * a.part_blocks};
    philox_blocks = 0;
    share_encode_eight(&a, &share);
    ck_assert_uint_eq(refused, 0);
    ck_assert_uint_le(philox_blocks, ALL / PHILOX_WINDOWS + share.count);
}

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
