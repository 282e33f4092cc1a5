/* layers_image.c - convolution, pooling and batch normalization on the device.
 *
 * Convolution is a matrix product: unfold makes each output's window a row, and y = windows W.
 * Backward, dW = windows^T d and d windows = d W^T; fold adds the latter up in d x. Windows are
 * many times larger than x. So they are made in pieces that stay in the GPU's second-level cache.
 * Where channels are few, y and d x need no windows (convolve).
 *
 * Each element of dW is a sum over all positions of all rows. Shapes alone say where it is cut, not
 * the cache: into groups of rows, and each group into parts, which are multiplied at once, so that
 * they fill the GPU though dW is small. Part p of all groups goes to the p-th of as many sums,
 * which are added up at the end. A piece of windows has some parts of one group. */
#include "gpu/layers.h"

enum {
    GROUP_MAX = 5 << 20, /* floats of a group's windows, unless one row has more */
    TILE = 64,           /* rows and columns of a product that one block of a GPU has */
    TILES_MAX = 128,     /* about as many as a GPU has processors */
    PART_MIN = 1024      /* positions of each part */
};

static sliding sliding_of(const sl_layer *l) {
    const bool whole = l->kind == SL_LAYER_AVERAGE_POOL && l->window == 0;
    return (sliding){.in_height = l->in.height,
                     .in_width = l->in.width,
                     .out_height = l->out.height,
                     .out_width = l->out.width,
                     .channels = l->in.channels,
                     .window_height = whole ? l->in.height : l->window,
                     .window_width = whole ? l->in.width : l->window,
                     .stride = whole ? 1 : l->stride,
                     .padding = l->padding};
}

/* ---- convolution ---- */

static size_t pixels_of(const sl_layer *l) {
    return (size_t)l->out.height * l->out.width;
}

static size_t depth_of(const sl_layer *l) {
    return (size_t)l->window * l->window * l->in.channels;
}

/* Floats of a piece. The cache may be two, each for half of the processors, and a half keeps what
 * they read. The windows take four fifths of a half: x and d are at hand, too, each a ninth of
 * windows of 3x3. */
static size_t piece_max(void) {
    return device_cache_bytes() * 2 / 5 / sizeof(float);
}

/* How many rows have so many floats of windows? At least one. */
static uint32_t rows_within(const sl_layer *l, uint32_t rows, size_t floats) {
    const size_t fit = floats / (pixels_of(l) * depth_of(l));
    return fit < 1 ? 1 : fit < rows ? (uint32_t)fit : rows;
}

/* How dW's sums are cut. */
typedef struct cut {
    uint32_t rows, parts; /* of a group */
    uint32_t together;    /* parts of a piece */
} cut;

static cut cut_of(const sl_layer *l, uint32_t rows) {
    const size_t tiles = ((depth_of(l) + TILE - 1) / TILE) * ((l->out.channels + TILE - 1) / TILE);
    cut c = {.rows = rows_within(l, rows, GROUP_MAX), .parts = 1};
    const size_t positions = c.rows * pixels_of(l);
    while (2 * c.parts * tiles <= TILES_MAX && 2 * (size_t)c.parts * PART_MIN <= positions)
        c.parts *= 2; /* a power of two, which divides most groups */
    const size_t fit = piece_max() / (positions / c.parts * depth_of(l));
    c.together = fit < 1 ? 1 : fit < c.parts ? (uint32_t)fit : c.parts;
    return c;
}

static size_t round_16(size_t floats) {
    return (floats + 15) / 16 * 16;
}

/* Floats of the largest piece of up to so many rows: a row or a part may be larger than the cache's
 * share. What is behind them is for dW's sums. */
static size_t windows_of(const sl_layer *l, uint32_t rows) {
    const cut c = cut_of(l, rows);
    const size_t part = larger(2 * PART_MIN, c.rows * pixels_of(l) / c.parts);
    return round_16(smaller(rows * pixels_of(l) * depth_of(l),
                            larger(piece_max(), larger(part, pixels_of(l)) * depth_of(l))));
}

