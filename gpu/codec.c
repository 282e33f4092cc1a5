/* codec.c - encoders on a device: which kernels run in which order; see compress/coding.h.
 *
 * An encoder encodes the whole message in a few launches. Then background copies bring it to the
 * host, some parts at a time, so that the first parts are sent while later ones are copied.
 * Layout, arithmetic and random numbers are the CPU's, and so are the bytes. */
#include "gpu/codec.h"

#include <stdlib.h>

#include "gpu/device.h"
#include "gpu/memory.h"
#include "gpu/subset.h"

enum {
    COPY_BYTES = 4 << 20, /* bytes of one background copy, or one part */
    SPLITS_MAX = 1 << 17, /* threads that find the largest element of one bucket */
    ELEMENTS_OF_SPLIT = 64,
    COUNTING_BLOCKS = 1024 /* of a histogram, at most */
};

typedef struct encoder {
    sl_coding c;
    memory_list memory;
    part_layout layout; /* the parts on the device; plain: the vector itself */
    float *vector;      /* (dimension) copy of what a source delivers; NULL until one does */
    /* dense */
    size_t buckets;
    float *scales;
    rounding *roundings;
    size_t tiles, folds; /* of a bucket's sums; 0: no sums */
    double *tile_sums, *bucket_folds;
    uint32_t *marks; /* (1 + 2 buckets): refusals, then each bucket's largest magnitude, then its
                        count of negatives */
    /* sparse */
    bitmap map;
    uint64_t *equal;                      /* (words) */
    uint32_t *classes, *indices, *counts; /* counts: (parts) number of values */
    double *entry_lanes;                  /* (tiles of k, SUM_LANES) */
    float *entry_mean;
    selection *chosen;
    size_t share_blocks;
    double *share_sums;
    share_state *shares;
    subset subset;
    /* of the copies out */
    uint8_t *host;                    /* or device memory that others read, too */
    bool is_shared;                   /* it is that */
    uint32_t *report;                 /* on the host: marks[0], then counts */
    sl_vec_event *reported, **copied; /* (copies) reported: of a message that stays on the device */
    size_t copies, parts_of_copy;
    size_t passed; /* of the copies of this message, so many are known to be complete */
} encoder;

part_layout layout_of(const sl_coding *c) {
    return (part_layout){
        .stride = c->stride, .dimension = c->dimension, .part_elements = c->part_elements};
}

bucket_layout buckets_of(const sl_coding *c) {
    if (c->scale_floats == 0)
        return (bucket_layout){.bucket = SIZE_MAX};
    return (bucket_layout){.bucket = c->bucket,
                           .buckets = ceiling(c->dimension, c->bucket),
                           .of_part =
                               c->part_elements % c->bucket == 0 ? c->part_elements / c->bucket : 0,
                           .floats = c->scale_floats};
}

/* Do a block's elements make up whole buckets of levels, of which one launch finds the scales? */
static bool in_blocks(const sl_coding *c) {
    return c->scale_floats == 1 && is_scaled_rounding(c->code) &&
           (c->scale == SCALE_MAX || c->scale == SCALE_L2) && c->bucket >= BUCKET_LEAST &&
           BLOCK_ELEMENTS % c->bucket == 0 && c->part_elements % c->bucket == 0;
}

static void take_dense(encoder *e) {
    const sl_coding *c = &e->c;
    if (in_blocks(c))
        return;
    e->buckets = buckets_of(c).buckets;
    e->scales = memory_list_take(&e->memory, e->buckets * c->scale_floats * sizeof *e->scales);
    e->roundings = memory_list_take(&e->memory, e->buckets * sizeof *e->roundings);
    if (c->scale == SCALE_MAX)
        return;
    const size_t sums = (c->scale == SCALE_SIDES ? 2 : 1) * e->buckets;
    e->tiles = sum_tiles(c->bucket);
    e->folds = sum_folds(e->tiles);
    e->tile_sums = memory_list_take(&e->memory, sums * e->tiles * sizeof *e->tile_sums);
    e->bucket_folds = memory_list_take(&e->memory, sums * e->folds * sizeof *e->bucket_folds);
}

