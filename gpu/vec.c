/* vec.c - vector operations on a device; see starling/vec.h. Results have the CPU's bits. */
#include "gpu/vec.h"

#include <stdio.h>

#include "gpu/codec.h"
#include "gpu/device.h"
#include "gpu/layers.h"
#include "gpu/memory.h"

/* The open device; a process has one. */
static sl_vec_ops operations;
static char name[32];

static float *allocate(size_t count) {
    return count < SIZE_MAX / sizeof(float) ? memory_take(count > 0 ? count * sizeof(float) : 1)
                                            : NULL;
}

static void release(float *v) {
    memory_give_back(v);
}

static size_t groups(size_t count) {
    return (count + FOUR - 1) / FOUR;
}

static void combine(float *out, const float *const *in, const float *weights, size_t k,
                    size_t count) {
    device_expect(out);
    for (size_t j = 0; j < k; j++)
        device_expect(in[j]);
    for (size_t done = 0; done < k && count > 0; done += INPUTS) {
        combine_four_args a = {.out = out,
                               .k = (uint32_t)smaller(k - done, INPUTS),
                               .adds = done > 0,
                               .aligned = device_is_aligned(out),
                               .count = count};
        for (uint32_t j = 0; j < a.k; j++) {
            a.in[j] = in[done + j];
            a.weights[j] = weights[done + j];
            a.aligned = a.aligned && device_is_aligned(a.in[j]);
        }
        launch_combine_four(&a, groups(count));
    }
}

static void sgd_step(float *x, const float *x_decay, const float *g, float *m, const sl_sgd *sgd,
                     size_t count) {
    if (count == 0 || (m == NULL && sgd->learning_rate == 0))
        return;
    const float *const all[] = {x, x_decay, g, m != NULL ? m : x};
    int aligned = 1;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        device_expect(all[i]);
        aligned = aligned && device_is_aligned(all[i]);
    }
    launch_step_four(&(step_four_args){x, x_decay, g, m, *sgd, count, aligned}, groups(count));
}

static void adam_direction(float *g, const float *x, float *m, float *v, const sl_adam *adam,
                           size_t count) {
    const float *const all[] = {g, x, m, v};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        device_expect(all[i]);
    if (count > 0)
        launch_adam_one(&(adam_one_args){g, x, m, v, *adam}, count);
}

static void fill(float *v, float value, size_t count) {
    device_expect(v);
    if (count > 0)
        launch_fill_four(&(fill_four_args){v, value, count, device_is_aligned(v)}, groups(count));
}

static void keep_where(float *v, const float *kept, size_t count) {
    device_expect(v);
    device_expect(kept);
    if (count > 0)
        launch_keep_one(&(keep_one_args){v, kept}, count);
}

/* Of sums that are computed together. */
typedef struct sum_shape {
    size_t count, tiles, folds; /* sums; of each: tiles and folds */
} sum_shape;

static sum_shape shape_of(size_t count, size_t each) {
    const size_t tiles = sum_tiles(each);
    return (sum_shape){each > 0 ? ceiling(count, each) : 1, tiles, sum_folds(tiles)};
}

/* All tiles, then their folds, and room for one sum. */
static size_t bytes_of(const sum_shape *s) {
    return (s->count * (s->tiles + s->folds) + 1) * sizeof(double);
}

static void launch_sums(const sum_shape *s, double *scratch, double *out, const float *x,
                        const float *y, size_t count, size_t each) {
    double *folded = scratch + s->count * s->tiles;
    device_expect(x);
    device_expect(y != NULL ? y : x);
    const size_t tiles = s->count * s->tiles;
    launch_tile_sums(&(tile_sums_args){x, y, scratch, count, each, s->tiles, tiles},
                     (uint32_t)ceiling(tiles, BLOCK_TILES));
    launch_fold_tiles(&(fold_tiles_args){scratch, folded, s->tiles, s->folds}, s->count * s->folds);
    launch_sum_of_folds(&(sum_of_folds_args){folded, out, s->folds}, s->count);
}

