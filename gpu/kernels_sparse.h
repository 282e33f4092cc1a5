/* kernels_sparse.h - top-k, random-k and random dropping: selecting elements, encoding and
 * decoding their values; see kernels.h. */
#ifndef SL_GPU_KERNELS_SPARSE_H
#define SL_GPU_KERNELS_SPARSE_H

#include "base/philox.h"
#include "compress/coding.h"
#include "gpu/block.h"
#include "gpu/kernels_codes.h"
#include "gpu/kernels_scan.h"

#define DOUBLE_LARGEST 1.79769313486231570814527423731704357e+308

/* ---- the k-th largest magnitude, digit by digit from the top ---- */

typedef struct selection {
    uint32_t prefix; /* the digits so far; at the end the smallest magnitude that is kept */
    uint32_t left;   /* how many elements with `prefix` are kept */
} selection;

/* The histogram of one digit: of all elements, or of those in `equal`, which share the prefix; and
 * by it the digit. A block counts in its own memory first, since most elements fall into few
 * classes. The block that is last to have counted picks the digit: it goes through sums of FAN
 * classes each, then through the classes of one sum. */
typedef struct count_digits_args {
    const float *v;
    size_t count;
    const uint64_t *equal; /* (words); NULL: all */
    uint32_t shift, width;
    uint32_t *classes; /* (DIGIT_CLASSES + 1) zero, then and before; the last counts blocks */
    selection *chosen;
    uint32_t k;  /* the first digit: how many elements to keep; later ones: 0 */
    int aligned; /* v */
} count_digits_args;

SL_SHARED uint32_t magnitude_of(float v) {
    return float_bits(v) & FLOAT_MAGNITUDE;
}

SL_SHARED uint32_t class_of(const count_digits_args *a, float v) {
    return magnitude_of(v) >> a->shift & ((1u << a->width) - 1);
}

typedef struct count_digits_memory {
    uint32_t classes[DIGIT_CLASSES], sums[DIGIT_CLASSES / FAN];
    uint32_t is_last;
} count_digits_memory;

SL_SHARED void count_digit(const count_digits_args *a, count_digits_memory *m, float v) {
    ATOMIC_ADD_ONE(&m->classes[class_of(a, v)], 1);
}

SL_SHARED void count_all(const count_digits_args *a, count_digits_memory *m, block_place at) {
    const size_t fours = a->aligned ? a->count / FOUR : 0, step = block_step(at);
    for (size_t i = block_first(at); i < fours; i += step) {
        const four v = ((const four *)a->v)[i];
        for (int e = 0; e < FOUR; e++)
            count_digit(a, m, v.v[e]);
    }
    for (size_t i = FOUR * fours + block_first(at); i < a->count; i += step)
        count_digit(a, m, a->v[i]);
}

SL_SHARED void count_equal(const count_digits_args *a, count_digits_memory *m, block_place at) {
    const size_t words = (a->count + WORD_BITS - 1) / WORD_BITS, step = block_step(at);
    for (size_t i = block_first(at); i < words; i += step)
        for (uint64_t word = a->equal[i]; word != 0; word &= word - 1)
            count_digit(a, m, a->v[WORD_BITS * i + LOWEST_BIT(word)]);
}

/* By one thread. */
SL_SHARED void pick_digit(const count_digits_args *a, const count_digits_memory *m) {
    const uint32_t prefix = a->k > 0 ? 0 : a->chosen->prefix;
    uint32_t group = (1u << a->width) / FAN - 1, left = a->k > 0 ? a->k : a->chosen->left;
    for (; m->sums[group] < left; group--)
        left -= m->sums[group];
    uint32_t digit = group * FAN + FAN - 1;
    for (; m->classes[digit] < left; digit--)
        left -= m->classes[digit];
    a->chosen->prefix = prefix << a->width | digit;
    a->chosen->left = left;
}

SL_SHARED void publish_classes(const count_digits_args *a, const count_digits_memory *m,
                               block_place at) {
    for (uint32_t c = at.thread; c < DIGIT_CLASSES; c += BLOCK_THREADS)
        if (m->classes[c] > 0)
            ATOMIC_ADD_ONE(&a->classes[c], m->classes[c]);
    block_publish();
}

