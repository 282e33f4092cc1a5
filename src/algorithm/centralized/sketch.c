/* sketch.c - see sketch.h. Sums run in the order of the elements. */
#include "algorithm/centralized/sketch.h"

#include <string.h>

#include "starling/rng.h"

enum { BLOCK_WORDS = 4, AT_ONCE = 256, DIGIT = 8, DIGITS = 256 };

static sl_rng_key row_key(const sl_sketch *s, size_t row) {
    return (sl_rng_key){s->seed, 0, (uint32_t)row, SL_PURPOSE_SKETCH};
}

static size_t place(const sl_sketch *s, uint32_t word) {
    return (size_t)((word >> 1) * (uint64_t)s->columns >> 31);
}

static float sign(uint32_t word) {
    return 1 - 2 * (float)(int)(word & 1); /* no branch: nobody could foresee it */
}

/* Words of AT_ONCE elements. */
static void draw(const sl_sketch *s, size_t row, size_t from, uint32_t *words) {
    const sl_rng_key key = row_key(s, row);
    sl_rng_blocks(&key, (uint32_t)(from / BLOCK_WORDS), AT_ONCE / BLOCK_WORDS, words);
}

void sl_sketch_add(const sl_sketch *s, float *table, const float *v) {
    uint32_t words[AT_ONCE];
    for (size_t row = 0; row < s->rows; row++, table += s->columns)
        for (size_t from = 0; from < s->dimension; from += AT_ONCE) {
            draw(s, row, from, words);
            for (size_t i = 0; i < AT_ONCE && from + i < s->dimension; i++)
                table[place(s, words[i])] += sign(words[i]) * v[from + i];
        }
}

/* Sorts what each element has in the rows (odd-even transposition), many elements side by side. */
static void sort(float rows[][AT_ONCE], size_t count) {
    for (size_t pass = 0; pass < count; pass++)
        for (size_t row = pass % 2; row + 1 < count; row += 2) {
            float *restrict low = rows[row], *restrict high = rows[row + 1];
            for (size_t i = 0; i < AT_ONCE; i++) {
                const float a = low[i], b = high[i];
                low[i] = a < b ? a : b;
                high[i] = a < b ? b : a;
            }
        }
}

/* Of an even number of rows the mean of the two in the middle. */
void sl_sketch_estimate(const sl_sketch *s, float *v, const float *table) {
    uint32_t words[AT_ONCE];
    float each[SL_SKETCH_ROWS_MAX][AT_ONCE];
    for (size_t from = 0; from < s->dimension; from += AT_ONCE) {
        for (size_t row = 0; row < s->rows; row++) {
            draw(s, row, from, words);
            for (size_t i = 0; i < AT_ONCE; i++)
                each[row][i] = sign(words[i]) * table[row * s->columns + place(s, words[i])];
        }
        sort(each, s->rows);
        const float *low = each[(s->rows - 1) / 2], *high = each[s->rows / 2];
        for (size_t i = 0; i < AT_ONCE && from + i < s->dimension; i++)
            v[from + i] = 0.5f * low[i] + 0.5f * high[i];
    }
}

void sl_sketch_forget(const sl_sketch *s, float *table, const float *v) {
    for (size_t row = 0; row < s->rows; row++, table += s->columns) {
        const sl_rng_key key = row_key(s, row);
        for (size_t i = 0; i < s->dimension; i++) {
            uint32_t words[BLOCK_WORDS];
            if (v[i] == 0)
                continue;
            sl_rng_block(&key, (uint32_t)(i / BLOCK_WORDS), words);
            table[place(s, words[i % BLOCK_WORDS])] = 0;
        }
    }
}

/* The bits of a float without its sign are in the order of its magnitude. */
static uint32_t magnitude(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & INT32_MAX;
}

/* The k-th largest magnitude, digit by digit from the highest; *above: how many are larger. */
static uint32_t kth_largest(const float *v, size_t count, size_t k, size_t *above) {
    uint32_t found = 0;
    *above = 0;
    for (int shift = 32 - DIGIT; shift >= 0; shift -= DIGIT) {
        size_t counts[DIGITS] = {0};
        for (size_t i = 0; i < count; i++) {
            const uint64_t m = magnitude(v[i]); /* as 64 bits: they are shifted by 32 at first */
            if (m >> (shift + DIGIT) == (uint64_t)found >> (shift + DIGIT))
                counts[m >> shift & (DIGITS - 1)]++;
        }
        uint32_t digit = DIGITS - 1;
        for (; *above + counts[digit] < k; digit--)
            *above += counts[digit];
        found |= digit << shift;
    }
    return found;
}

void sl_keep_largest(float *v, size_t count, size_t k) {
    size_t above;
    const uint32_t least = kth_largest(v, count, k, &above);
    size_t equal = k - above;
    for (size_t i = 0; i < count; i++) {
        const uint32_t m = magnitude(v[i]);
        if (m == least && equal > 0)
            equal--;
        else if (m <= least)
            v[i] = 0;
    }
}