/* Each sum may end in a tile that it does not fill, and has no more folds than tiles. */
static size_t distance_floats(size_t count, size_t sums) {
    const sum_shape most = {1, 2 * sum_tiles(count) + sums, 2 * sum_tiles(count) + sums};
    return bytes_of(&most) / sizeof(float);
}

static void begin_distances(double *out, float *work, const float *x, const float *y, size_t count,
                            size_t each) {
    const sum_shape shape = shape_of(count, each);
    device_expect(out);
    device_expect(work);
    launch_sums(&shape, (double *)(void *)work, out, x, y, count, each);
}

/* NaN: out of memory. */
static double distance_squared(const float *x, const float *y, size_t count) {
    const sum_shape shape = shape_of(count, count);
    double sum, *scratch = memory_scratch(bytes_of(&shape));
    if (scratch == NULL)
        return NAN;
    double *total = scratch + shape.tiles + shape.folds;
    launch_sums(&shape, scratch, total, x, y, count, count);
    device_copy_out(&sum, total, sizeof sum);
    return sum;
}

static double norm2_squared(const float *x, size_t count) {
    return distance_squared(x, NULL, count);
}

int vec_fail(sl_error *error, const char *text) {
    if (error != NULL) {
        error->code = SL_EDEVICE;
        snprintf(error->text, sizeof error->text, "%s: %s", name, text);
    }
    return SL_EDEVICE;
}

static int fence(sl_error *error) {
    char text[DEVICE_TEXT_MAX];
    return device_fence(text) != 0 ? vec_fail(error, text) : 0;
}

static int status(sl_error *error) {
    char text[DEVICE_TEXT_MAX];
    return device_status(text) != 0 ? vec_fail(error, text) : 0;
}

static const sl_async_ops async = {
    .event_open = device_event_open,
    .event_close = device_event_close,
    .event_record = device_event_record,
    .event_follow = device_event_follow,
    .event_wait = device_event_wait,
    .event_passed = device_event_passed,
    .begin_copies_in = device_begin_copies_in,
    .begin_distances = begin_distances,
    .distance_floats = distance_floats,
    .status = status,
    .graph_begin = device_graph_begin,
    .graph_end = device_graph_end,
    .graph_run = device_graph_run,
    .graph_close = device_graph_close,
    .give_way = device_give_way,
};

static const sl_guest_ops guest = {
    .owns = device_guest_owns,
    .is_captured = device_guest_is_captured,
    .record = device_guest_record,
    .follow = device_guest_follow,
    .enter = device_guest_enter,
    .leave = device_guest_leave,
};

static const sl_share_ops share = {
    .open = memory_share_open,
    .map = memory_share_map,
    .close = memory_share_close,
};

const sl_vec_ops *vec_open(int index, size_t memory_limit, char *text) {
    static bool opened;
    memory_bound(memory_limit);
    if (operations.name != NULL)
        return &operations;
    device_properties properties;
    if (!device_describe(index, &properties, text))
        return NULL;
    opened = opened || device_open(index, text);
    if (!opened)
        return NULL;
    snprintf(name, sizeof name, "cuda:%d", index);
    operations = (sl_vec_ops){
        .name = name,
        .block = SIZE_MAX,
        .cuda_index = properties.emulated ? -1 : index,
        .allocate = allocate,
        .release = release,
        .memory = memory_describe,
        .allocate_host = device_allocate_host,
        .release_host = device_release_host,
        .copy_in = device_copy_in,
        .copy_in_later = device_copy_in_later,
        .copy_out = device_copy_out,
        .copy = device_copy,
        .combine = combine,
        .sgd_step = sgd_step,
        .adam_direction = adam_direction,
        .fill = fill,
        .keep_where = keep_where,
        .norm2_squared = norm2_squared,
        .distance_squared = distance_squared,
        .fence = fence,
        .async = &async,
        .guest = &guest,
        .share = &share,
        .coder = codec_table(),
        .layers = layers_backend(),
    };
    return &operations;
}