/* Those of all blocks; and clears them. */
SL_SHARED void take_classes(const count_digits_args *a, count_digits_memory *m, block_place at) {
    for (uint32_t c = at.thread; c < 1u << a->width; c += BLOCK_THREADS) {
        m->classes[c] = block_read_count(&a->classes[c]);
        a->classes[c] = 0;
    }
    if (at.thread == 0)
        a->classes[DIGIT_CLASSES] = 0;
}

enum { count_digits_PHASES = 7 };
SL_SHARED void count_digits(const count_digits_args *a, count_digits_memory *m, block_place at,
                            uint32_t phase) {
    if (phase > 3 && !m->is_last)
        return;
    switch (phase) {
    case 0:
        for (uint32_t c = at.thread; c < DIGIT_CLASSES; c += BLOCK_THREADS)
            m->classes[c] = 0;
        break;
    case 1:
        if (a->equal != NULL)
            count_equal(a, m, at);
        else
            count_all(a, m, at);
        break;
    case 2:
        publish_classes(a, m, at);
        break;
    case 3:
        if (at.thread == 0)
            m->is_last = block_number(&a->classes[DIGIT_CLASSES]) == at.blocks - 1;
        break;
    case 4:
        take_classes(a, m, at);
        break;
    case 5:
        for (uint32_t g = at.thread; g < (1u << a->width) / FAN; g += BLOCK_THREADS) {
            m->sums[g] = 0;
            for (uint32_t c = 0; c < FAN; c++)
                m->sums[g] += m->classes[g * FAN + c];
        }
        break;
    case 6:
        if (at.thread == 0)
            pick_digit(a, m);
        break;
    }
}

/* By the first digit: which elements are above the prefix, and which are equal to it. A thread
 * reads four elements beside its neighbours' four, several times; then some put words together. */
typedef struct mark_top_args {
    const float *v;
    size_t dimension;
    const selection *chosen;
    uint32_t shift;
    uint64_t *above, *equal; /* (words) */
    int aligned;             /* v */
} mark_top_args;

enum {
    MARKED_TIMES = 4,
    MARKED_FOURS = MARKED_TIMES * BLOCK_THREADS, /* of a block */
    WORD_FOURS = WORD_BITS / FOUR,
    MARKED_WORDS = MARKED_FOURS / WORD_FOURS
};
typedef struct mark_top_memory {
    uint8_t above[MARKED_FOURS], equal[MARKED_FOURS]; /* a bit for each of four elements */
} mark_top_memory;

SL_SHARED void mark_four(const mark_top_args *a, mark_top_memory *m, size_t from, uint32_t at) {
    const uint32_t prefix = a->chosen->prefix;
    const four v = read_four(a->v, a->dimension, a->aligned, from);
    uint32_t above = 0, equal = 0;
    for (uint32_t e = 0; e < FOUR; e++) {
        const uint32_t digit = magnitude_of(v.v[e]) >> a->shift, there = from + e < a->dimension;
        above |= (there & (digit > prefix)) << e;
        equal |= (there & (digit == prefix)) << e;
    }
    m->above[at] = (uint8_t)above;
    m->equal[at] = (uint8_t)equal;
}

SL_SHARED uint64_t word_of_fours(const uint8_t fours[WORD_FOURS]) {
    uint64_t word = 0;
    for (uint32_t i = 0; i < WORD_FOURS; i++)
        word |= (uint64_t)fours[i] << FOUR * i;
    return word;
}

enum { mark_top_PHASES = 2 };
SL_SHARED void mark_top(const mark_top_args *a, mark_top_memory *m, block_place at,
                        uint32_t phase) {
    const size_t word = (size_t)at.block * MARKED_WORDS + at.thread;
    switch (phase) {
    case 0:
        for (uint32_t k = at.thread; k < MARKED_FOURS; k += BLOCK_THREADS)
            mark_four(a, m, FOUR * ((size_t)at.block * MARKED_FOURS + k), k);
        break;
    case 1:
        if (at.thread < MARKED_WORDS && WORD_BITS * word < a->dimension) {
            a->above[word] = word_of_fours(m->above + at.thread * WORD_FOURS);
            a->equal[word] = word_of_fours(m->equal + at.thread * WORD_FOURS);
        }
        break;
    }
}