static bool is_listed(const sl_coding *c) {
    return c->form == CODING_MARKED || c->form == CODING_DRAWN;
}

static void take_shares(encoder *e) {
    e->share_blocks = ceiling(e->c.dimension, SHARE_BLOCK);
    e->share_sums = memory_list_take(&e->memory, e->share_blocks * sizeof *e->share_sums);
    e->shares = memory_list_take(&e->memory, sizeof *e->shares);
}

static void take_sparse(encoder *e) {
    const sl_coding *c = &e->c;
    if (c->form == CODING_RANDOM_K) {
        e->subset = subset_take(&e->memory, c);
        return;
    }
    e->map = bitmap_take(&e->memory, c->dimension);
    if (c->form == CODING_SIGNED) {
        e->entry_lanes =
            memory_list_take(&e->memory, sum_tiles(c->k) * SUM_LANES * sizeof *e->entry_lanes);
        e->entry_mean = memory_list_take(&e->memory, sizeof *e->entry_mean);
    }
    if (c->form != CODING_DROPPING && c->form != CODING_DRAWN)
        e->equal = memory_list_take(&e->memory, e->map.words * sizeof *e->equal);
    if (c->form == CODING_TOP_K || c->form == CODING_SIGNED) {
        e->classes = memory_list_take(&e->memory, (DIGIT_CLASSES + 1) * sizeof *e->classes);
        e->indices = c->by_entries ? memory_list_take(&e->memory, c->k * sizeof *e->indices) : NULL;
    }
    e->chosen = memory_list_take(&e->memory, sizeof *e->chosen);
    e->counts = memory_list_take(&e->memory, c->parts * sizeof *e->counts);
    if (is_listed(c))
        e->indices = memory_list_take(&e->memory, c->dimension * sizeof *e->indices);
    if (c->form == CODING_DRAWN)
        take_shares(e);
}

static bool take_way_out(encoder *e) {
    e->parts_of_copy = e->layout.stride < COPY_BYTES ? COPY_BYTES / e->layout.stride : 1;
    e->copies = ceiling(e->c.parts, e->parts_of_copy);
    e->report = device_allocate_host((1 + (size_t)e->c.parts) * sizeof *e->report);
    e->reported = device_event_open();
    e->copied = calloc(e->copies, sizeof(sl_vec_event *));
    bool complete = e->report != NULL && e->reported != NULL && e->copied != NULL;
    for (size_t i = 0; i < e->copies && complete; i++)
        complete = (e->copied[i] = device_event_open()) != NULL;
    return complete;
}

static void encoder_close(void *encoder_) {
    encoder *e = encoder_;
    if (e == NULL)
        return;
    for (size_t i = 0; e->copied != NULL && i < e->copies; i++)
        device_event_close(e->copied[i]);
    device_event_close(e->reported);
    device_release_host(e->report);
    memory_list_give_back(&e->memory);
    free(e->copied);
    free(e);
}

static void *encoder_open(const sl_coding *coding) {
    encoder *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->c = *coding;
    const bool plain = coding->form == CODING_PLAIN;
    e->layout = layout_of(coding);
    if (!plain)
        e->layout.parts = memory_list_take(&e->memory, coding->parts * e->layout.stride);
    if (coding->form == CODING_DENSE)
        take_dense(e);
    else if (!plain)
        take_sparse(e);
    e->marks = memory_list_take(&e->memory, (1 + 2 * e->buckets) * sizeof *e->marks);
    if (e->memory.failed || !take_way_out(e)) {
        encoder_close(e);
        return NULL;
    }
    return e;
}

static void find_largest_of_buckets(encoder *e, const float *v, uint32_t *largest) {
    const sl_coding *c = &e->c;
    const size_t wanted = ceiling(c->bucket, ELEMENTS_OF_SPLIT),
                 splits = wanted < SPLITS_MAX ? wanted : SPLITS_MAX;
    launch_find_largest(&(find_largest_args){v, largest, c->dimension, c->bucket, splits},
                        e->buckets * splits);
}

