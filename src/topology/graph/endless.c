/* endless.c - see endless.h. */
#include "topology/graph/endless.h"

#include <stdlib.h>

#include "starling/rng.h"

/* Swaps of the shuffle: a node that none of them moves is one in 2^32. */
enum { SWAPS = 32, WORD_BITS = 32, BLOCK_WORDS = 4, BLOCK_BITS = WORD_BITS * BLOCK_WORDS };

/* The permutation of a round. */
typedef struct shuffle {
    const sl_endless *of;
    uint64_t round;
    uint32_t mirrors[SWAPS]; /* swap k exchanges x and mirrors[k] - x, or leaves both */
} shuffle;

static void open_shuffle(shuffle *s, const sl_endless *e, uint64_t round) {
    s->of = e;
    s->round = round;
    for (uint32_t k = 0; k < SWAPS; k++) {
        sl_rng rng = sl_rng_open(e->seed, k, round, SL_PURPOSE_TOPOLOGY);
        s->mirrors[k] = sl_rng_below(&rng, e->nodes);
    }
}

/* Block 0 of the stream has the mirror. */
static uint32_t swap(const shuffle *s, uint32_t k, uint32_t x) {
    const uint32_t n = s->of->nodes, other = (s->mirrors[k] + n - x) % n,
                   pair = x > other ? x : other;
    const sl_rng_key key = sl_rng_open(s->of->seed, k, s->round, SL_PURPOSE_TOPOLOGY).key;
    uint32_t words[BLOCK_WORDS];
    sl_rng_block(&key, 1 + pair / BLOCK_BITS, words);
    const uint32_t bit = words[pair % BLOCK_BITS / WORD_BITS] >> pair % WORD_BITS & 1;
    return bit ? other : x;
}

static uint32_t place_of(const shuffle *s, uint32_t node) {
    for (uint32_t k = 0; k < SWAPS; k++)
        node = swap(s, k, node);
    return node;
}

static uint32_t node_at(const shuffle *s, uint32_t place) {
    for (uint32_t k = SWAPS; k > 0; k--)
        place = swap(s, k - 1, place);
    return place;
}

static int by_number(const void *x, const void *y) {
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return (a > b) - (a < b);
}

/* The last place of an odd number has nobody opposite. */
static uint32_t opposite(uint32_t place, uint32_t nodes) {
    const uint32_t even = nodes / 2 * 2;
    return place < even ? (place + even / 2) % even : place;
}

uint32_t sl_endless_peers(const sl_endless *e, uint64_t round, uint32_t i, uint32_t *peers) {
    const uint32_t n = e->nodes;
    uint32_t count = 0;
    if (e->degree + 1 >= n) {
        for (uint32_t j = 0; j < n; j++)
            if (j != i)
                peers[count++] = j;
        return count;
    }
    shuffle s;
    open_shuffle(&s, e, round);
    const uint32_t place = place_of(&s, i), across = opposite(place, n);
    for (uint32_t apart = 1; apart <= e->degree / 2; apart++) {
        peers[count++] = node_at(&s, (place + apart) % n);
        peers[count++] = node_at(&s, (place + n - apart) % n);
    }
    if (e->degree % 2 == 1 && across != place)
        peers[count++] = node_at(&s, across);
    qsort(peers, count, sizeof *peers, by_number);
    return count;
}

double sl_endless_mean_square(const sl_endless *e) {
    const double n = e->nodes, share = 1 / (e->degree + 1.0);
    const bool one_rests = e->degree % 2 == 1 && e->nodes % 2 == 1 && e->degree + 1 < e->nodes;
    if (e->nodes < 2)
        return 0;
    /* whoever has a neighbour less keeps its share, too */
    const double trace = share * (n + one_rests),
                 squares = share * n + 2 * share * share * one_rests, of_w = (trace - 1) / (n - 1),
                 of_square = (squares - 1) / (n - 1);
    return e->lazy ? (1 + 2 * of_w + of_square) / 4 : of_square;
}
