/* huffman.c - see huffman.h. */
#include "compress/lossless/huffman.h"

#include <string.h>

/* ---- lengths ---- */

/* Symbols that occur, by count and then by number; returns how many. */
static size_t sorted(const uint32_t *counts, size_t symbols, uint64_t *keys) {
    size_t n = 0;
    for (size_t s = 0; s < symbols; s++)
        if (counts[s] > 0)
            keys[n++] = (uint64_t)counts[s] << 16 | s;
    for (size_t gap = n / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < n; i++) {
            const uint64_t key = keys[i];
            size_t at = i;
            for (; at >= gap && keys[at - gap] > key; at -= gap)
                keys[at] = keys[at - gap];
            keys[at] = key;
        }
    return n;
}

/* Two queues, the leaves and the sums, both rising: the lesser of their heads. */
typedef struct queues {
    uint64_t weight[2 * HUFFMAN_SYMBOLS]; /* leaves (n), then sums */
    size_t leaf, leaves, sum, sums;       /* heads and ends */
} queues;

static size_t least(queues *q) {
    const bool is_leaf =
        q->leaf < q->leaves && (q->sum == q->sums || q->weight[q->leaf] <= q->weight[q->sum]);
    return is_leaf ? q->leaf++ : q->sum++;
}

/* The depth of each leaf, the keys' order; returns the largest. */
static unsigned depths(const uint64_t *keys, size_t n, uint8_t *depth) {
    queues q = {.leaves = n, .sum = n, .sums = n};
    uint16_t parent[2 * HUFFMAN_SYMBOLS];
    for (size_t i = 0; i < n; i++)
        q.weight[i] = keys[i] >> 16;
    for (size_t made = 1; made < n; made++) {
        const size_t a = least(&q), b = least(&q);
        q.weight[q.sums] = q.weight[a] + q.weight[b];
        parent[a] = parent[b] = (uint16_t)q.sums++;
    }
    uint8_t of[2 * HUFFMAN_SYMBOLS];
    of[q.sums - 1] = n == 1;
    for (size_t i = q.sums - 1; i-- > 0;)
        of[i] = (uint8_t)(of[parent[i]] + 1);
    memcpy(depth, of, n);
    unsigned deepest = 0;
    for (size_t i = 0; i < n; i++)
        deepest = depth[i] > deepest ? depth[i] : deepest;
    return deepest;
}

void sl_huffman_lengths(uint32_t *counts, size_t symbols, uint8_t *lengths) {
    uint64_t keys[HUFFMAN_SYMBOLS];
    uint8_t depth[HUFFMAN_SYMBOLS];
    memset(lengths, 0, symbols);
    size_t n = sorted(counts, symbols, keys);
    while (n > 0 && depths(keys, n, depth) > HUFFMAN_BITS) { /* makes the rare ones less rare */
        for (size_t s = 0; s < symbols; s++)
            counts[s] -= counts[s] / 2;
        n = sorted(counts, symbols, keys);
    }
    for (size_t i = 0; i < n; i++)
        lengths[keys[i] & 0xFFFF] = depth[i];
}

double sl_huffman_best(uint32_t *counts, size_t symbols, uint8_t *lengths) {
    uint32_t before[HUFFMAN_SYMBOLS];
    double bits = 0;
    memcpy(before, counts, symbols * sizeof *counts);
    sl_huffman_lengths(counts, symbols, lengths);
    for (size_t s = 0; s < symbols; s++)
        bits += (double)before[s] * lengths[s];
    return bits;
}

/* ---- words ---- */

static void count_lengths(const uint8_t *lengths, size_t symbols,
                          uint32_t count[HUFFMAN_BITS + 1]) {
    memset(count, 0, (HUFFMAN_BITS + 1) * sizeof *count);
    for (size_t s = 0; s < symbols; s++)
        count[lengths[s]]++;
    count[0] = 0;
}

void sl_huffman_words(const uint8_t *lengths, size_t symbols, uint16_t *words) {
    uint32_t count[HUFFMAN_BITS + 1], next[HUFFMAN_BITS + 1] = {0};
    count_lengths(lengths, symbols, count);
    for (unsigned l = 1; l <= HUFFMAN_BITS; l++)
        next[l] = (next[l - 1] + count[l - 1]) << 1;
    for (size_t s = 0; s < symbols; s++)
        words[s] = lengths[s] > 0 ? (uint16_t)next[lengths[s]]++ : 0;
}

bool sl_huffman_open(huffman_table *t, const uint8_t *lengths, size_t symbols) {
    uint32_t count[HUFFMAN_BITS + 1], at = 0, seen = 0;
    uint16_t next[HUFFMAN_BITS + 1];
    count_lengths(lengths, symbols, count);
    for (unsigned l = 1; l <= HUFFMAN_BITS; l++) {
        t->first[l] = at;
        t->end[l] = at += count[l] << (HUFFMAN_BITS - l);
        next[l] = t->before[l] = (uint16_t)seen;
        seen += count[l];
    }
    for (size_t s = 0; s < symbols; s++)
        if (lengths[s] > 0)
            t->symbols[next[lengths[s]]++] = (uint16_t)s;
    return at == 1u << HUFFMAN_BITS || (seen == 1 && count[1] == 1);
}

static uint8_t guess(const uint8_t *lengths, size_t symbol, size_t stride) {
    return symbol >= stride ? lengths[symbol - stride] : 0;
}

void sl_huffman_put_lengths(bit_writer *w, const uint8_t *lengths, size_t symbols, size_t stride) {
    for (size_t s = 0; s < symbols; s++)
        if (lengths[s] == guess(lengths, s, stride))
            put(w, 0, 1);
        else
            put(w, 1u << HUFFMAN_LENGTH_BITS | lengths[s], 1 + HUFFMAN_LENGTH_BITS);
}

bool sl_huffman_take(bit_reader *r, huffman_table *table, size_t symbols, size_t stride) {
    uint8_t lengths[HUFFMAN_SYMBOLS];
    for (size_t s = 0; s < symbols; s++)
        lengths[s] =
            take(r, 1) == 0 ? guess(lengths, s, stride) : (uint8_t)take(r, HUFFMAN_LENGTH_BITS);
    return sl_huffman_open(table, lengths, symbols);
}

double sl_huffman_head_bits(const uint8_t *lengths, size_t symbols, size_t stride) {
    double bits = (double)symbols;
    for (size_t s = 0; s < symbols; s++)
        bits += lengths[s] != guess(lengths, s, stride) ? HUFFMAN_LENGTH_BITS : 0;
    return bits;
}