static sl_layer_memory conv2d_memory(const sl_layer *l, uint32_t rows) {
    const size_t parts = cut_of(l, rows).parts * depth_of(l) * l->out.channels,
                 sums = sums_floats(slices_of(rows * pixels_of(l)), l->out.channels);
    return (sl_layer_memory){.scratch = larger(windows_of(l, rows) + parts, sums)};
}

/* Channels that one thread moves. Activations and their gradients are aligned to 64 bytes. */
static uint32_t span_of(const sl_layer *l) {
    return l->in.channels % FOUR == 0 ? (uint32_t)FOUR : 1;
}

/* Of `count` positions from `first` on. */
static void find_windows(const sl_layer_call *c, size_t first, size_t count) {
    const sl_layer *l = c->layer;
    launch_unfold(&(unfold_args){c->in, c->scratch, sliding_of(l), span_of(l), (uint32_t)first},
                  count * l->in.channels / span_of(l));
}

/* Are these so few channels that convolve has them? */
static bool is_narrow(const sl_layer_call *c, uint32_t channels) {
    return channels <= NARROW && channels % FOUR == 0 && device_is_aligned(c->w);
}

static size_t strips_of(sl_shape s, uint32_t length) {
    return (size_t)s.height * ((s.width + length - 1) / length) * (s.channels / FOUR);
}

static void multiply_windows(const sl_layer_call *c, uint32_t first, uint32_t rows) {
    const sl_layer *l = c->layer;
    const uint32_t depth = (uint32_t)depth_of(l), channels = l->out.channels;
    find_windows(c, first * pixels_of(l), rows * pixels_of(l));
    device_multiply(&(device_product){.a = {.at = c->scratch, .line = depth},
                                      .b = {.at = c->w, .line = channels},
                                      .c = c->out + first * sl_shape_size(l->out),
                                      .c_line = channels,
                                      .m = rows * (uint32_t)pixels_of(l),
                                      .n = channels,
                                      .k = depth,
                                      .count = 1,
                                      .scale = 1});
}

static void conv2d_forward(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    const uint32_t piece = rows_within(l, c->rows, piece_max()), channels = l->out.channels;
    if (is_narrow(c, channels))
        launch_convolve(
            &(convolve_args){c->in, c->w, c->out, sliding_of(l), channels, span_of(l), 0},
            c->rows * strips_of(l->out, STRIP));
    else
        for (uint32_t first = 0; first < c->rows; first += piece)
            multiply_windows(c, first, least(piece, c->rows - first));
    if (l->bias || l->relu)
        launch_finish_rows(&(finish_rows_args){.y = c->out,
                                               .bias = l->bias ? c->w + l->tensors[0] : NULL,
                                               .columns = channels,
                                               .relu = l->relu},
                           (size_t)c->rows * pixels_of(l) * channels);
}

/* Sets d to 0 where y <= 0 if there is a ReLU, and sums it for the bias. */
static void take_outputs(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    const size_t positions = c->rows * pixels_of(l), slices = slices_of(positions);
    double *sums = l->bias ? as_doubles(c->scratch) : NULL;
    launch_take_rows(&(take_rows_args){.d = c->d_out,
                                       .y = l->relu ? c->out : NULL,
                                       .sums = sums,
                                       .rows = (uint32_t)positions,
                                       .columns = l->out.channels},
                     slices * l->out.channels);
    if (l->bias)
        finish_sums(sums, slices, l->out.channels, NULL, c->g + l->tensors[0]);
}

/* `count` sums over `each` positions from `first` on. */
static void add_positions(const sl_layer_call *c, size_t first, size_t each, uint32_t count,
                          float *sums, bool add) {
    const uint32_t depth = (uint32_t)depth_of(c->layer), channels = c->layer->out.channels;
    find_windows(c, first, count * each);
    device_multiply(&(device_product){.a = {c->scratch, depth, each * depth, .turned = true},
                                      .b = {c->d_out + first * channels, channels, each * channels},
                                      .c = sums,
                                      .c_line = channels,
                                      .c_step = (size_t)depth * channels,
                                      .m = depth,
                                      .n = channels,
                                      .k = (uint32_t)each,
                                      .count = count,
                                      .scale = 1,
                                      .add = add});
}