static void sum_buckets(encoder *e, const float *v, uint32_t *negatives) {
    const sl_coding *c = &e->c;
    const size_t sums = (c->scale == SCALE_SIDES ? 2 : 1) * e->buckets;
    launch_bucket_tiles(&(bucket_tiles_args){v, c->scale, c->dimension, c->bucket, e->buckets,
                                             e->tiles, e->tile_sums, negatives},
                        (uint32_t)ceiling(e->buckets * e->tiles, BLOCK_TILES));
    launch_fold_tiles(&(fold_tiles_args){e->tile_sums, e->bucket_folds, e->tiles, e->folds},
                      sums * e->folds);
}

static void find_scales(encoder *e, const float *v) {
    const sl_coding *c = &e->c;
    uint32_t *largest = e->marks + 1, *negatives = largest + e->buckets;
    if (c->scale == SCALE_MAX || c->scale == SCALE_CLIPPED)
        find_largest_of_buckets(e, v, largest);
    if (c->scale != SCALE_MAX)
        sum_buckets(e, v, negatives);
    launch_bucket_scale(&(bucket_scale_args){c->scale, c->code, c->levels, c->clip, largest,
                                             negatives, e->bucket_folds, c->dimension, c->bucket,
                                             e->buckets, e->folds, e->scales, e->roundings,
                                             e->marks},
                        e->buckets);
    const size_t most = c->scale_floats * (c->part_elements / c->bucket + 2);
    launch_place_scales(
        &(place_scales_args){e->layout, e->scales, c->bucket, most, c->scale_floats},
        c->parts * most);
}

static void encode_dense(encoder *e, const float *v, const sl_rng_key *key) {
    const sl_coding *c = &e->c;
    const uint32_t blocks = (uint32_t)ceiling(c->part_elements, BLOCK_ELEMENTS);
    const encode_eight_args codes = {
        e->layout,    v,    c->code,  c->width, c->magnitude_limit,  c->tau, buckets_of(c),
        e->roundings, *key, e->marks, blocks,   device_is_aligned(v)};
    if (in_blocks(c)) {
        launch_encode_buckets(&(encode_buckets_args){codes, c->scale, c->levels},
                              c->parts * blocks);
        return;
    }
    if (c->scale_floats > 0)
        find_scales(e, v);
    launch_encode_eight(&codes, c->parts * blocks);
}

static uint32_t counting_blocks(size_t dimension) {
    return (uint32_t)smaller(ceiling(dimension, FOUR * BLOCK_THREADS), COUNTING_BLOCKS);
}

/* Selects by three digits of the magnitude: 11, 10 and 10 bits. The first pass reads all of v. The
 * others read only elements that share the digits chosen so far. */
static void mark_largest(encoder *e, const float *v) {
    static const struct { uint32_t shift, width; } digits[] = {{20, 11}, {10, 10}, {0, 10}};
    const int aligned = device_is_aligned(v);
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
        launch_count_digits(&(count_digits_args){v, e->c.dimension, i > 0 ? e->equal : NULL,
                                                 digits[i].shift, digits[i].width, e->classes,
                                                 e->chosen, i == 0 ? (uint32_t)e->c.k : 0, aligned},
                            counting_blocks(e->c.dimension));
        if (i == 0)
            launch_mark_top(&(mark_top_args){v, e->c.dimension, e->chosen, digits[0].shift,
                                             e->map.bits, e->equal, aligned},
                            (uint32_t)ceiling(e->map.words, MARKED_WORDS));
        else /* elements with the prefix */
            launch_keep_digit(&(keep_digit_args){v, e->chosen, digits[i].shift, e->map.bits,
                                                 e->equal, e->map.ranks},
                              e->map.words);
    }
    bitmap_scan(&(const bitmap *){&e->map}, 1);
}

/* Writes values; part p has entries [p part_elements, ...). */
static void gather_entries(encoder *e, const float *v, const uint32_t *indices) {
    launch_gather_entry(&(gather_entry_args){e->layout, v, indices, e->marks}, e->c.k);
}

