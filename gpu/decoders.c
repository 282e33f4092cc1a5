/* decoders.c - messages on a device, added to a vector: parts of several senders in one launch,
 * with the sums of the CPU, which adds part after part and sender after sender. */
#include <stdlib.h>

#include "gpu/codec.h"
#include "gpu/device.h"
#include "gpu/subset.h"

typedef struct decoder {
    sl_coding c;
    memory_list memory;
    bitmap map;    /* of PARTS_TOGETHER parts */
    subset subset; /* random-k */
} decoder;

void decoder_close(void *decoder_) {
    decoder *d = decoder_;
    if (d == NULL)
        return;
    memory_list_give_back(&d->memory);
    free(d);
}

static bool counts_vary(const sl_coding *c) {
    return c->form == CODING_DROPPING || (c->form == CODING_TOP_K && !c->by_entries);
}

void *decoder_open(const sl_coding *coding) {
    decoder *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    d->c = *coding;
    if (coding->form == CODING_RANDOM_K)
        d->subset = subset_take(&d->memory, coding);
    if (counts_vary(coding))
        d->map = bitmap_take(&d->memory,
                             smaller(PARTS_TOGETHER * coding->part_elements, coding->dimension));
    if (d->memory.failed) {
        decoder_close(d);
        return NULL;
    }
    return d;
}

/* The elements that a run covers. */
typedef struct extent {
    size_t from, end;
} extent;

static extent extent_of(const sl_coding *c, const coding_run *run) {
    return (extent){run->first * c->part_elements,
                    smaller((run->first + run->count) * c->part_elements, c->dimension)};
}

/* Parts of a plain message lie without gaps. */
static void add_plain(const sl_coding *c, const coding_run *runs, size_t count, float *acc) {
    const extent e = extent_of(c, runs);
    combine_four_args a = {.out = acc + e.from,
                           .k = (uint32_t)count,
                           .adds = 1,
                           .count = e.end - e.from,
                           .aligned = device_is_aligned(acc + e.from)};
    for (size_t j = 0; j < count; j++) {
        a.in[j] = runs[j].payload.data;
        a.weights[j] = runs[j].weight;
        a.aligned = a.aligned && device_is_aligned(a.in[j]);
    }
    launch_combine_four(&a, ceiling(a.count, FOUR));
}

static void add_dense(const sl_coding *c, const coding_run *runs, size_t count, float *acc) {
    const extent e = extent_of(c, runs);
    add_eight_args a = {.k = (uint32_t)count,
                        .acc = acc,
                        .code = c->code,
                        .width = c->width,
                        .levels = c->levels,
                        .tau = c->tau,
                        .scales = buckets_of(c),
                        .layout = layout_of(c),
                        .first = runs->first,
                        .from = e.from,
                        .end = e.end,
                        .aligned = device_is_aligned(acc + e.from)};
    for (size_t j = 0; j < count; j++) {
        a.parts[j] = runs[j].payload.data;
        a.weights[j] = runs[j].weight;
    }
    launch_add_eight(&a, ceiling(e.end - e.from, EIGHT));
}

/* Parts of entries. */
static void add_listed(const sl_coding *c, const coding_run *runs, size_t count, float *acc) {
    add_entries_args a = {.k = (uint32_t)count,
                          .first = runs->first,
                          .width = c->index_width,
                          .signs = c->form == CODING_SIGNED,
                          .part_entries = c->part_elements,
                          .stride = c->stride,
                          .entries = c->k,
                          .from = runs->first * c->part_elements,
                          .acc = acc};
    a.count = smaller(runs->count * c->part_elements, c->k - a.from);
    for (size_t j = 0; j < count; j++) {
        decoder *d = runs[j].decoder;
        a.parts[j] = runs[j].payload.data;
        a.weights[j] = runs[j].weight * c->value_factor;
        if (c->form == CODING_RANDOM_K) {
            subset_draw(&d->subset, c, &runs[j].key);
            a.indices[j] = d->subset.indices;
        }
    }
    launch_add_entries(&a, count * a.count);
}

static uint32_t part_size(const coding_run *run, uint32_t part) {
    return run->sizes != NULL ? run->sizes[part] : (uint32_t)run->payload.bytes;
}

/* Which elements of these parts are there: sent as bitmaps, or drawn. */
static void load_maps(const sl_coding *c, const coding_run *runs, size_t count, uint32_t skip,
                      size_t elements, const bitmap *const *maps) {
    load_bitmap_args loaded = {.stride = c->stride,
                               .part_elements = c->part_elements,
                               .elements = elements,
                               .words = maps[0]->words};
    mark_kept_args drawn = {.draws = c->draws,
                            .from = (runs->first + skip) * c->part_elements,
                            .count = elements,
                            .words = maps[0]->words};
    const uint32_t parts = (uint32_t)ceiling(elements, c->part_elements);
    for (size_t j = 0; j < count; j++) {
        loaded.parts[j] = (const uint8_t *)runs[j].payload.data + skip * c->stride;
        for (uint32_t i = 0; i < parts && c->form == CODING_TOP_K; i++)
            loaded.bytes[j][i] = part_size(&runs[j], skip + i);
        loaded.bits[j] = drawn.bits[j] = maps[j]->bits;
        loaded.counts[j] = drawn.counts[j] = maps[j]->ranks;
        drawn.keys[j] = runs[j].key;
    }
    if (c->form == CODING_TOP_K)
        launch_load_bitmap(&loaded, count * loaded.words);
    else
        launch_mark_kept(&drawn, count * drawn.words);
    bitmap_scan(maps, count);
}

