/* largest.c - see largest.h. */
#include "compress/sparsification/largest.h"

#include <math.h>
#include <string.h>

#include "base/kernels.h"
#include "element/shared.h"
#include "element/sum.h"

#ifdef SL_AVX2
#include <immintrin.h>
#endif

enum {
    COLLECT_MORE = 4096, /* entries beyond 1.5 k that a collection holds; at least SL_BLOCK */
    SAMPLE_RUN = 64,     /* consecutive elements of a sample */
    SAMPLE_RUNS_MAX = 1024,
    SAMPLE_BLOCKS_MIN = 64, /* shorter vectors are not worth a sample */
    SAMPLE_EVERY = 8,       /* at most one block of so many is looked into */
    CLASS_BITS = 11,
    CLASSES = 1 << CLASS_BITS,
    FEW = 4096, /* keys that are looked at apart from the others */
    NO_LIMIT = -1
};

/* Which elements are larger than others. */
typedef enum ordering { BY_MAGNITUDE, UPWARDS, DOWNWARDS } ordering;

typedef struct collection {
    uint64_t *entries, *end;
    size_t k, capacity; /* one more may be written behind */
    ordering order;
    int64_t limit; /* what enters exceeds it, as a key */
    double sum;    /* of values that were cut; not by magnitude */
} collection;

static size_t capacity_of(size_t k, size_t dimension) {
    const size_t capacity = k + k / 2 + COLLECT_MORE;
    return capacity < dimension ? capacity : dimension;
}

size_t sl_largest_room(size_t k, size_t dimension) {
    return capacity_of(k, dimension) + 1;
}

static collection collection_of(uint64_t *entries, size_t k, size_t dimension, ordering order) {
    return (collection){entries, entries, k, capacity_of(k, dimension), order, NO_LIMIT, 0};
}

static size_t count_of(const collection *c) {
    return (size_t)(c->end - c->entries);
}

static uint64_t entry(uint32_t upper, size_t index) {
    return (uint64_t)upper << 32 | index;
}

/* ---- ranks: integers in the order of values; either zero has that of 0 ---- */

enum { SIGN_SHIFT = 31 };
#define RANK_OF_ZERO 0x80000000u

static inline uint32_t rank_of(float value) {
    const uint32_t bits = float_bits(value + 0.0f);
    return bits ^ ((0 - (bits >> SIGN_SHIFT)) | RANK_OF_ZERO);
}

static inline uint32_t value_of_rank(uint32_t rank) {
    return rank >> SIGN_SHIFT ? rank ^ RANK_OF_ZERO : ~rank;
}

/* Values that are above it, or none, exceed the limit. NaN: there is none. What has just less than
 * zero's rank is -0, which is not less. */
static float upper_limit(int64_t limit) {
    if (limit < 0)
        return NAN;
    return float_of(value_of_rank((uint32_t)limit - (limit == RANK_OF_ZERO - 1)));
}

/* The same of values below it, whose entries have their ranks turned around. */
static float lower_limit(int64_t limit) {
    return limit < 0 ? NAN : float_of(value_of_rank(~(uint32_t)limit));
}

/* ---- the k largest of a collection ---- */

static inline uint32_t key_of(uint64_t e, uint32_t mask) {
    return (uint32_t)(e >> 32) & mask;
}

typedef struct key_range {
    uint32_t low, high;
} key_range;

FOR_EACH_CPU(key_range, range_of, (const uint64_t *entries, size_t count, uint32_t mask),
             (entries, count, mask)) {
    key_range r = {UINT32_MAX, 0};
    for (size_t i = 0; i < count; i++) {
        const uint32_t key = key_of(entries[i], mask);
        r.low = key < r.low ? key : r.low;
        r.high = key > r.high ? key : r.high;
    }
    return r;
}

/* Entries are collected as values, and compared by ranks, which `turn` turns around. */
FOR_EACH_CPU(key_range, to_ranks, (uint64_t * entries, size_t count, uint32_t turn),
             (entries, count, turn)) {
    key_range r = {UINT32_MAX, 0};
    for (size_t i = 0; i < count; i++) {
        const uint32_t key = rank_of(float_of(sl_entry_value(entries[i]))) ^ turn;
        entries[i] = entry(key, sl_entry_index(entries[i]));
        r.low = key < r.low ? key : r.low;
        r.high = key > r.high ? key : r.high;
    }
    return r;
}

static inline double to_value(uint64_t *e, uint32_t turn) {
    const uint32_t value = value_of_rank(sl_entry_value(*e) ^ turn);
    *e = entry(value, sl_entry_index(*e));
    return (double)float_of(value);
}

