/* kernels_entries.h - top-k, random-k and random dropping, decoded: parts of several messages at
 * once; see kernels.h. */
#ifndef SL_GPU_KERNELS_ENTRIES_H
#define SL_GPU_KERNELS_ENTRIES_H

#include "gpu/kernels_sparse.h"

/* ---- parts that are ranges of entries: of all messages, entries [from, from + count) ---- */

/* An element may be an entry of several messages, in different parts. The CPU adds part after part,
 * and of each the messages in turn, and sums have its bits: the thread of the entry that comes
 * first in this order adds all that there are of its element. */
typedef struct add_entries_args {
    const uint8_t *parts[INPUTS]; /* each message's part `first` */
    const uint32_t
        *indices[INPUTS]; /* (entries of a message) NULL: packed behind a part's values */
    float weights[INPUTS];
    uint32_t k; /* messages */
    uint32_t first, width;
    int signs; /* a part is a mean, then indices with signs below them */
    size_t part_entries, stride;
    size_t entries; /* of a message */
    size_t from, count;
    float *acc;
} add_entries_args;

/* Where the part of an entry begins. */
SL_SHARED const uint8_t *part_of_entry(const add_entries_args *a, uint32_t m, size_t part) {
    return a->parts[m] + (part - a->first) * a->stride;
}

/* `width` bits from this one on. */
SL_SHARED uint64_t packed_at(const uint8_t *packed, size_t bit, uint32_t width) {
    uint64_t word = 0;
    packed += bit / 8;
    for (uint32_t b = 0; b < (bit % 8 + width + 7) / 8; b++)
        word |= (uint64_t)packed[b] << 8 * b;
    return word >> bit % 8 & (((uint64_t)1 << width) - 1);
}

/* As it is packed behind what stands in front. */
SL_SHARED uint64_t packed_entry(const add_entries_args *a, uint32_t m, size_t entry) {
    const size_t part = quotient(entry, a->part_entries), start = part * a->part_entries,
                 floats = a->signs ? 1 : smaller(a->part_entries, a->entries - start);
    return packed_at(part_of_entry(a, m, part) + floats * sizeof(float), (entry - start) * a->width,
                     a->width);
}

SL_SHARED float entry_value(const add_entries_args *a, uint32_t m, size_t entry) {
    const size_t part = quotient(entry, a->part_entries);
    const float *values = (const float *)(const void *)part_of_entry(a, m, part);
    if (a->signs)
        return packed_entry(a, m, entry) & 1 ? -values[0] : values[0];
    return values[entry - part * a->part_entries];
}

SL_SHARED size_t entry_element(const add_entries_args *a, uint32_t m, size_t entry) {
    if (a->indices[m] != NULL)
        return a->indices[m][entry];
    return packed_entry(a, m, entry) >> (a->signs ? 1 : 0);
}

/* The message's entry of the element, or SIZE_MAX: entries rise with their elements. */
SL_SHARED size_t find_entry(const add_entries_args *a, uint32_t m, size_t element) {
    const size_t end = a->from + a->count;
    size_t low = a->from, high = end;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (entry_element(a, m, middle) < element)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && entry_element(a, m, low) == element ? low : SIZE_MAX;
}

/* When an entry is added: after those of lower numbers. */
SL_SHARED size_t entry_turn(const add_entries_args *a, uint32_t m, size_t entry) {
    return quotient(entry, a->part_entries) * INPUTS + m;
}

/* The lowest turn above `after` among the element's entries, or SIZE_MAX. */
SL_SHARED size_t next_turn(const add_entries_args *a, size_t element, size_t after) {
    size_t next = SIZE_MAX;
    for (uint32_t m = 0; m < a->k; m++) {
        const size_t entry = find_entry(a, m, element);
        const size_t turn = entry != SIZE_MAX ? entry_turn(a, m, entry) : SIZE_MAX;
        next = turn > after ? smaller(next, turn) : next;
    }
    return next;
}

