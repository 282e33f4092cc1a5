/* rng.c - Philox4x32-10 (Salmon et al., SC 2011); see starling/rng.h. */
#include "starling/rng.h"

#include <math.h>

#define ROUND_MULTIPLIER_0 0xD2511F53u
#define ROUND_MULTIPLIER_1 0xCD9E8D57u
#define KEY_BUMP_0 0x9E3779B9u
#define KEY_BUMP_1 0xBB67AE85u

static void philox4x32_10(uint32_t c[4], uint32_t k0, uint32_t k1) {
    for (int i = 0; i < 10; i++) {
        uint64_t p0 = (uint64_t)ROUND_MULTIPLIER_0 * c[0];
        uint64_t p1 = (uint64_t)ROUND_MULTIPLIER_1 * c[2];
        uint32_t c1 = c[1], c3 = c[3];
        c[0] = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c[1] = (uint32_t)p1;
        c[2] = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c[3] = (uint32_t)p0;
        k0 += KEY_BUMP_0;
        k1 += KEY_BUMP_1;
    }
}

void sl_rng_block(const sl_rng_key *key, uint32_t index, uint32_t out[4]) {
    /* Counter: index | rank | low round | high round (16) and purpose (16). */
    out[0] = index;
    out[1] = key->rank;
    out[2] = (uint32_t)key->round;
    out[3] = ((uint32_t)(key->round >> 32) & 0xFFFFu) << 16 | (key->purpose & 0xFFFFu);
    philox4x32_10(out, (uint32_t)key->seed, (uint32_t)(key->seed >> 32));
}

sl_rng sl_rng_open(uint64_t seed, uint32_t rank, uint64_t round, sl_purpose purpose) {
    return (sl_rng){.key = {seed, round, rank, (uint32_t)purpose}};
}

uint32_t sl_rng_u32(sl_rng *rng) {
    uint32_t lane = (uint32_t)(rng->next & 3);
    if (lane == 0)
        sl_rng_block(&rng->key, (uint32_t)(rng->next >> 2), rng->words);
    rng->next++;
    return rng->words[lane];
}

uint64_t sl_rng_u64(sl_rng *rng) {
    uint64_t high = sl_rng_u32(rng);
    return high << 32 | sl_rng_u32(rng);
}

uint32_t sl_rng_below(sl_rng *rng, uint32_t n) {
    /* Lemire 2019: multiply, and reject the few words that would be counted twice. */
    uint64_t product = (uint64_t)sl_rng_u32(rng) * n;
    if ((uint32_t)product < n) {
        uint32_t threshold = (uint32_t)(-n) % n;
        while ((uint32_t)product < threshold)
            product = (uint64_t)sl_rng_u32(rng) * n;
    }
    return (uint32_t)(product >> 32);
}

double sl_rng_uniform(sl_rng *rng) {
    return (double)(sl_rng_u64(rng) >> 11) * 0x1p-53;
}

double sl_rng_normal(sl_rng *rng) {
    double radius = sqrt(-2.0 * log(1.0 - sl_rng_uniform(rng)));
    return radius * cos(6.283185307179586 * sl_rng_uniform(rng));
}

void sl_rng_shuffle(sl_rng *rng, uint32_t *items, uint32_t count) {
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = sl_rng_below(rng, i);
        uint32_t swap = items[i - 1];
        items[i - 1] = items[j];
        items[j] = swap;
    }
}