/* Values again, and their sum by lanes. */
FOR_EACH_CPU(void, to_values,
             (uint64_t * entries, size_t count, uint32_t turn, double lanes[SUM_LANES]),
             (entries, count, turn, lanes)) {
    size_t i = 0;
    for (; i + SUM_LANES <= count; i += SUM_LANES)
        for (size_t l = 0; l < SUM_LANES; l++)
            lanes[l] += to_value(&entries[i + l], turn);
    for (size_t l = 0; i + l < count; l++)
        lanes[l] += to_value(&entries[i + l], turn);
}

/* How many keys are in each class of 2^shift, of those in [low, low + most]. */
FOR_EACH_CPU(void, count_classes,
             (const uint64_t *entries, size_t count, uint32_t mask, uint32_t low, uint32_t most,
              unsigned shift, uint32_t *classes),
             (entries, count, mask, low, most, shift, classes)) {
    for (size_t i = 0; i < count; i++) {
        const uint32_t above = key_of(entries[i], mask) - low;
        classes[above <= most ? above >> shift : CLASSES]++;
    }
}

/* ---- some of the entries, in order ---- */

#ifdef SL_AVX2
/* Of four entries, each two 32-bit lanes, those whose bits are set. */
/* clang-format off */
#define LANES(a, b, c, d) {2 * a, 2 * a + 1, 2 * b, 2 * b + 1, 2 * c, 2 * c + 1, 2 * d, 2 * d + 1}
static const uint32_t lanes_of[16][8] = {
    LANES(0, 0, 0, 0), LANES(0, 0, 0, 0), LANES(1, 0, 0, 0), LANES(0, 1, 0, 0),
    LANES(2, 0, 0, 0), LANES(0, 2, 0, 0), LANES(1, 2, 0, 0), LANES(0, 1, 2, 0),
    LANES(3, 0, 0, 0), LANES(0, 3, 0, 0), LANES(1, 3, 0, 0), LANES(0, 1, 3, 0),
    LANES(2, 3, 0, 0), LANES(0, 2, 3, 0), LANES(1, 2, 3, 0), LANES(0, 1, 2, 3)};
#undef LANES
/* clang-format on */

typedef struct four_entries {
    __m256i entries, keys;
} four_entries;

SL_AVX2 static inline four_entries four_at(const uint64_t *entries, uint32_t mask) {
    const __m256i four = _mm256_loadu_si256((const __m256i *)entries);
    return (four_entries){four,
                          _mm256_and_si256(_mm256_srli_epi64(four, 32), _mm256_set1_epi64x(mask))};
}

SL_AVX2 static inline unsigned above(four_entries f, int64_t limit) {
    const __m256i is = _mm256_cmpgt_epi64(f.keys, _mm256_set1_epi64x(limit));
    return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(is));
}

/* Writes four; returns how many of them count. */
SL_AVX2 static inline size_t put_chosen(uint64_t *out, four_entries f, unsigned chosen) {
    const __m256i lanes = _mm256_loadu_si256((const __m256i *)lanes_of[chosen]);
    _mm256_storeu_si256((__m256i *)out, _mm256_permutevar8x32_epi32(f.entries, lanes));
    return (size_t)__builtin_popcount(chosen);
}
#endif

static size_t gather_plain(const uint64_t *entries, size_t count, uint32_t mask, uint32_t low,
                           uint32_t most, uint64_t *out) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        out[found] = entries[i];
        found += key_of(entries[i], mask) - low <= most;
    }
    return found;
}

#ifdef SL_AVX2
SL_AVX2 static size_t gather_avx2(const uint64_t *entries, size_t count, uint32_t mask,
                                  uint32_t low, uint32_t most, uint64_t *out) {
    const int64_t first = low, last = first + most;
    size_t found = 0, i = 0;
    for (; i + 4 <= count; i += 4) {
        const four_entries f = four_at(entries + i, mask);
        found += put_chosen(out + found, f, above(f, first - 1) & ~above(f, last));
    }
    return found + gather_plain(entries + i, count - i, mask, low, most, out + found);
}
#endif

/* Those of [low, low + most], as entries; returns how many. Up to four more may be written. */
static size_t gather(const uint64_t *entries, size_t count, uint32_t mask, uint32_t low,
                     uint32_t most, uint64_t *out) {
#ifdef SL_AVX2
    if (sl_has_avx2())
        return gather_avx2(entries, count, mask, low, most, out);
#endif
    return gather_plain(entries, count, mask, low, most, out);
}

/* The k-th largest key; *equal: how many entries of just that key are among the k. 1 <= k <= count.
 * Class by class: what is in the class of the k-th is looked at again, alone where it is little. */