/* Adds a group, so many positions from `first` on. What its parts leave goes to the first sum. */
static void add_group(const sl_layer_call *c, size_t first, size_t positions, float *sums) {
    const cut whole = cut_of(c->layer, c->rows);
    const size_t each = positions / whole.parts, rest = positions % whole.parts,
                 size = depth_of(c->layer) * c->layer->out.channels;
    for (uint32_t p = 0; p < whole.parts && each > 0; p += whole.together)
        add_positions(c, first + p * each, each, least(whole.together, whole.parts - p),
                      sums + p * size, first > 0);
    if (rest > 0)
        add_positions(c, first + positions - rest, rest, 1, sums, first > 0 || each > 0);
}

static void find_weights(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    const cut whole = cut_of(l, c->rows);
    const size_t size = depth_of(l) * l->out.channels;
    float *sums = whole.parts > 1 ? c->scratch + windows_of(l, c->rows) : c->g;
    for (uint32_t first = 0; first < c->rows; first += whole.rows)
        add_group(c, first * pixels_of(l), least(whole.rows, c->rows - first) * pixels_of(l), sums);
    if (whole.parts > 1)
        launch_add_products(&(add_products_args){sums, c->g, whole.parts, (uint32_t)size}, size);
}

/* d_in of rows [first, first + rows). */
static void give_windows(const sl_layer_call *c, uint32_t first, uint32_t rows) {
    const sl_layer *l = c->layer;
    const uint32_t depth = (uint32_t)depth_of(l), channels = l->out.channels;
    device_multiply(
        &(device_product){.a = {.at = c->d_out + first * sl_shape_size(l->out), .line = channels},
                          .b = {.at = c->w, .line = channels, .turned = true},
                          .c = c->scratch,
                          .c_line = depth,
                          .m = rows * (uint32_t)pixels_of(l),
                          .n = depth,
                          .k = channels,
                          .count = 1,
                          .scale = 1});
    launch_fold(&(fold_args){c->d_in + first * sl_shape_size(l->in), c->scratch, sliding_of(l),
                             span_of(l), c->add_in},
                rows * sl_shape_size(l->in) / span_of(l));
}

static void conv2d_backward(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    const uint32_t piece = rows_within(l, c->rows, piece_max()), channels = l->out.channels;
    if (l->bias || l->relu)
        take_outputs(c);
    find_weights(c);
    if (c->d_in != NULL && is_narrow(c, l->in.channels) && channels % FOUR == 0)
        launch_convolve_back(&(convolve_back_args){.from = c->d_out,
                                                   .w = c->w,
                                                   .to = c->d_in,
                                                   .s = sliding_of(l),
                                                   .outputs = channels,
                                                   .add = c->add_in},
                             c->rows * strips_of(l->in, BACK_STRIP));
    else if (c->d_in != NULL)
        for (uint32_t first = 0; first < c->rows; first += piece)
            give_windows(c, first, least(piece, c->rows - first));
}

/* ---- pools ---- */

static sl_layer_memory pool_memory(const sl_layer *layer, uint32_t rows) {
    (void)layer, (void)rows;
    return (sl_layer_memory){0};
}

static pool_args pool_of(const sl_layer_call *c) {
    return (pool_args){c->in, c->out, c->d_out, c->d_in, sliding_of(c->layer), c->add_in};
}

static void max_forward(const sl_layer_call *c) {
    const pool_args a = pool_of(c);
    launch_pool_largest(&a, c->rows * sl_shape_size(c->layer->out));
}

static void average_forward(const sl_layer_call *c) {
    const pool_args a = pool_of(c);
    launch_pool_mean(&a, c->rows * sl_shape_size(c->layer->out));
}

static void max_backward(const sl_layer_call *c) {
    const pool_args a = pool_of(c);
    if (c->d_in != NULL)
        launch_give_to_largest(&a, c->rows * sl_shape_size(c->layer->in));
}

static void average_backward(const sl_layer_call *c) {
    const pool_args a = pool_of(c);
    if (c->d_in != NULL)
        launch_give_to_all(&a, c->rows * sl_shape_size(c->layer->in));
}

/* ---- batch normalisation ---- */