/* Behind the mean, or behind values. */
static void place_packed_indices(encoder *e, const float *mean) {
    const sl_coding *c = &e->c;
    part_layout entries = e->layout;
    entries.dimension = c->k;
    const size_t groups = ceiling(c->part_elements, INDICES);
    launch_place_indices(&(place_indices_args){entries, e->indices, mean, groups, c->index_width},
                         c->parts * groups);
}

/* A part is a range of elements: how many of them it has. */
static void count_ranges(encoder *e) {
    const sl_coding *c = &e->c;
    launch_count_parts(&(count_parts_args){e->map.bits, e->map.ranks, c->dimension,
                                           c->part_elements, c->room, c->room_last, c->parts,
                                           e->counts},
                       c->parts);
}

/* Writes values. */
static void gather_ranges(encoder *e, const float *v) {
    count_ranges(e);
    launch_gather_word(
        &(gather_word_args){e->layout, v, e->map.bits, e->map.ranks, e->counts, e->marks},
        e->map.words);
}

static void encode_top_k(encoder *e, const float *v) {
    const settle_ties_args ties = {e->map.bits, e->equal, e->chosen, e->map.ranks};
    mark_largest(e, v);
    if (e->c.by_entries) {
        launch_take_top(&(take_top_args){ties, e->layout, v, e->indices, e->marks}, e->map.words);
        place_packed_indices(e, NULL);
    } else {
        launch_settle_ties(&ties, e->map.words);
        gather_ranges(e, v);
        launch_place_bitmap(&(place_bitmap_args){e->layout, e->map.bits, e->counts}, e->map.words);
    }
}

static void encode_signed(encoder *e, const float *v) {
    const size_t k = e->c.k;
    mark_largest(e, v);
    launch_settle_ties(&(settle_ties_args){e->map.bits, e->equal, e->chosen, e->map.ranks},
                       e->map.words);
    launch_list_word(&(list_word_args){e->map.bits, e->map.ranks, e->indices}, e->map.words);
    launch_entry_lanes(&(entry_lanes_args){v, e->indices, k, e->entry_lanes},
                       sum_tiles(k) * SUM_LANES);
    launch_entry_mean(&(entry_mean_args){e->entry_lanes, k, e->entry_mean, e->marks}, 1);
    launch_sign_entry(&(sign_entry_args){v, e->indices}, k);
    place_packed_indices(e, e->entry_mean);
}

static void encode_dropping(encoder *e, const float *v, const sl_rng_key *key) {
    launch_mark_kept(&(mark_kept_args){.bits = {e->map.bits},
                                       .counts = {e->map.ranks},
                                       .keys = {*key},
                                       .draws = e->c.draws,
                                       .count = e->c.dimension,
                                       .words = e->map.words},
                     e->map.words);
    bitmap_scan(&(const bitmap *){&e->map}, 1);
    gather_ranges(e, v);
}

/* Those from tau on. */
static void mark_large(encoder *e, const float *v) {
    launch_begin_mark(&(begin_mark_args){e->chosen, e->c.tau}, 1);
    launch_mark_top(&(mark_top_args){v, e->c.dimension, e->chosen, 0, e->map.bits, e->equal,
                                     device_is_aligned(v)},
                    (uint32_t)ceiling(e->map.words, MARKED_WORDS));
}

static void mark_random(encoder *e, const float *v, const sl_rng_key *key) {
    const size_t d = e->c.dimension, blocks = e->share_blocks;
    launch_begin_shares(&(begin_shares_args){e->shares, e->c.k == d}, 1);
    for (int pass = 0; pass <= SHARE_PASSES; pass++) {
        launch_share_sums(&(share_sums_args){v, d, e->shares, e->share_sums, blocks},
                          (uint32_t)ceiling(blocks, BLOCK_TILES));
        launch_share_more(&(share_more_args){e->shares, e->share_sums, blocks, e->c.k, e->marks},
                          1);
    }
    launch_mark_drawn(&(mark_drawn_args){v, d, e->shares, *key, e->map.bits, device_is_aligned(v)},
                      (uint32_t)ceiling(e->map.words, MARKED_WORDS));
}