/* ---- bitmaps: thread i has elements [64 i, 64 i + 64) ---- */

/* By a later digit: which of the equal elements are above the prefix, and which are still equal. */
typedef struct keep_digit_args {
    const float *v;
    const selection *chosen;
    uint32_t shift;
    uint64_t *above, *equal; /* (words) */
    uint64_t *counts;        /* (words) count above | count equal << 32 */
} keep_digit_args;

SL_SHARED void keep_digit(const keep_digit_args *a, size_t i) {
    const uint32_t prefix = a->chosen->prefix;
    uint64_t above = 0, equal = 0;
    for (uint64_t word = a->equal[i]; word != 0; word &= word - 1) {
        const uint32_t digits = magnitude_of(a->v[WORD_BITS * i + LOWEST_BIT(word)]) >> a->shift;
        above |= digits > prefix ? word & (0 - word) : 0;
        equal |= digits == prefix ? word & (0 - word) : 0;
    }
    above |= a->above[i];
    a->above[i] = above;
    a->equal[i] = equal;
    a->counts[i] = BITS_SET(above) | (uint64_t)BITS_SET(equal) << 32;
}

/* Of equal magnitudes, the lower indices are kept. */
typedef struct settle_ties_args {
    uint64_t *above;
    const uint64_t *equal;
    const selection *chosen;
    uint64_t *
        ranks; /* (words) in: counts before each word, above | equal << 32; out: of kept elements */
} settle_ties_args;

/* The elements of word i that are kept, and in *rank how many are before it. */
SL_SHARED uint64_t settled(const settle_ties_args *a, size_t i, size_t *rank) {
    const uint64_t before = a->ranks[i];
    const uint32_t left = a->chosen->left, first = (uint32_t)(before >> 32);
    uint64_t equal = a->equal[i], word = a->above[i];
    for (uint32_t kept = first; equal != 0 && kept < left; kept++, equal &= equal - 1)
        word |= equal & (0 - equal);
    *rank = (uint32_t)before + (first < left ? first : left);
    return word;
}

SL_SHARED void settle_ties(const settle_ties_args *a, size_t i) {
    size_t rank;
    a->above[i] = settled(a, i, &rank);
    a->ranks[i] = rank;
}

/* ---- sparse messages ---- */

/* The elements of one word, in order. */
typedef struct list_word_args {
    const uint64_t *words;
    const uint64_t *ranks; /* (words) */
    uint32_t *indices;     /* (entries) */
} list_word_args;

SL_SHARED void list_word(const list_word_args *a, size_t i) {
    uint32_t *out = a->indices + a->ranks[i];
    for (uint64_t word = a->words[i]; word != 0; word &= word - 1)
        *out++ = (uint32_t)(WORD_BITS * i) + LOWEST_BIT(word);
}

SL_SHARED void put_value(uint8_t *part, size_t slot, float v, uint32_t *refused) {
    ((float *)part)[slot] = v;
    if ((float_bits(v) & FLOAT_MAGNITUDE) >= FLOAT_INFINITY)
        ATOMIC_ADD(refused, 1);
}

/* Writes the value of entry i; a part is a range of entries. */
typedef struct gather_entry_args {
    part_layout layout;
    const float *v;
    const uint32_t *indices;
    uint32_t *refused;
} gather_entry_args;

SL_SHARED void gather_entry(const gather_entry_args *a, size_t i) {
    const size_t part = i / a->layout.part_elements;
    put_value(a->layout.parts + part * a->layout.stride, i - part * a->layout.part_elements,
              a->v[a->indices[i]], a->refused);
}

/* Of top-k: value and index of each kept element of word i. */
typedef struct take_top_args {
    settle_ties_args ties;
    part_layout layout;
    const float *v;
    uint32_t *indices; /* (k) */
    uint32_t *refused;
} take_top_args;