static uint32_t select_key(const uint64_t *entries, size_t count, uint32_t mask, key_range all,
                           size_t k, size_t *equal) {
    uint64_t few[FEW + 4];
    uint32_t low = all.low, most = all.high - all.low;
    unsigned shift = 0;
    while (most >> shift >= CLASSES)
        shift++;
    for (;; shift = shift > CLASS_BITS ? shift - CLASS_BITS : 0) {
        uint32_t classes[CLASSES + 1] = {0}, found = CLASSES - 1;
        count_classes(entries, count, mask, low, most, shift, classes);
        for (; classes[found] < k; found--)
            k -= classes[found];
        low += found << shift;
        most = (1u << shift) - 1;
        *equal = k;
        if (shift == 0)
            return low;
        if (classes[found] > FEW)
            continue;
        count = gather(entries, count, mask, low, most, few);
        entries = few;
    }
}

/* Those above `least`, and the first `equal` ones of it; from entry i on, of which so many are
 * kept. */
static size_t keep_some(uint64_t *entries, size_t i, size_t end, size_t kept, uint32_t mask,
                        uint32_t least, size_t *equal) {
    for (; i < end; i++) {
        const uint32_t key = key_of(entries[i], mask);
        const size_t is_equal = key == least && *equal > 0;
        entries[kept] = entries[i];
        *equal -= is_equal;
        kept += (key > least) | is_equal;
    }
    return kept;
}

#ifdef SL_AVX2
/* How far it came, and how many it has kept. */
SL_AVX2 static size_t keep_avx2(uint64_t *entries, size_t count, uint32_t mask, uint32_t least,
                                size_t *equal, size_t *kept) {
    const int64_t limit = least;
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const four_entries f = four_at(entries + i, mask);
        const unsigned larger = above(f, limit);
        if (above(f, limit - 1) == larger)
            *kept += put_chosen(entries + *kept, f, larger);
        else
            *kept = keep_some(entries, i, i + 4, *kept, mask, least, equal);
    }
    return i;
}
#endif

static void keep(uint64_t *entries, size_t count, uint32_t mask, uint32_t least, size_t equal) {
    size_t done = 0, kept = 0;
#ifdef SL_AVX2
    if (sl_has_avx2())
        done = keep_avx2(entries, count, mask, least, &equal, &kept);
#endif
    keep_some(entries, done, count, kept, mask, least, &equal);
}

static uint32_t mask_of(const collection *c) {
    return c->order == BY_MAGNITUDE ? FLOAT_MAGNITUDE : UINT32_MAX;
}

static uint32_t turn_of(const collection *c) {
    return c->order == DOWNWARDS ? UINT32_MAX : 0;
}

/* The k-th largest key of what is there, which ranks take the place of. */
static uint32_t select_of(collection *c, size_t k, size_t *equal) {
    const size_t count = count_of(c);
    const key_range all = c->order == BY_MAGNITUDE ? range_of(c->entries, count, mask_of(c))
                                                   : to_ranks(c->entries, count, turn_of(c));
    return select_key(c->entries, count, mask_of(c), all, k, equal);
}

/* Leaves the k largest, in order. Later entries have to exceed the least of them. */
static void cut(collection *c) {
    double lanes[SUM_LANES] = {0};
    size_t equal;
    const uint32_t least = select_of(c, c->k, &equal);
    keep(c->entries, count_of(c), mask_of(c), least, equal);
    c->end = c->entries + c->k;
    c->limit = least;
    if (c->order != BY_MAGNITUDE)
        to_values(c->entries, c->k, turn_of(c), lanes);
    c->sum = sum_lanes(lanes);
}

/* ---- collecting by magnitude ---- */

static inline void collect_one(collection *c, const float *v, size_t index) {
    const uint32_t value = float_bits(*v);
    *c->end = entry(value, index);
    c->end += (int64_t)(value & FLOAT_MAGNITUDE) > c->limit;
}

static void collect_plain(collection *c, const float *v, size_t from, size_t count) {
    for (size_t i = 0; i < count; i++)
        collect_one(c, v + i, from + i);
}

#ifdef SL_AVX2
/* Which of a block's elements exceed, one bit each; then their places, by fours, whether there are
 * so many or not: how many a word has is not for a branch to foresee. */
enum { WORD = 64, BY = 4 };

typedef struct hits {
    size_t count;
    uint32_t words[SL_BLOCK / 32 + 2]; /* one word more may be read */
    uint16_t places[SL_BLOCK + BY];
} hits;

