/* top_k.c - top-k: the k entries of largest magnitude of the whole vector, as they are; of equal
 * magnitudes the lower index.
 *
 * Contraction: E||C(v) - v||^2 <= (1 - k/d) ||v||^2 (Stich, Cordonnier, Jaggi: "Sparsified SGD with
 * Memory", NeurIPS 2018). A message has one of two forms, the one with fewer bits; k and d are
 * known to both sides, so that no count is sent:
 *   indices  k values of 32 bits, then k indices of ceil(log2 d) bits, increasing, packed from the
 *            low bit on. A part is a range of
 *            entries.
 *   bitmap   the values of a range of elements, then one bit for each element of the range. A part
 *            is a range of elements; how many
 *            values it has is told by its length, and by its bits.
 *
 * The vector is read once, however it is distributed: what is at least as large as a limit is
 * collected; the limit is guessed from a sample, so that a little more than k entries pass, and
 * whenever the collection is full it is cut to its k largest, the least of which is the limit from
 * then on. (Only where fewer than k passed, the guess having been too high, everything is read
 * again without one.) Magnitudes are compared as integers: the bits of a float without its sign are
 * in the order of its magnitude, and NaN and infinity, above all else, are always among what was
 * collected.
 */
#include <math.h>

#include "compress/entries.h"

#ifdef SL_AVX2
#include <immintrin.h>
#endif

enum {
    COLLECT_MORE = 4096, /* entries beyond 1.5 k that a collection holds; at least SL_BLOCK */
    SAMPLE_RUN = 64,     /* consecutive elements of a sample */
    SAMPLE_RUNS_MAX = 1024,
    SAMPLE_BLOCKS_MIN = 64, /* shorter vectors are not worth a sample */
    SAMPLE_EVERY = 8,       /* at most one block of so many is looked into */
    NO_LIMIT = -1
};

/* ---- what is promised ---- */

static unsigned index_width(size_t dimension) {
    unsigned width = 0;
    while (width < 64 && (UINT64_C(1) << width) < dimension)
        width++;
    return width;
}

static uint64_t bits_as_indices(size_t k, size_t dimension) {
    return (uint64_t)k * (32 + index_width(dimension));
}

static uint64_t bits_as_bitmap(size_t k, size_t dimension) {
    return dimension + UINT64_C(32) * k;
}

static double bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension) {
    (void)self;
    size_t k = sl_entries_kept(config, dimension);
    return fmin((double)bits_as_indices(k, dimension), (double)bits_as_bitmap(k, dimension));
}

static sl_quality quality(const sl_compressor_config *config, size_t dimension) {
    size_t k = sl_entries_kept(config, dimension);
    return (sl_quality){.unbiased = k == dimension,
                        .omega = k == dimension ? 0 : INFINITY,
                        .is_contractive = true,
                        .delta = (double)k / (double)dimension,
                        .takes_largest = true};
}

/* ---- layout ---- */

/* Entries of a part: a multiple of 8, so that indices end on a byte in all parts but the last. */
static void lay_out_indices(sl_codec *c, size_t part_bytes) {
    unsigned width = index_width(c->dimension);
    c->sparse = true;
    c->part_elements = part_bytes * 8 / (32 + width) / 8 * 8;
    if (c->part_elements > c->k)
        c->part_elements = c->k;
    c->part_bytes_max = c->part_elements * sizeof(float) + (c->part_elements * width + 7) / 8;
    c->parts = (uint32_t)((c->k - 1) / c->part_elements + 1);
}

/* Elements of a part: any number of them may be among the k. */
static void lay_out_bitmap(sl_codec *c, size_t part_bytes) {
    size_t all_chosen = part_bytes * 8 / 33,
           bits_only =
               part_bytes > c->k * sizeof(float) ? (part_bytes - c->k * sizeof(float)) * 8 : 0;
    size_t elements = all_chosen > bits_only ? all_chosen : bits_only;
    size_t unit = elements >= SL_BLOCK ? SL_BLOCK
                                       : SL_WORD; /* 4096 bytes do not hold a block with its bits */
    c->part_elements = elements < c->dimension ? elements / unit * unit : c->dimension;
    c->part_bytes_max = (c->part_elements < c->k ? c->part_elements : c->k) * sizeof(float) +
                        (c->part_elements + 7) / 8;
    c->parts = (uint32_t)((c->dimension - 1) / c->part_elements + 1);
}