SL_SHARED void take_top(const take_top_args *a, size_t i) {
    size_t rank;
    for (uint64_t word = settled(&a->ties, i, &rank); word != 0; word &= word - 1, rank++) {
        const size_t index = WORD_BITS * i + LOWEST_BIT(word),
                     part = quotient(rank, a->layout.part_elements);
        a->indices[rank] = (uint32_t)index;
        put_value(a->layout.parts + part * a->layout.stride, rank - part * a->layout.part_elements,
                  a->v[index], a->refused);
    }
}

/* Writes the values of word i's elements; a part is a range of elements. counts: the values that
 * each part has room for and gets. */
typedef struct gather_word_args {
    part_layout layout;
    const float *v;
    const uint64_t *words;
    const uint64_t *ranks;
    const uint32_t *counts;
    uint32_t *refused;
} gather_word_args;

SL_SHARED void gather_word(const gather_word_args *a, size_t i) {
    const size_t part = WORD_BITS * i / a->layout.part_elements;
    uint8_t *out = a->layout.parts + part * a->layout.stride;
    size_t slot = a->ranks[i] - a->ranks[part * a->layout.part_elements / WORD_BITS];
    for (uint64_t word = a->words[i]; word != 0 && slot < a->counts[part]; word &= word - 1, slot++)
        put_value(out, slot, a->v[WORD_BITS * i + LOWEST_BIT(word)], a->refused);
}

enum { INDICES = 32 }; /* of one thread: as many words as an index has bits */

/* ---- signs of a mean: stc ---- */

/* A thread for each lane of a tile of entries: it sums the magnitudes of SUM_LANES apart. */
typedef struct entry_lanes_args {
    const float *v;
    const uint32_t *indices;
    size_t count;
    double *lanes; /* (tiles, SUM_LANES) */
} entry_lanes_args;

SL_SHARED void entry_lanes(const entry_lanes_args *a, size_t i) {
    const size_t start = i / SUM_LANES * SUM_TILE, end = smaller(start + SUM_TILE, a->count);
    double sum = 0;
    SL_UNROLL(16)
    for (size_t e = start + i % SUM_LANES; e < end; e += SUM_LANES)
        sum += (double)float_of(magnitude_of(a->v[a->indices[e]]));
    a->lanes[i] = sum;
}

/* A block. A sum of floats is finite if they all are. */
typedef struct entry_mean_args {
    const double *lanes;
    size_t count;
    float *mean;
    uint32_t *refused;
} entry_mean_args;

typedef struct entry_mean_memory {
    double folds[SUM_FOLDS];
} entry_mean_memory;

SL_SHARED double fold_entries(const double *lanes, size_t tiles, size_t fold) {
    double sum = 0;
    for (size_t t = fold; t < tiles; t += SUM_FOLDS)
        sum += sum_lanes(lanes + t * SUM_LANES);
    return sum;
}

enum { entry_mean_PHASES = 2 };
SL_SHARED void entry_mean(const entry_mean_args *a, entry_mean_memory *m, block_place at,
                          uint32_t phase) {
    const size_t tiles = sum_tiles(a->count);
    if (phase == 0)
        m->folds[at.thread] = fold_entries(a->lanes, tiles, at.thread);
    if (phase == 0 || at.thread > 0)
        return;
    const double sum = sum_in_order(m->folds, sum_folds(tiles));
    *a->mean = (float)(sum / (double)a->count);
    if (!(sum <= DOUBLE_LARGEST))
        ATOMIC_ADD(a->refused, 1);
}

/* An entry's sign goes below its index. */
typedef struct sign_entry_args {
    const float *v;
    uint32_t *indices;
} sign_entry_args;

SL_SHARED void sign_entry(const sign_entry_args *a, size_t i) {
    const uint32_t index = a->indices[i];
    a->indices[i] = index << 1 | float_bits(a->v[index]) >> 31;
}

