/* kernels_listed.h - strom and magnitude-dropping: a part is a range of elements, of which some are
 * sent, each by its index in the part with its value or its sign; see kernels.h. */
#ifndef SL_GPU_KERNELS_LISTED_H
#define SL_GPU_KERNELS_LISTED_H

#include <assert.h>
#include <math.h>

#include "gpu/kernels_entries.h"

/* ---- magnitude-dropping's lambda: the CPU's passes, each a sum over blocks of elements ---- */

enum { SHARE_BLOCK = SL_BLOCK, SHARE_PASSES = 8, SHARE_DRAWN = 4 };

typedef struct share_state {
    double lambda, limit; /* limit: 1 / lambda */
    uint32_t certain;     /* elements from the limit on, in the pass under way */
    uint32_t passes;      /* done */
    uint32_t is_found;
} share_state;

/* One thread. */
typedef struct begin_shares_args {
    share_state *state;
    int all; /* is every element sent? */
} begin_shares_args;

SL_SHARED void begin_shares(const begin_shares_args *a, size_t i) {
    share_state *s = a->state + i;
    s->lambda = a->all ? DOUBLE_LARGEST : 0;
    s->limit = (double)INFINITY;
    s->certain = s->passes = s->is_found = 0;
}

/* The magnitudes below the limit, of each SHARE_BLOCK elements. A block of threads has BLOCK_TILES
 * of these, as in tile_sums. */
typedef struct share_sums_args {
    const float *v;
    size_t dimension;
    share_state *state;
    double *sums; /* (blocks) */
    size_t blocks;
} share_sums_args;

typedef struct share_sums_memory {
    double lanes[BLOCK_THREADS];
} share_sums_memory;

SL_SHARED double share_of_lane(const share_sums_args *a, size_t block, size_t lane) {
    const size_t start = block * SHARE_BLOCK, end = smaller(start + SHARE_BLOCK, a->dimension);
    const double limit = a->state->limit;
    uint32_t certain = 0;
    double sum = 0;
    SL_UNROLL(16)
    for (size_t e = start + lane; e < end; e += SUM_LANES) {
        const double magnitude = fabs((double)a->v[e]);
        sum += magnitude >= limit ? 0 : magnitude;
        certain += magnitude >= limit;
    }
    if (certain > 0)
        ATOMIC_ADD(&a->state->certain, certain);
    return sum;
}

enum { share_sums_PHASES = 2 };
SL_SHARED void share_sums(const share_sums_args *a, share_sums_memory *m, block_place at,
                          uint32_t phase) {
    const size_t first = (size_t)at.block * BLOCK_TILES, block = first + at.thread / SUM_LANES;
    if (a->state->is_found)
        return;
    if (phase == 0 && block < a->blocks)
        m->lanes[at.thread] = share_of_lane(a, block, at.thread % SUM_LANES);
    else if (phase == 1 && at.thread < BLOCK_TILES && first + at.thread < a->blocks)
        a->sums[first + at.thread] = sum_lanes(m->lanes + at.thread * SUM_LANES);
}

/* A block, after a pass: lambda rises until nothing more is to be shared. */
typedef struct share_more_args {
    share_state *state;
    const double *sums; /* (blocks) */
    size_t blocks, k;
    uint32_t *refused;
} share_more_args;

SL_SHARED void raise_lambda(const share_more_args *a, double below) {
    share_state *s = a->state;
    const uint32_t certain = s->certain;
    const double lambda = below > 0 && certain < a->k ? (double)(a->k - certain) / below : 0;
    if (s->passes < SHARE_PASSES && lambda > s->lambda) {
        s->lambda = lambda;
        s->limit = 1 / lambda;
        s->certain = 0;
        s->passes++;
        return;
    }
    s->is_found = 1;
    if (!(below <= DOUBLE_LARGEST) || !(s->lambda <= DOUBLE_LARGEST))
        ATOMIC_ADD(a->refused, 1);
}

typedef struct share_more_memory {
    double folds[SUM_FOLDS];
} share_more_memory;