static void lay_out(sl_codec *c, size_t part_bytes) {
    c->k = sl_entries_kept(&c->config, c->dimension);
    if (bits_as_indices(c->k, c->dimension) <= bits_as_bitmap(c->k, c->dimension))
        lay_out_indices(c, part_bytes);
    else
        lay_out_bitmap(c, part_bytes);
}

static void describe(const sl_codec *c, sl_coding *out) {
    out->form = CODING_TOP_K;
    out->index_width = index_width(c->dimension);
    out->room = out->room_last = c->k;
}

/* ---- the k largest of a collection ---- */

/* An entry is the bits of its value above its index. */
static uint64_t entry(uint32_t value, size_t index) {
    return (uint64_t)value << 32 | index;
}

static uint32_t value_of(uint64_t e) {
    return (uint32_t)(e >> 32);
}

static uint32_t index_of(uint64_t e) {
    return (uint32_t)e;
}

static uint32_t magnitude_of(uint64_t e) {
    return value_of(e) & FLOAT_MAGNITUDE;
}

/* One digit of `width` bits, at bit `shift`, of the k-th largest magnitude among those that agree
 * with `prefix` above the digit. On return *k counts within the digit's class. */
FOR_EACH_CPU(uint32_t, select_digit,
             (const uint64_t *entries, size_t count, uint32_t prefix, unsigned shift,
              unsigned width, size_t *k),
             (entries, count, prefix, shift, width, k)) {
    uint32_t classes[2048] = {0};
    for (size_t i = 0; i < count; i++) {
        uint32_t m = magnitude_of(entries[i]);
        classes[m >> shift & ((1u << width) - 1)] += m >> shift >> width == prefix;
    }
    uint32_t digit = (1u << width) - 1;
    for (; classes[digit] < *k; digit--)
        *k -= classes[digit];
    return prefix << width | digit;
}

/* The k-th largest magnitude; *equal: how many entries of just that magnitude are among the k. 1 <=
 * k <= count. */
static uint32_t select_magnitude(const uint64_t *entries, size_t count, size_t k, size_t *equal) {
    uint32_t prefix = select_digit(entries, count, 0, 20, 11, &k);
    prefix = select_digit(entries, count, prefix, 10, 10, &k);
    prefix = select_digit(entries, count, prefix, 0, 10, &k);
    *equal = k;
    return prefix;
}

/* Leaves the k largest, in order. Returns the least magnitude among them, which later entries have
 * to exceed. */
FOR_EACH_CPU(int32_t, cut, (uint64_t * entries, size_t count, size_t k), (entries, count, k)) {
    size_t equal, kept = 0;
    uint32_t least = select_magnitude(entries, count, k, &equal);
    for (size_t i = 0; i < count; i++) {
        uint32_t m = magnitude_of(entries[i]);
        size_t is_equal = m == least && equal > 0;
        entries[kept] = entries[i];
        equal -= is_equal;
        kept += (m > least) | is_equal;
    }
    return (int32_t)least;
}

/* ---- collecting ---- */

/* Appends the elements of a block whose magnitude exceeds the limit; returns the end. */
typedef uint64_t *collector(const float *v, size_t from, size_t count, int32_t limit,
                            uint64_t *end);

static inline uint64_t *collect_one(const float *v, size_t index, int32_t limit, uint64_t *end) {
    uint32_t value;
    memcpy(&value, v, sizeof value);
    *end = entry(value, index);
    return end + ((int32_t)(value & FLOAT_MAGNITUDE) > limit);
}

static uint64_t *collect_plain(const float *v, size_t from, size_t count, int32_t limit,
                               uint64_t *end) {
    for (size_t i = 0; i < count; i++)
        end = collect_one(v + i, from + i, limit, end);
    return end;
}

#ifdef SL_AVX2
SL_AVX2 static inline __m256i exceeding(const float *v, __m256i limit) {
    __m256i magnitude = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)v),
                                         _mm256_set1_epi32((int)FLOAT_MAGNITUDE));
    return _mm256_cmpgt_epi32(magnitude, limit);
}