/* Does an entry of the element have a turn below this one? */
SL_SHARED int is_before(const add_entries_args *a, size_t element, uint32_t mine, size_t turn) {
    for (uint32_t m = 0; m < a->k; m++) {
        const size_t entry = m != mine ? find_entry(a, m, element) : SIZE_MAX;
        if (entry != SIZE_MAX && entry_turn(a, m, entry) < turn)
            return 1;
    }
    return 0;
}

SL_SHARED void add_entries(const add_entries_args *a, size_t i) {
    uint32_t m = (uint32_t)quotient(i, a->count);
    size_t entry = a->from + i - m * a->count, turn = entry_turn(a, m, entry);
    const size_t element = entry_element(a, m, entry);
    if (a->k > 1 && is_before(a, element, m, turn))
        return;
    float sum = a->acc[element] + a->weights[m] * entry_value(a, m, entry);
    while (a->k > 1 && (turn = next_turn(a, element, turn)) != SIZE_MAX) {
        m = (uint32_t)(turn % INPUTS);
        sum += a->weights[m] * entry_value(a, m, find_entry(a, m, element));
    }
    a->acc[element] = sum;
}

/* ---- parts that are ranges of elements: words of 64 elements each ---- */

enum { PARTS_TOGETHER = 32 };

/* Thread i reads word i % words, counted from the first part on, of message i / words: bitmaps
 * stand behind the values of each part, and may be unaligned. */
typedef struct load_bitmap_args {
    const uint8_t *parts[INPUTS]; /* each message's first part */
    uint32_t bytes[INPUTS][PARTS_TOGETHER];
    size_t stride, part_elements, elements, words;
    uint64_t *bits[INPUTS];   /* (words) */
    uint64_t *counts[INPUTS]; /* (words) */
} load_bitmap_args;

SL_SHARED void load_bitmap(const load_bitmap_args *a, size_t i) {
    const size_t m = quotient(i, a->words), w = i - m * a->words,
                 part = quotient(WORD_BITS * w, a->part_elements), start = part * a->part_elements,
                 end = smaller(start + a->part_elements, a->elements);
    const uint8_t *bitmap = a->parts[m] + part * a->stride + a->bytes[m][part] -
                            (end - start + 7) / 8 + (WORD_BITS * w - start) / 8;
    const size_t bytes = (smaller(end - WORD_BITS * w, WORD_BITS) + 7) / 8;
    uint64_t word = 0;
    for (size_t b = 0; b < bytes; b++)
        word |= (uint64_t)bitmap[b] << 8 * b;
    a->bits[m][w] = word;
    a->counts[m][w] = BITS_SET(word);
}

/* Thread i adds word i of each message in turn. A part, and the last one, has room for so many
 * values. */
typedef struct add_words_args {
    const uint8_t *parts[INPUTS]; /* each message's first part */
    const uint64_t *bits[INPUTS];
    const uint64_t *ranks[INPUTS];
    float weights[INPUTS];
    uint32_t k; /* messages */
    size_t stride, part_elements, room, room_last;
    size_t last; /* the message's last part, counted from the first one here */
    float *acc;  /* at the first part's first element */
} add_words_args;

SL_SHARED void add_words(const add_words_args *a, size_t i) {
    const size_t part = quotient(WORD_BITS * i, a->part_elements),
                 first = part * a->part_elements / WORD_BITS,
                 room = part == a->last ? a->room_last : a->room;
    for (uint32_t m = 0; m < a->k; m++) {
        const float *values = (const float *)(const void *)(a->parts[m] + part * a->stride);
        size_t rank = a->ranks[m][i] - a->ranks[m][first];
        for (uint64_t word = a->bits[m][i]; word != 0 && rank < room; word &= word - 1, rank++)
            a->acc[WORD_BITS * i + LOWEST_BIT(word)] += a->weights[m] * values[rank];
    }
}

#endif