/* Parts of elements that are marked. */
static void encode_listed(encoder *e, const float *v, const sl_rng_key *key) {
    const sl_coding *c = &e->c;
    const bool drawn = c->form == CODING_DRAWN;
    const size_t groups = ceiling(c->part_elements, INDICES);
    if (drawn)
        mark_random(e, v, key);
    else
        mark_large(e, v);
    launch_settle_subset(&(settle_subset_args){e->map.bits, e->map.ranks, c->dimension, 0},
                         e->map.words);
    bitmap_scan(&(const bitmap *){&e->map}, 1);
    count_ranges(e);
    launch_list_marks(&(list_marks_args){e->layout, v, e->map.bits, e->map.ranks,
                                         drawn ? e->shares : NULL, e->indices, e->marks},
                      e->map.words);
    launch_place_marks(&(place_marks_args){e->layout, e->indices, e->map.ranks, e->counts, groups,
                                           c->index_width, c->width_last, drawn},
                       c->parts * groups);
}

/* The vector in device memory. */
static const float *vector_of(encoder *e, const sl_source *source) {
    if (source->vector != NULL) {
        device_expect(source->vector);
        return source->vector;
    }
    if (e->vector == NULL)
        e->vector = memory_list_take(&e->memory, e->c.dimension * sizeof *e->vector);
    if (e->vector != NULL)
        source->read(source->context, 0, e->c.dimension, e->vector);
    return e->vector;
}

/* To where messages leave from. On the device one copy is as fast as several. */
static size_t copies_of(const encoder *e) {
    return e->is_shared ? 1 : e->copies;
}

/* The one with this part. */
static size_t copy_of(const encoder *e, uint32_t part) {
    return e->is_shared ? 0 : part / e->parts_of_copy;
}

/* After that, this copy is there, all before it, and the report. */
static sl_vec_event *event_of(const encoder *e, size_t copy) {
    return e->host != NULL ? e->copied[copy] : e->reported;
}

static void begin_copies(encoder *e) {
    const size_t stride = e->layout.stride;
    device_order_out();
    device_begin_copy_out(e->report, e->marks, sizeof *e->marks);
    if (e->counts != NULL)
        device_begin_copy_out(e->report + 1, e->counts, e->c.parts * sizeof *e->counts);
    if (e->host == NULL)
        device_event_record_out(e->reported);
    for (size_t i = 0; e->host != NULL && i < copies_of(e); i++) {
        const size_t first = i * e->parts_of_copy, all = e->c.parts - first,
                     parts = e->is_shared ? all : smaller(e->parts_of_copy, all);
        size_t bytes = parts * stride;
        if (e->c.form == CODING_PLAIN)
            bytes = smaller(bytes, e->c.dimension * sizeof(float) - first * stride);
        (e->is_shared ? device_begin_copy : device_begin_copy_out)(
            e->host + first * stride, e->layout.parts + first * stride, bytes);
        device_event_record_out(e->copied[i]);
    }
}

static void begin(void *encoder_, const sl_rng_key *key, const sl_source *source, void *host) {
    encoder *e = encoder_;
    const float *v = vector_of(e, source);
    /* the last message's report and parts must be copied before they are overwritten */
    device_event_follow(event_of(e, copies_of(e) - 1));
    e->host = host;
    e->is_shared = host != NULL && memory_is_shared(host);
    e->passed = 0;
    if (v == NULL) /* out of memory: reported with the first part */
        return;
    device_clear(e->marks, (1 + 2 * e->buckets) * sizeof *e->marks);
    switch (e->c.form) {
    case CODING_PLAIN:
        e->layout.parts = (uint8_t *)(uintptr_t)v;
        break;
    case CODING_DENSE:
        encode_dense(e, v, key);
        break;
    case CODING_TOP_K:
        encode_top_k(e, v);
        break;
    case CODING_SIGNED:
        encode_signed(e, v);
        break;
    case CODING_RANDOM_K:
        subset_draw(&e->subset, &e->c, key);
        gather_entries(e, v, e->subset.indices);
        break;
    case CODING_DROPPING:
        encode_dropping(e, v, key);
        break;
    case CODING_MARKED:
    case CODING_DRAWN:
        encode_listed(e, v, key);
        break;
    }
    begin_copies(e);
}