/* Of each run the parts behind `skip`, at most PARTS_TOGETHER of them. */
static void add_some(const sl_coding *c, const coding_run *runs, size_t count, uint32_t skip,
                     float *acc) {
    const size_t from = (runs->first + skip) * c->part_elements,
                 parts = smaller(runs->count - skip, PARTS_TOGETHER),
                 elements = smaller(parts * c->part_elements, c->dimension - from);
    add_words_args a = {.k = (uint32_t)count,
                        .stride = c->stride,
                        .part_elements = c->part_elements,
                        .room = c->room,
                        .room_last = c->room_last,
                        .last = c->parts - 1 - (runs->first + skip),
                        .acc = acc + from};
    bitmap maps[INPUTS];
    const bitmap *all[INPUTS];
    for (size_t j = 0; j < count; j++) {
        maps[j] = ((const decoder *)runs[j].decoder)->map;
        maps[j].words = ceiling(elements, WORD_BITS);
        all[j] = &maps[j];
        a.parts[j] = (const uint8_t *)runs[j].payload.data + skip * c->stride;
        a.bits[j] = maps[j].bits;
        a.ranks[j] = maps[j].ranks;
        a.weights[j] = runs[j].weight * c->value_factor;
    }
    load_maps(c, runs, count, skip, elements, all);
    launch_add_words(&a, maps[0].words);
}

static bool is_listed(const sl_coding *c) {
    return c->form == CODING_MARKED || c->form == CODING_DRAWN;
}

/* Of each run the parts behind `skip`, at most PARTS_TOGETHER of them. */
static void add_listed_parts(const sl_coding *c, const coding_run *runs, size_t count,
                             uint32_t skip, float *acc) {
    const size_t from = (runs->first + skip) * c->part_elements,
                 parts = smaller(runs->count - skip, PARTS_TOGETHER),
                 elements = smaller(parts * c->part_elements, c->dimension - from);
    add_marks_args a = {.k = (uint32_t)count,
                        .stride = c->stride,
                        .part_elements = c->part_elements,
                        .last = c->parts - 1 - (runs->first + skip),
                        .width = c->index_width,
                        .width_last = c->width_last,
                        .values = c->form == CODING_DRAWN,
                        .tau = c->tau,
                        .acc = acc + from};
    for (size_t j = 0; j < count; j++) {
        a.parts[j] = (const uint8_t *)runs[j].payload.data + skip * c->stride;
        a.weights[j] = runs[j].weight * c->value_factor;
        for (uint32_t i = 0; i < parts; i++)
            a.bytes[j][i] = part_size(&runs[j], skip + i);
    }
    launch_add_marks(&a, ceiling(elements, WORD_BITS));
}

/* Parts of elements, of which each holds some. */
static void add_ranges(const sl_coding *c, const coding_run *runs, size_t count, float *acc) {
    for (uint32_t skip = 0; skip < runs->count; skip += PARTS_TOGETHER)
        if (is_listed(c))
            add_listed_parts(c, runs, count, skip, acc);
        else
            add_some(c, runs, count, skip, acc);
}

/* Is the run's bitmap, which launches write, one of those before? */
static bool is_again(const sl_coding *c, const coding_run *runs, size_t at) {
    size_t j = counts_vary(c) ? 0 : at;
    while (runs[j].decoder != runs[at].decoder)
        j++;
    return j < at;
}

/* How many runs, of all of the same parts, one launch takes: their sums are one pass over acc. */
static size_t joined(const sl_coding *c, const coding_run *runs, size_t count) {
    size_t k = 1;
    while (k < count && k < INPUTS && runs[k].first == runs->first &&
           runs[k].count == runs->count && !is_again(c, runs, k))
        k++;
    return k;
}

void decoder_add(const coding_run *runs, size_t count, float *acc) {
    const sl_coding *c = &((const decoder *)runs->decoder)->c;
    device_expect(acc);
    for (size_t j = 0; j < count; j++)
        device_expect(runs[j].payload.data);
    for (size_t done = 0, k; done < count; done += k) {
        k = joined(c, runs + done, count - done);
        if (c->form == CODING_PLAIN)
            add_plain(c, runs + done, k, acc);
        else if (c->form == CODING_DENSE)
            add_dense(c, runs + done, k, acc);
        else if (c->by_entries)
            add_listed(c, runs + done, k, acc);
        else
            add_ranges(c, runs + done, k, acc);
    }
}