/* At most INDICES of them; what fills the last word is 0. */
SL_SHARED void pack_indices(const uint32_t *indices, size_t n, uint32_t width, uint32_t *out) {
    uint64_t waiting = 0;
    uint32_t filled = 0;
    for (size_t e = 0; e < n; e++) {
        waiting |= (uint64_t)indices[e] << filled;
        filled += width;
        if (filled >= 32) {
            *out++ = (uint32_t)waiting;
            waiting >>= 32;
            filled -= 32;
        }
    }
    if (filled > 0)
        *out = (uint32_t)waiting;
}

/* Thread i packs indices of part i / groups behind what stands in front. What fills the last word
 * is of no part's bytes. */
typedef struct place_indices_args {
    part_layout layout; /* part_elements: entries; dimension: k */
    const uint32_t *indices;
    const float *mean; /* stands in front of each part; NULL: its values do */
    size_t groups;
    uint32_t width;
} place_indices_args;

SL_SHARED void place_indices(const place_indices_args *a, size_t i) {
    const size_t part = i / a->groups, first = part * a->layout.part_elements,
                 at = i % a->groups * INDICES;
    const size_t count = smaller(a->layout.dimension - first, a->layout.part_elements);
    if (at >= count)
        return;
    uint32_t *out = (uint32_t *)(void *)(a->layout.parts + part * a->layout.stride);
    if (a->mean != NULL && at == 0)
        out[0] = float_bits(*a->mean);
    pack_indices(a->indices + first + at, smaller(count - at, INDICES), a->width,
                 out + (a->mean != NULL ? 1 : count) + at / INDICES * a->width);
}

/* Thread i counts the bits of `words` in part i, at most the part's room. */
typedef struct count_parts_args {
    const uint64_t *words;
    const uint64_t *ranks;
    size_t dimension, part_elements, room, room_last, parts;
    uint32_t *counts; /* (parts) */
} count_parts_args;

SL_SHARED void count_parts(const count_parts_args *a, size_t i) {
    const size_t end = smaller((i + 1) * a->part_elements, a->dimension),
                 last = (end - 1) / WORD_BITS;
    const size_t count =
        a->ranks[last] + BITS_SET(a->words[last]) - a->ranks[i * a->part_elements / WORD_BITS];
    a->counts[i] = (uint32_t)smaller(count, i + 1 == a->parts ? a->room_last : a->room);
}

/* Writes the word's bits after its part's values. */
typedef struct place_bitmap_args {
    part_layout layout;
    const uint64_t *words;
    const uint32_t *counts; /* (parts) */
} place_bitmap_args;

SL_SHARED void place_bitmap(const place_bitmap_args *a, size_t i) {
    const size_t part = WORD_BITS * i / a->layout.part_elements,
                 start = part * a->layout.part_elements;
    const size_t n = smaller(a->layout.dimension - WORD_BITS * i, WORD_BITS);
    uint32_t *bitmap = (uint32_t *)(void *)(a->layout.parts + part * a->layout.stride) +
                       a->counts[part] + (WORD_BITS * i - start) / 32;
    bitmap[0] = (uint32_t)a->words[i];
    if (n > 32)
        bitmap[1] = (uint32_t)(a->words[i] >> 32);
}

/* ---- random-k: the stream's words, rejected and repeated ones left out, until there are k
 * different elements ---- */

/* A pass draws at most as many words as elements are missing. So it never finds too many, and
 * stops where the CPU stops, which draws word by word. */
typedef struct draw_state {
    uint64_t next; /* word of the stream */
    uint32_t missing, found;
} draw_state;

/* One thread. */
typedef struct begin_draw_args {
    draw_state *state;
    uint32_t missing;
} begin_draw_args;

SL_SHARED void begin_draw(const begin_draw_args *a, size_t i) {
    a->state[i].next = 0;
    a->state[i].missing = a->missing;
    a->state[i].found = 0;
}

typedef struct draw_block_args {
    draw_state *state;
    uint64_t *words; /* (words) */
    sl_rng_key key;
    uint32_t dimension;
    uint32_t most; /* words of a pass */
} draw_block_args;