/* Of the first n elements, a multiple of 32. */
SL_AVX2 static inline void list_places(hits *h, size_t n) {
    size_t found = 0;
    h->words[n / 32] = 0;
    for (size_t w = 0; w * WORD < n; w++) {
        uint64_t word;
        memcpy(&word, h->words + 2 * w, sizeof word);
        const size_t set = (size_t)__builtin_popcountll(word);
        for (size_t i = 0; i < set; i += BY)
            for (size_t j = 0; j < BY; j++, word &= word - 1)
                h->places[found + i + j] =
                    (uint16_t)(w * WORD + (size_t)__builtin_ctzll(word | UINT64_C(1) << 63));
        found += set;
    }
    h->count = found;
}

SL_AVX2 static inline uint32_t lanes(__m256 mask) {
    return (uint32_t)_mm256_movemask_ps(mask);
}

SL_AVX2 static inline __m256 exceeding(const float *v, __m256i limit) {
    const __m256i magnitude = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)v),
                                               _mm256_set1_epi32((int)FLOAT_MAGNITUDE));
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(magnitude, limit));
}

SL_AVX2 static void collect_avx2(collection *c, const float *v, size_t from, size_t count) {
    const __m256i limits = _mm256_set1_epi32((int32_t)c->limit);
    const size_t whole = count / 32 * 32;
    hits h;
    for (size_t i = 0; i < whole; i += 32)
        h.words[i / 32] =
            lanes(exceeding(v + i, limits)) | lanes(exceeding(v + i + 8, limits)) << 8 |
            lanes(exceeding(v + i + 16, limits)) << 16 | lanes(exceeding(v + i + 24, limits)) << 24;
    list_places(&h, whole);
    for (size_t i = 0; i < h.count; i++)
        c->end[i] = entry(float_bits(v[h.places[i]]), from + h.places[i]);
    c->end += h.count;
    collect_plain(c, v + whole, from + whole, count - whole);
}
#endif

/* ---- collecting at both ends ---- */

static inline void collect_ends_of_one(uint64_t **up, uint64_t **down, float upper, float lower,
                                       float v, size_t index) {
    **up = **down = entry(float_bits(v), index);
    *up += !(v <= upper);
    *down += !(v >= lower);
}

static void collect_ends_plain(collection *up, collection *down, const float *v, size_t from,
                               size_t count) {
    const float upper = upper_limit(up->limit), lower = lower_limit(down->limit);
    for (size_t i = 0; i < count; i++)
        collect_ends_of_one(&up->end, &down->end, upper, lower, v[i], from + i);
}

#ifdef SL_AVX2
SL_AVX2 static inline uint32_t outside(const float *v, __m256 upper, __m256 lower) {
    const __m256 x = _mm256_loadu_ps(v);
    return lanes(
        _mm256_or_ps(_mm256_cmp_ps(x, upper, _CMP_NLE_UQ), _mm256_cmp_ps(x, lower, _CMP_NGE_UQ)));
}

SL_AVX2 static void collect_ends_avx2(collection *up, collection *down, const float *v, size_t from,
                                      size_t count) {
    const float upper = upper_limit(up->limit), lower = lower_limit(down->limit);
    const __m256 uppers = _mm256_set1_ps(upper), lowers = _mm256_set1_ps(lower);
    const size_t whole = count / 32 * 32;
    uint64_t *up_end = up->end, *down_end = down->end;
    hits h;
    for (size_t i = 0; i < whole; i += 32)
        h.words[i / 32] = outside(v + i, uppers, lowers) | outside(v + i + 8, uppers, lowers) << 8 |
                          outside(v + i + 16, uppers, lowers) << 16 |
                          outside(v + i + 24, uppers, lowers) << 24;
    list_places(&h, whole);
    for (size_t i = 0; i < h.count; i++)
        collect_ends_of_one(&up_end, &down_end, upper, lower, v[h.places[i]], from + h.places[i]);
    up->end = up_end;
    down->end = down_end;
    collect_ends_plain(up, down, v + whole, from + whole, count - whole);
}
#endif

/* ---- a vector ---- */

/* One collection by magnitude, or two at the ends. */
static void collect_block(collection *c, size_t collections, const float *v, size_t from,
                          size_t count) {
#ifdef SL_AVX2
    if (sl_has_avx2()) {
        if (collections == 1)
            collect_avx2(c, v, from, count);
        else
            collect_ends_avx2(c, c + 1, v, from, count);
        return;
    }
#endif
    if (collections == 1)
        collect_plain(c, v, from, count);
    else
        collect_ends_plain(c, c + 1, v, from, count);
}