enum { share_more_PHASES = 2 };
SL_SHARED void share_more(const share_more_args *a, share_more_memory *m, block_place at,
                          uint32_t phase) {
    if (phase == 0)
        m->folds[at.thread] = sum_of_fold(a->sums, a->blocks, at.thread);
    else if (at.thread == 0 && !a->state->is_found)
        raise_lambda(a, sum_in_order(m->folds, sum_folds(a->blocks)));
}
static_assert((int)SUM_FOLDS == (int)BLOCK_THREADS, "a thread has a fold");

/* ---- which elements are drawn: as of mark_top, four elements a thread, several times ---- */

typedef struct mark_drawn_args {
    const float *v;
    size_t dimension;
    const share_state *state;
    sl_rng_key key;
    uint64_t *bits; /* (words) */
    int aligned;    /* v */
} mark_drawn_args;

typedef struct mark_drawn_memory {
    uint8_t drawn[MARKED_FOURS];
} mark_drawn_memory;

SL_SHARED uint8_t draw_four(const mark_drawn_args *a, size_t from) {
    const four v = read_four(a->v, a->dimension, a->aligned, from);
    const double lambda = a->state->lambda;
    uint32_t random[4], drawn = 0;
    philox_block(&a->key, (uint32_t)(from / SHARE_DRAWN), PHILOX_ROUNDS_QUICK, random);
    SL_UNROLL(4)
    for (uint32_t e = 0; e < FOUR; e++)
        drawn |= (uint32_t)((double)random[e] < fabs((double)v.v[e]) * lambda * 0x1p32) << e;
    return (uint8_t)drawn;
}

enum { mark_drawn_PHASES = 2 };
SL_SHARED void mark_drawn(const mark_drawn_args *a, mark_drawn_memory *m, block_place at,
                          uint32_t phase) {
    const size_t word = (size_t)at.block * MARKED_WORDS + at.thread;
    switch (phase) {
    case 0:
        for (uint32_t k = at.thread; k < MARKED_FOURS; k += BLOCK_THREADS)
            m->drawn[k] = draw_four(a, FOUR * ((size_t)at.block * MARKED_FOURS + k));
        break;
    case 1:
        if (at.thread < MARKED_WORDS && WORD_BITS * word < a->dimension)
            a->bits[word] = word_of_fours(m->drawn + at.thread * WORD_FOURS);
        break;
    }
}

/* ---- encoding ---- */

/* One thread: mark_top then marks the magnitudes from tau > 0 on. */
typedef struct begin_mark_args {
    selection *chosen;
    float tau;
} begin_mark_args;

SL_SHARED void begin_mark(const begin_mark_args *a, size_t i) {
    a->chosen[i].prefix = float_bits(a->tau) - 1;
}

/* Word i's elements: each one's index in its part, with its sign below it or its value in front. */
typedef struct list_marks_args {
    part_layout layout;
    const float *v;
    const uint64_t *words, *ranks; /* (words) */
    const share_state *state;      /* of drawn elements, whose values are sent; NULL: signs are */
    uint32_t *entries;             /* (elements) */
    uint32_t *refused;
} list_marks_args;

/* One that was sure to be drawn is sent as it is, any other as 1 / lambda. */
SL_SHARED float drawn_value(const share_state *s, float v) {
    const float scaled = (float)(1 / s->lambda);
    if (fabs((double)v) * s->lambda >= 1)
        return v;
    return float_of(float_bits(scaled) | (float_bits(v) & ~FLOAT_MAGNITUDE));
}

SL_SHARED void list_marks(const list_marks_args *a, size_t i) {
    const size_t part = quotient(WORD_BITS * i, a->layout.part_elements),
                 start = part * a->layout.part_elements, first = a->ranks[start / WORD_BITS];
    float *values = (float *)(void *)(a->layout.parts + part * a->layout.stride);
    size_t rank = a->ranks[i];
    for (uint64_t word = a->words[i]; word != 0; word &= word - 1, rank++) {
        const size_t element = WORD_BITS * i + LOWEST_BIT(word);
        const uint32_t index = (uint32_t)(element - start);
        const float v = a->v[element];
        a->entries[rank] = a->state != NULL ? index : index << 1 | float_bits(v) >> 31;
        if (a->state != NULL)
            values[rank - first] = drawn_value(a->state, v);
        if (magnitude_of(v) >= FLOAT_INFINITY)
            ATOMIC_ADD(a->refused, 1);
    }
}