SL_AVX2 static inline uint32_t lanes(__m256i mask) {
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(mask));
}

SL_AVX2 static uint64_t *collect_avx2(const float *v, size_t from, size_t count, int32_t limit,
                                      uint64_t *end) {
    const __m256i limits = _mm256_set1_epi32(limit);
    size_t i = 0;
    for (; i + 32 <= count; i += 32) {
        __m256i a = exceeding(v + i, limits), b = exceeding(v + i + 8, limits);
        __m256i c = exceeding(v + i + 16, limits), d = exceeding(v + i + 24, limits);
        __m256i any = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
        if (_mm256_testz_si256(any, any))
            continue;
        for (uint32_t hits = lanes(a) | lanes(b) << 8 | lanes(c) << 16 | lanes(d) << 24; hits != 0;
             hits &= hits - 1) {
            size_t at = i + (size_t)__builtin_ctz(hits);
            uint32_t value;
            memcpy(&value, v + at, sizeof value);
            *end++ = entry(value, from + at);
        }
    }
    for (; i < count; i++)
        end = collect_one(v + i, from + i, limit, end);
    return end;
}
#endif

static collector *fastest_collector(void) {
#ifdef SL_AVX2
    if (sl_has_avx2())
        return collect_avx2;
#endif
    return collect_plain;
}

/* Entries that a collection holds; one more may be written behind them. */
static size_t capacity_of(const sl_codec *c) {
    size_t capacity = c->k + c->k / 2 + COLLECT_MORE;
    return capacity < c->dimension ? capacity : c->dimension;
}

static size_t encoder_bytes(const sl_codec *c) {
    return (capacity_of(c) + 1) * sizeof(uint64_t);
}

/* Returns how many were collected: the k largest are among them if they are k or more. */
static size_t collect(sl_encoder *e, const sl_source *source, int32_t limit) {
    size_t dimension = e->codec->dimension, capacity = capacity_of(e->codec), k = e->codec->k;
    uint64_t *entries = e->memory, *end = entries;
    collector *append = fastest_collector();
    for (size_t from = 0; from < dimension; from += SL_BLOCK) {
        size_t count = dimension - from < SL_BLOCK ? dimension - from : SL_BLOCK;
        if ((size_t)(end - entries) + count > capacity) {
            limit = cut(entries, (size_t)(end - entries), k);
            end = entries + k;
        }
        end = append(sl_encoder_read(e, source, from, count), from, count, limit, end);
    }
    return (size_t)(end - entries);
}

/* A limit that, by a sample, a little more than k elements exceed: runs from blocks spread over the
 * vector, each from another place of its block, so that the columns of a matrix are met alike. The
 * sample lies where the collection will. */
static int32_t guess(sl_encoder *e, const sl_source *source) {
    const sl_codec *c = e->codec;
    size_t blocks = c->dimension / SL_BLOCK, runs = blocks / SAMPLE_EVERY,
           runs_held = capacity_of(c) / SAMPLE_RUN;
    if (blocks < SAMPLE_BLOCKS_MIN)
        return NO_LIMIT;
    runs = runs > SAMPLE_RUNS_MAX ? SAMPLE_RUNS_MAX : runs;
    runs = runs > runs_held ? runs_held : runs;
    uint64_t *sample = e->memory, *end = sample;
    for (size_t r = 0; r < runs; r++) {
        const float *block = sl_encoder_read(e, source, r * blocks / runs * SL_BLOCK, SL_BLOCK);
        end = collect_plain(block + r * 7 % (SL_BLOCK / SAMPLE_RUN) * SAMPLE_RUN, 0, SAMPLE_RUN,
                            NO_LIMIT, end);
    }
    size_t count = (size_t)(end - sample), equal;
    double expected = (double)c->k / (double)c->dimension * (double)count;
    size_t rank = (size_t)(expected + 4 * sqrt(expected) + 4);
    return rank < count ? (int32_t)select_magnitude(sample, count, rank, &equal) - 1 : NO_LIMIT;
}