static void collect_range(collection *c, size_t collections, sl_encoder *e, const sl_source *source,
                          size_t from, size_t end) {
    for (; from < end; from += SL_BLOCK) {
        const size_t count = end - from < SL_BLOCK ? end - from : SL_BLOCK;
        for (size_t i = 0; i < collections; i++)
            if (count_of(&c[i]) + count > c[i].capacity)
                cut(&c[i]);
        collect_block(c, collections, sl_encoder_read(e, source, from, count), from, count);
    }
}

static void collect(collection *c, size_t collections, sl_encoder *e, const sl_source *source) {
    collect_range(c, collections, e, source, 0, e->codec->dimension);
}

/* Limits that, by a sample, a little more than k elements exceed: runs from blocks spread over the
 * vector, each from another place of its block, so that the columns of a matrix are met alike. The
 * sample lies where the collections will. */
static void guess_limits(collection *c, size_t collections, sl_encoder *e,
                         const sl_source *source) {
    const size_t dimension = e->codec->dimension, blocks = dimension / SL_BLOCK;
    size_t runs = blocks / SAMPLE_EVERY;
    if (blocks < SAMPLE_BLOCKS_MIN)
        return;
    runs = runs > SAMPLE_RUNS_MAX ? SAMPLE_RUNS_MAX : runs;
    for (size_t i = 0; i < collections; i++)
        runs = runs > c[i].capacity / SAMPLE_RUN ? c[i].capacity / SAMPLE_RUN : runs;
    for (size_t r = 0; r < runs; r++) {
        const float *block = sl_encoder_read(e, source, r * blocks / runs * SL_BLOCK, SL_BLOCK);
        collect_block(c, collections, block + r * 7 % (SL_BLOCK / SAMPLE_RUN) * SAMPLE_RUN, 0,
                      SAMPLE_RUN);
    }
    for (size_t i = 0; i < collections; i++) {
        size_t count = count_of(&c[i]), equal;
        const double expected = (double)c[i].k / (double)dimension * (double)count;
        const size_t rank = (size_t)(expected + 4 * sqrt(expected) + 4);
        if (rank < count)
            c[i].limit = (int64_t)select_of(&c[i], rank, &equal) - 1;
        c[i].end = c[i].entries;
    }
}

static void find(collection *c, size_t collections, sl_encoder *e, const sl_source *source) {
    bool too_few = false;
    guess_limits(c, collections, e, source);
    collect(c, collections, e, source);
    for (size_t i = 0; i < collections; i++)
        too_few = too_few || count_of(&c[i]) < c[i].k;
    for (size_t i = 0; too_few && i < collections; i++) {
        c[i].end = c[i].entries;
        c[i].limit = NO_LIMIT;
    }
    if (too_few)
        collect(c, collections, e, source);
    for (size_t i = 0; i < collections; i++)
        cut(&c[i]);
}

FOR_EACH_CPU(int, all_finite, (const uint64_t *entries, size_t k), (entries, k)) {
    uint32_t largest = 0;
    for (size_t i = 0; i < k; i++) {
        const uint32_t m = sl_entry_value(entries[i]) & FLOAT_MAGNITUDE;
        largest = m > largest ? m : largest;
    }
    return largest < FLOAT_INFINITY;
}

int sl_largest_magnitudes(sl_encoder *e, const sl_source *source, size_t k, uint64_t *entries) {
    collection c = collection_of(entries, k, e->codec->dimension, BY_MAGNITUDE);
    find(&c, 1, e, source);
    return all_finite(entries, k) ? 0 : SL_EDIVERGED;
}

int sl_largest_ends(sl_encoder *e, const sl_source *source, size_t above, uint64_t *upper,
                    size_t below, uint64_t *lower, double sums[2]) {
    const size_t dimension = e->codec->dimension;
    collection ends[2] = {collection_of(upper, above, dimension, UPWARDS),
                          collection_of(lower, below, dimension, DOWNWARDS)};
    find(ends, 2, e, source);
    for (size_t i = 0; i < 2; i++)
        sums[i] = ends[i].sum; /* of floats: finite, if they all are */
    return isfinite(sums[0]) && isfinite(sums[1]) ? 0 : SL_EDIVERGED;
}

int sl_largest_from(sl_encoder *e, const sl_source *source, size_t from, size_t count, float least,
                    uint64_t *entries, size_t *found) {
    collection c = collection_of(entries, 0, count, BY_MAGNITUDE);
    c.capacity = count;
    c.limit = (int64_t)float_bits(least) - 1;
    collect_range(&c, 1, e, source, from, from + count);
    *found = count_of(&c);
    return all_finite(entries, *found) ? 0 : SL_EDIVERGED;
}
