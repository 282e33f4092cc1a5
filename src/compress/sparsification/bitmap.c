/* bitmap.c - see bitmap.h. */
#include "compress/sparsification/bitmap.h"

sl_walk sl_walk_open(const uint64_t *words, size_t elements, size_t start, size_t left) {
    size_t at = start / SL_WORD;
    uint64_t word = words[at] & ~sl_low_bits(start % SL_WORD);
    return (sl_walk){
        .words = words, .count = sl_words(elements), .at = at, .word = word, .left = left};
}

/* The next elements, some SL_BATCH of them, all before word `end`; returns how many. `out` has room
 * for SL_WORD more. Elements are written by twos, whether they exist or not: how many a word has is
 * not for a branch to foresee. */
static inline size_t next_elements(sl_walk *w, size_t end, uint32_t *out) {
    size_t n = 0;
    while (n < SL_BATCH && n < w->left && w->at < end) {
        size_t set = (size_t)__builtin_popcountll(w->word), i = 0;
        do {
            for (size_t pair = 0; pair < 2; pair++, i++, w->word &= w->word - 1)
                out[n + i] = (uint32_t)(w->at * SL_WORD) +
                             (uint32_t)__builtin_ctzll(w->word | UINT64_C(1) << 63);
        } while (i < set);
        n += set;
        w->word = w->words[++w->at];
    }
    n = n < w->left ? n : w->left;
    w->left -= n;
    return n;
}

FOR_EACH_CPU(void, gather, (sl_walk w, const float *vector, float *out), (w, vector, out)) {
    uint32_t elements[SL_BATCH + SL_WORD];
    while (w.left > 0) {
        size_t n = next_elements(&w, w.count, elements);
        for (size_t i = 0; i < n; i++)
            __builtin_prefetch(vector + elements[i]);
        for (size_t i = 0; i < n; i++)
            *out++ = vector[elements[i]];
    }
}

/* Block by block, those without elements left out. */
static void gather_read(sl_walk w, sl_encoder *e, const sl_source *source, size_t from,
                        float *out) {
    enum { BLOCK_WORDS = SL_BLOCK / SL_WORD };
    uint32_t elements[SL_BATCH + SL_WORD];
    size_t read = SIZE_MAX;
    while (w.left > 0) {
        size_t block = w.at / BLOCK_WORDS, first = block * SL_BLOCK,
               left = e->codec->dimension - from - first;
        size_t n = next_elements(&w, (block + 1) * BLOCK_WORDS, elements);
        if (n > 0 && block != read) {
            source->read(source->context, from + first, left < SL_BLOCK ? left : SL_BLOCK,
                         e->scratch);
            read = block;
        }
        for (size_t i = 0; i < n; i++)
            *out++ = e->scratch[elements[i] - first];
    }
}

void sl_walk_gather(sl_walk w, sl_encoder *e, const sl_source *source, size_t from, float *out) {
    if (source->vector != NULL)
        gather(w, source->vector + from, out);
    else
        gather_read(w, e, source, from, out);
}

FOR_EACH_CPU(void, scatter, (sl_walk w, float weight, const float *values, float *acc),
             (w, weight, values, acc)) {
    uint32_t elements[SL_BATCH + SL_WORD];
    while (w.left > 0) {
        size_t n = next_elements(&w, w.count, elements);
        for (size_t i = 0; i < n; i++)
            __builtin_prefetch(acc + elements[i], 1);
        for (size_t i = 0; i < n; i++)
            acc[elements[i]] += weight * *values++;
    }
}

void sl_walk_scatter(sl_walk w, float weight, const float *values, float *acc) {
    scatter(w, weight, values, acc);
}