static int begin(sl_encoder *e, const sl_source *source) {
    size_t k = e->codec->k;
    uint64_t *entries = e->memory;
    size_t count = collect(e, source, guess(e, source));
    if (count < k)
        count = collect(e, source, NO_LIMIT);
    cut(entries, count, k);
    uint32_t largest = 0;
    for (size_t i = 0; i < k; i++)
        largest = magnitude_of(entries[i]) > largest ? magnitude_of(entries[i]) : largest;
    return largest < FLOAT_INFINITY ? 0 : SL_EDIVERGED;
}

/* ---- payloads ---- */

static void put_values(const uint64_t *entries, size_t count, uint8_t *out) {
    for (size_t i = 0; i < count; i++) {
        uint32_t value = value_of(entries[i]);
        memcpy(out + i * sizeof value, &value, sizeof value);
    }
}

/* Returns the bytes written. */
static size_t put_indices(const uint64_t *entries, size_t count, unsigned width, uint8_t *out) {
    uint64_t waiting = 0;
    unsigned filled = 0;
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        waiting |= (uint64_t)index_of(entries[i]) << filled;
        for (filled += width; filled >= 32; filled -= 32, at += 4, waiting >>= 32)
            memcpy(out + at, &waiting, 4);
    }
    memcpy(out + at, &waiting, (filled + 7) / 8);
    return at + (filled + 7) / 8;
}

/* The lowest of `count` entries whose index is not below `index`. */
static size_t first_from(const uint64_t *entries, size_t count, size_t index) {
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (index_of(entries[middle]) < index)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

static size_t encode_bitmap(const sl_encoder *e, uint32_t part, uint8_t *out) {
    const uint64_t *entries = e->memory;
    size_t from, elements;
    sl_codec_part_range(e->codec, part, &from, &elements);
    size_t first = first_from(entries, e->codec->k, from),
           count = first_from(entries, e->codec->k, from + elements) - first;
    uint8_t *bitmap = out + count * sizeof(float);
    put_values(entries + first, count, out);
    memset(bitmap, 0, (elements + 7) / 8);
    for (size_t i = first; i < first + count; i++) {
        size_t place = index_of(entries[i]) - from;
        bitmap[place / 8] = (uint8_t)(bitmap[place / 8] | 1u << place % 8);
    }
    return count * sizeof(float) + (elements + 7) / 8;
}

/* Entries [*first, *first + returned) are the part's. */
static size_t part_entries(const sl_codec *c, uint32_t part, size_t *first) {
    *first = part * c->part_elements;
    return c->k - *first < c->part_elements ? c->k - *first : c->part_elements;
}

static int encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                  sl_payload *out) {
    (void)source; /* begin has collected everything */
    const uint64_t *entries = e->memory;
    size_t bytes;
    if (e->codec->sparse) {
        size_t first, count = part_entries(e->codec, part, &first);
        put_values(entries + first, count, buffer);
        bytes = count * sizeof(float);
        bytes += put_indices(entries + first, count, index_width(e->codec->dimension),
                             (uint8_t *)buffer + bytes);
    } else {
        bytes = encode_bitmap(e, part, buffer);
    }
    *out = (sl_payload){buffer, bytes};
    return 0;
}

/* Up to 8 bytes from p on, of which `left` may be read. */
static uint64_t load(const uint8_t *p, size_t left) {
    uint64_t word = 0;
    memcpy(&word, p, left < sizeof word ? left : sizeof word);
    return word;
}

typedef struct index_reader {
    const uint8_t *packed;
    size_t bytes;
    unsigned width;
} index_reader;

static inline uint32_t get_index(const index_reader *r, size_t i) {
    size_t bit = i * r->width, byte = bit / 8;
    uint64_t word;
    if (byte + sizeof word <= r->bytes)
        memcpy(&word, r->packed + byte, sizeof word);
    else
        word = load(r->packed + byte, r->bytes - byte);
    return (uint32_t)(word >> bit % 8 & ((UINT64_C(1) << r->width) - 1));
}

static index_reader read_indices(const sl_codec *c, sl_payload payload, size_t count) {
    return (index_reader){(const uint8_t *)payload.data + count * sizeof(float),
                          payload.bytes - count * sizeof(float), index_width(c->dimension)};
}