static uint32_t positions_of(const sl_layer *l, uint32_t rows) {
    return rows * l->out.height * l->out.width;
}

/* saved: as on the CPU, and columns_of.came, which no other layer writes. kept: as on the CPU.
 * scratch: three factors per channel, then the groups' sums. */
static sl_layer_memory norm_memory(const sl_layer *l, uint32_t rows) {
    const uint32_t channels = l->out.channels;
    const columns_plan p = columns_plan_of(positions_of(l, rows), channels);
    return (sl_layer_memory){.saved = 2 * (size_t)channels + 1,
                             .kept = 1 + 2 * (size_t)channels,
                             .scratch =
                                 round_16(3 * (size_t)channels) + 4 * (size_t)p.groups * channels};
}

static columns_of norm_columns(const sl_layer_call *c) {
    const uint32_t channels = c->layer->out.channels;
    return (columns_of){positions_of(c->layer, c->rows), channels,
                        as_doubles(c->scratch + round_16(3 * (size_t)channels)),
                        (uint32_t *)(void *)(c->saved + 2 * (size_t)channels)};
}

static uint32_t norm_blocks(const columns_of *c) {
    const columns_plan p = columns_plan_of(c->rows, c->columns);
    return p.chunks * p.groups;
}

static detour detour_from(const sl_layer_call *c) {
    const sl_shape from = c->shortcut_shape, out = c->layer->out;
    return (detour){out.height, out.width,     from.height,
                    from.width, from.channels, from.height == out.height ? 1 : 2};
}

static void norm_statistics(const sl_layer_call *c) {
    const columns_of columns = norm_columns(c);
    launch_find_moments(
        &(find_moments_args){c->in, columns, c->saved, c->pass == SL_PASS_COLLECT ? c->kept : NULL},
        norm_blocks(&columns));
}

static void norm_forward(const sl_layer_call *c) {
    const uint32_t channels = c->layer->out.channels;
    if (c->pass == SL_PASS_EVALUATE)
        launch_recall_moments(&(recall_moments_args){c->kept, c->saved, channels}, channels);
    else
        norm_statistics(c);
    const uint32_t span =
        c->shortcut != NULL && c->shortcut_shape.channels % FOUR != 0 ? 1 : span_of(c->layer);
    launch_normalise(&(normalise_args){c->in, c->w, c->w + channels, c->saved, c->shortcut, c->out,
                                       channels, span, detour_from(c), c->layer->relu},
                     (size_t)positions_of(c->layer, c->rows) * channels / span);
}

static void norm_backward(const sl_layer_call *c) {
    const columns_of columns = norm_columns(c);
    const uint32_t channels = columns.columns;
    const size_t shortcut = c->rows * sl_shape_size(c->shortcut_shape);
    const bool spread =
        c->d_shortcut != NULL && sl_shape_size(c->shortcut_shape) != sl_shape_size(c->layer->out);
    if (spread && !c->add_shortcut) /* some positions are never written */
        device_clear(c->d_shortcut, shortcut * sizeof *c->d_shortcut);
    launch_take_normalised(&(take_normalised_args){.x = c->in,
                                                   .y = c->layer->relu ? c->out : NULL,
                                                   .saved = c->saved,
                                                   .scale = c->w,
                                                   .d = c->d_out,
                                                   .d_shortcut = c->d_shortcut,
                                                   .c = columns,
                                                   .g = c->g,
                                                   .factors = c->scratch,
                                                   .from = detour_from(c),
                                                   .add_shortcut = c->add_shortcut || spread},
                           norm_blocks(&columns));
    const uint32_t span = span_of(c->layer);
    if (c->d_in != NULL)
        launch_give_normalised(&(give_normalised_args){c->in, c->d_out, c->scratch, c->d_in,
                                                       channels, span, c->add_in},
                               (size_t)columns.rows * channels / span);
}

const sl_layer_ops conv2d_layer = {conv2d_memory, conv2d_forward, conv2d_backward};
const sl_layer_ops max_pool_layer = {pool_memory, max_forward, max_backward};
const sl_layer_ops average_pool_layer = {pool_memory, average_forward, average_backward};
const sl_layer_ops batch_norm_layer = {norm_memory, norm_forward, norm_backward};