static size_t part_bytes(const encoder *e, uint32_t part) {
    const sl_coding *c = &e->c;
    const size_t from = part * c->part_elements, end = c->by_entries ? c->k : c->dimension,
                 n = smaller(c->part_elements, end - from);
    switch (c->form) {
    case CODING_PLAIN:
    case CODING_RANDOM_K:
        return n * sizeof(float);
    case CODING_DENSE:
        return (c->scale_floats > 0
                    ? c->scale_floats * buckets_touched(c->bucket, from, n) * sizeof(float)
                    : 0) +
               (n * c->width + 7) / 8;
    case CODING_TOP_K:
        return c->by_entries ? n * sizeof(float) + (n * c->index_width + 7) / 8
                             : e->report[1 + part] * sizeof(float) + (n + 7) / 8;
    case CODING_SIGNED:
        return sizeof(float) + (n * c->index_width + 7) / 8;
    case CODING_DROPPING:
        return e->report[1 + part] * sizeof(float);
    case CODING_MARKED:
        return (e->report[1 + part] * c->index_width + 7) / 8;
    case CODING_DRAWN: {
        const size_t width = part + 1 == c->parts ? c->width_last : c->index_width;
        return e->report[1 + part] * sizeof(float) + (e->report[1 + part] * width + 7) / 8;
    }
    }
    return 0;
}

/* Of all parts, after the first one. */
static void sizes(void *encoder_, uint32_t *out) {
    const encoder *e = encoder_;
    for (uint32_t i = 0; i < e->c.parts; i++)
        out[i] = (uint32_t)part_bytes(e, i);
}

static bool ready(void *encoder_, uint32_t part, int notify_fd) {
    encoder *e = encoder_;
    const size_t copy = copy_of(e, part);
    if (e->memory.failed || copy < e->passed)
        return true;
    if (!device_event_passed(event_of(e, copy), notify_fd))
        return false;
    e->passed = copy + 1;
    return true;
}

/* Waits for the copy that holds the part. */
static void await_copy(encoder *e, uint32_t part) {
    const size_t copy = copy_of(e, part);
    if (copy < e->passed)
        return;
    device_event_wait(event_of(e, copy));
    e->passed = copy + 1;
}

static int part(void *encoder_, uint32_t part, sl_payload *out, sl_payload *local) {
    encoder *e = encoder_;
    char text[DEVICE_TEXT_MAX];
    if (e->memory.failed)
        return SL_ENOMEM;
    await_copy(e, part);
    if (part == 0 && device_status(text) != 0)
        return SL_EDEVICE;
    if (part == 0 && e->report[0] > 0)
        return SL_EDIVERGED;
    const size_t bytes = part_bytes(e, part), at = part * e->layout.stride;
    *local = (sl_payload){e->layout.parts + at, bytes};
    *out = e->host != NULL ? (sl_payload){e->host + at, bytes} : *local;
    return 0;
}

static unsigned reads(const sl_coding *c) {
    switch (c->form) {
    case CODING_PLAIN:
    case CODING_DENSE:
        break;
    case CODING_TOP_K:
    case CODING_SIGNED:
    case CODING_DRAWN:
        return 2;
    case CODING_MARKED:
        return 1;
    case CODING_RANDOM_K:
    case CODING_DROPPING:
        return 0;
    }
    if (c->scale_floats == 0 || in_blocks(c))
        return 1;
    return c->scale == SCALE_CLIPPED ? 3 : 2;
}

const sl_coder *codec_table(void) {
    static const sl_coder table = {.encoder_open = encoder_open,
                                   .encoder_close = encoder_close,
                                   .begin = begin,
                                   .ready = ready,
                                   .part = part,
                                   .sizes = sizes,
                                   .decoder_open = decoder_open,
                                   .decoder_close = decoder_close,
                                   .add = decoder_add,
                                   .reads = reads};
    return &table;
}