/* Indices increase, and leave room for the entries of the parts before and behind. */
FOR_EACH_CPU(int, check_indices, (const sl_codec *c, uint32_t part, sl_payload payload),
             (c, part, payload)) {
    size_t first, count = part_entries(c, part, &first),
                  bits_used = count * index_width(c->dimension);
    if (payload.bytes != count * sizeof(float) + (bits_used + 7) / 8)
        return SL_EPROTO;
    index_reader r = read_indices(c, payload, count);
    size_t lowest = first, out_of_order = 0;
    for (size_t i = 0; i < count; i++) {
        size_t index = get_index(&r, i);
        out_of_order |= index < lowest;
        lowest = index + 1;
    }
    bool unused_set = bits_used % 8 != 0 && r.packed[r.bytes - 1] >> bits_used % 8 != 0;
    bool room = lowest + (c->k - first - count) <= c->dimension;
    return !out_of_order && room && !unused_set && sl_entries_finite(payload.data, count)
               ? 0
               : SL_EPROTO;
}

FOR_EACH_CPU(int, check_bitmap, (const sl_codec *c, uint32_t part, sl_payload payload),
             (c, part, payload)) {
    size_t from, elements;
    sl_codec_part_range(c, part, &from, &elements);
    size_t bitmap_bytes = (elements + 7) / 8;
    if (payload.bytes < bitmap_bytes || (payload.bytes - bitmap_bytes) % sizeof(float) != 0)
        return SL_EPROTO;
    size_t count = (payload.bytes - bitmap_bytes) / sizeof(float), set = 0;
    const uint8_t *bitmap = (const uint8_t *)payload.data + count * sizeof(float);
    for (size_t at = 0; at < bitmap_bytes; at += 8)
        set += (size_t)__builtin_popcountll(load(bitmap + at, bitmap_bytes - at));
    bool unused_set = elements % 8 != 0 && bitmap[bitmap_bytes - 1] >> elements % 8 != 0;
    bool possible = count <= c->k && c->k - count <= c->dimension - elements;
    return set == count && possible && !unused_set && sl_entries_finite(payload.data, count)
               ? 0
               : SL_EPROTO;
}

static int check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    return d->codec->sparse ? check_indices(d->codec, part, payload)
                            : check_bitmap(d->codec, part, payload);
}

FOR_EACH_CPU(void, add_indices,
             (const sl_codec *c, uint32_t part, sl_payload payload, float weight, float *acc),
             (c, part, payload, weight, acc)) {
    size_t first, count = part_entries(c, part, &first);
    index_reader r = read_indices(c, payload, count);
    const float *values = payload.data;
    for (size_t at = 0; at < count; at += SL_BATCH) {
        size_t n = count - at < SL_BATCH ? count - at : SL_BATCH;
        uint32_t indices[SL_BATCH];
        for (size_t i = 0; i < n; i++) {
            indices[i] = get_index(&r, at + i);
            __builtin_prefetch(acc + indices[i], 1);
        }
        for (size_t i = 0; i < n; i++)
            acc[indices[i]] += weight * values[at + i];
    }
}

FOR_EACH_CPU(void, add_bitmap,
             (const sl_codec *c, uint32_t part, sl_payload payload, float weight, float *acc),
             (c, part, payload, weight, acc)) {
    size_t from, elements;
    sl_codec_part_range(c, part, &from, &elements);
    size_t bitmap_bytes = (elements + 7) / 8;
    const uint8_t *bitmap = (const uint8_t *)payload.data + (payload.bytes - bitmap_bytes);
    const float *value = payload.data;
    for (size_t at = 0; at < bitmap_bytes; at += 8)
        for (uint64_t word = load(bitmap + at, bitmap_bytes - at); word != 0; word &= word - 1)
            acc[from + at * 8 + (size_t)__builtin_ctzll(word)] += weight * *value++;
}

static void add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    if (d->codec->sparse)
        add_indices(d->codec, part, payload, weight, acc);
    else
        add_bitmap(d->codec, part, payload, weight, acc);
}

const codec_ops sl_top_k_codec = {.keys = "k fraction",
                                  .quality = quality,
                                  .bits = bits,
                                  .check = sl_entries_check,
                                  .lay_out = lay_out,
                                  .describe = describe,
                                  .encoder_bytes = encoder_bytes,
                                  .begin = begin,
                                  .encode = encode,
                                  .check_part = check_part,
                                  .add = add};