enum { DRAWN_WORDS = 4 }; /* of a block of the stream */

/* Draws words [from, end) of block `at`. Returns how many elements are new. */
SL_SHARED uint32_t draw_words(const draw_block_args *a, uint64_t at, uint64_t from, uint64_t end) {
    uint32_t block[DRAWN_WORDS], index, found = 0;
    philox_block(&a->key, (uint32_t)at, PHILOX_ROUNDS, block);
    SL_UNROLL(4)
    for (uint32_t w = 0; w < DRAWN_WORDS; w++) {
        const uint64_t word = DRAWN_WORDS * at + w;
        if (word < from || word >= end || !philox_below(block[w], a->dimension, &index))
            continue;
        const uint64_t bit = (uint64_t)1 << index % WORD_BITS;
        found += (ATOMIC_OR(&a->words[index / WORD_BITS], bit) & bit) == 0;
    }
    return found;
}

/* Thread i has the i-th block that the pass touches. */
SL_SHARED void draw_block(const draw_block_args *a, size_t i) {
    const uint64_t from = a->state->next, end = from + smaller(a->state->missing, a->most),
                   at = from / DRAWN_WORDS + i;
    const uint32_t found = DRAWN_WORDS * at < end ? draw_words(a, at, from, end) : 0;
    if (found > 0)
        ATOMIC_ADD(&a->state->found, found);
}

/* One thread, after a pass. */
typedef struct advance_draw_args {
    draw_state *state;
    uint32_t most; /* words of the pass */
} advance_draw_args;

SL_SHARED void advance_draw(const advance_draw_args *a, size_t i) {
    draw_state *s = a->state + i;
    s->next += smaller(s->missing, a->most);
    s->missing -= s->found;
    s->found = 0;
}

/* One thread draws the few that are still missing. */
typedef draw_block_args finish_draw_args;

SL_SHARED void finish_draw(const finish_draw_args *a, size_t i) {
    draw_state *s = a->state + i;
    for (; s->missing > 0; s->next++)
        s->missing -= draw_words(a, s->next / DRAWN_WORDS, s->next, s->next + 1);
}

/* Inverts the set if the elements to leave out were drawn, and counts the bits of each word. */
typedef struct settle_subset_args {
    uint64_t *words;
    uint64_t *counts;
    size_t dimension;
    int others;
} settle_subset_args;

SL_SHARED void settle_subset(const settle_subset_args *a, size_t i) {
    const size_t n = smaller(a->dimension - WORD_BITS * i, WORD_BITS);
    if (a->others)
        a->words[i] = ~a->words[i] & (n < WORD_BITS ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0);
    a->counts[i] = BITS_SET(a->words[i]);
}

/* ---- random dropping: elements whose half-word is below `draws`; thread i has elements from + [64
 * w, 64 w + 64) of message i / words, w being i % words ---- */

typedef struct mark_kept_args {
    uint64_t *bits[INPUTS];   /* (words) */
    uint64_t *counts[INPUTS]; /* (words) */
    sl_rng_key keys[INPUTS];
    uint32_t draws;
    size_t from, count, words;
} mark_kept_args;

SL_SHARED void mark_kept(const mark_kept_args *a, size_t i) {
    const size_t m = quotient(i, a->words), w = i - m * a->words,
                 n = smaller(a->count - WORD_BITS * w, WORD_BITS);
    uint64_t word = 0;
    for (size_t e = 0; e < n; e += EIGHT) {
        uint32_t block[4];
        uint32_t kept = 0;
        philox_block(&a->keys[m], (uint32_t)((a->from + WORD_BITS * w + e) / EIGHT),
                     PHILOX_ROUNDS_QUICK, block);
        SL_UNROLL(8)
        for (uint32_t h = 0; h < EIGHT; h++)
            kept |= (uint32_t)(philox_half(block, h) < a->draws) << h;
        word |= (uint64_t)kept << e;
    }
    word &= ~(uint64_t)0 >> (WORD_BITS - n);
    a->bits[m][w] = word;
    a->counts[m][w] = BITS_SET(word);
}

#endif