/* Thread i packs INDICES entries of part i / groups. What fills the last word is of no part's
 * bytes. */
typedef struct place_marks_args {
    part_layout layout;
    const uint32_t *entries;
    const uint64_t *ranks;
    const uint32_t *counts; /* (parts) */
    size_t groups;
    uint32_t width, width_last; /* of the last part */
    int values;                 /* do values stand in front? */
} place_marks_args;

SL_SHARED void place_marks(const place_marks_args *a, size_t i) {
    const size_t part = quotient(i, a->groups), at = (i - part * a->groups) * INDICES,
                 start = part * a->layout.part_elements;
    const uint32_t count = a->counts[part],
                   width = a->layout.dimension - start <= a->layout.part_elements ? a->width_last
                                                                                  : a->width;
    if (at >= count)
        return;
    pack_indices(a->entries + a->ranks[start / WORD_BITS] + at, smaller(count - at, INDICES), width,
                 (uint32_t *)(void *)(a->layout.parts + part * a->layout.stride) +
                     (a->values ? count : 0) + at / INDICES * width);
}

/* ---- decoding ---- */

/* Thread i adds what each message in turn has of word i's elements, counted from the first part
 * on. Entries rise, so a part's are searched. */
typedef struct add_marks_args {
    const uint8_t *parts[INPUTS]; /* each message's first part */
    uint32_t bytes[INPUTS][PARTS_TOGETHER];
    float weights[INPUTS];
    uint32_t k; /* messages */
    size_t stride, part_elements;
    size_t last; /* the message's last part, counted from the first one here */
    uint32_t width, width_last;
    int values;
    float tau;  /* of signs */
    float *acc; /* at the first part's first element */
} add_marks_args;

typedef struct marks_of_part {
    const uint8_t *part;
    uint32_t count, width, ahead; /* ahead: bytes of values */
} marks_of_part;

SL_SHARED uint64_t entry_at(const marks_of_part *p, uint32_t entry) {
    return packed_at(p->part + p->ahead, (size_t)entry * p->width, p->width);
}

/* An entry that is 0 behind another is none, but bits left over. */
SL_SHARED marks_of_part marks_of(const add_marks_args *a, uint32_t m, size_t part) {
    const uint32_t bits = a->bytes[m][part] * 8;
    marks_of_part p = {a->parts[m] + part * a->stride, 0,
                       part == a->last ? a->width_last : a->width, 0};
    p.count = bits / (p.width + (a->values ? 32 : 0));
    p.ahead = a->values ? p.count * (uint32_t)sizeof(float) : 0;
    while (!a->values && p.count > 1 && entry_at(&p, p.count - 1) == 0)
        p.count--;
    return p;
}

/* The first entry of an element from `index` on. */
SL_SHARED uint32_t first_entry(const marks_of_part *p, uint32_t beside, size_t index) {
    uint32_t low = 0, high = p->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (entry_at(p, middle) >> beside < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

SL_SHARED void add_marks(const add_marks_args *a, size_t i) {
    const size_t part = quotient(WORD_BITS * i, a->part_elements), start = part * a->part_elements,
                 from = WORD_BITS * i - start;
    const uint32_t beside = a->values ? 0 : 1;
    float *acc = a->acc + start;
    for (uint32_t m = 0; m < a->k; m++) {
        const marks_of_part p = marks_of(a, m, part);
        const float unit = a->weights[m] * a->tau;
        const float *values = (const float *)(const void *)p.part;
        for (uint32_t e = first_entry(&p, beside, from); e < p.count; e++) {
            const uint64_t entry = entry_at(&p, e);
            const size_t index = entry >> beside;
            if (index >= from + WORD_BITS)
                break;
            acc[index] += a->values ? a->weights[m] * values[e] : entry & 1 ? -unit : unit;
        }
    }
}

#endif
