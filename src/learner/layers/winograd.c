/* winograd.c - 3x3 convolutions by F(4x4, 3x3); see winograd.h.
 *
 *     Y = A^T [ (G g G^T) * (B^T d B) ] A        6x6 inputs d, 3x3 weights g, 4x4 outputs Y; *
 *                                                number by number
 *     dg = G^T [ (B^T d B) * (A dY A^T) ] G      summed over all tiles
 *
 * B^T, G and A^T (for the points 0, 1, -1, 2, -2, infinity) are written out below, each applied to
 * a column of vectors. Tiles are taken BLOCK at a time over all images, in order. Transformed
 * numbers lie (36, tiles, channels): 36 matrices, each at a distance that spreads them over the
 * sets of L1.
 */
#include "learner/layers/winograd.h"

#include "learner/layers/tiles.h"

enum { OUT = 4, IN = 6, POINTS = IN * IN, TAPS = 9, BLOCK = 24 };

/* ---- the transforms of one column ---- */

KERNEL void input_column(lanes v[IN], const lanes d[IN]) { /* B^T */
    lanes even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1], near = d[4] - d[2],
          twice = 2 * (d[3] - d[1]);
    v[0] = 4 * d[0] - 5 * d[2] + d[4];
    v[1] = even + odd;
    v[2] = even - odd;
    v[3] = near + twice;
    v[4] = near - twice;
    v[5] = 4 * d[1] - 5 * d[3] + d[5];
}

KERNEL void output_column(lanes y[OUT], const lanes m[IN]) { /* A^T */
    lanes sum1 = m[1] + m[2], sum2 = m[3] + m[4], difference1 = m[1] - m[2],
          difference2 = m[3] - m[4];
    y[0] = m[0] + sum1 + sum2;
    y[1] = difference1 + 2 * difference2;
    y[2] = sum1 + 4 * sum2;
    y[3] = difference1 + 8 * difference2 + m[5];
}

KERNEL void spread_column(lanes n[IN], const lanes y[OUT]) { /* A */
    lanes even1 = y[0] + y[2], odd1 = y[1] + y[3], even2 = y[0] + 4 * y[2],
          odd2 = 2 * y[1] + 8 * y[3];
    n[0] = y[0];
    n[1] = even1 + odd1;
    n[2] = even1 - odd1;
    n[3] = even2 + odd2;
    n[4] = even2 - odd2;
    n[5] = y[3];
}

KERNEL void weight_column(lanes u[IN], const lanes g[3]) { /* G */
    lanes outer = (g[0] + g[2]) * (-1.0f / 6), inner = g[1] * (1.0f / 6),
          far = g[0] * (1.0f / 24) + g[2] * (1.0f / 6), half = g[1] * (1.0f / 12);
    u[0] = g[0] * 0.25f;
    u[1] = outer - inner;
    u[2] = outer + inner;
    u[3] = far + half;
    u[4] = far - half;
    u[5] = g[2];
}

KERNEL void gather_column(lanes g[3], const lanes u[IN]) { /* G^T */
    lanes sum1 = (u[1] + u[2]) * (1.0f / 6), sum2 = u[3] + u[4];
    g[0] = u[0] * 0.25f - sum1 + sum2 * (1.0f / 24);
    g[1] = (u[2] - u[1]) * (1.0f / 6) + (u[3] - u[4]) * (1.0f / 12);
    g[2] = sum2 * (1.0f / 6) - sum1 + u[5];
}

/* ---- tiles and where they lie ---- */

typedef struct images {
    uint32_t count, height, width, channels;
    uint32_t tiles_high, tiles_wide;
} images;

static images images_of(uint32_t rows, sl_shape s) {
    return (images){
        rows, s.height, s.width, s.channels, (s.height + OUT - 1) / OUT, (s.width + OUT - 1) / OUT};
}

static size_t tiles_of(const images *s) {
    return (size_t)s->count * s->tiles_high * s->tiles_wide;
}

/* Floats from one of the 36 matrices of a block to the next. */
static size_t matrix_size(uint32_t channels) {
    return (size_t)BLOCK * channels + 16;
}

/* Offsets of the side x side pixels that begin `before` pixels up and left of tile `tile`; outside
 * the image: SIZE_MAX. */
static inline void find_pixels(size_t *offsets, const images *s, size_t tile, int64_t side,
                               int64_t before) {
    size_t in_image = tile % ((size_t)s->tiles_high * s->tiles_wide),
           image = tile / ((size_t)s->tiles_high * s->tiles_wide);
    int64_t top = (int64_t)(in_image / s->tiles_wide) * OUT - before,
            left = (int64_t)(in_image % s->tiles_wide) * OUT - before;
    for (int64_t y = top; y < top + side; y++)
        for (int64_t x = left; x < left + side; x++, offsets++) {
            bool inside = y >= 0 && x >= 0 && y < s->height && x < s->width;
            *offsets = inside
                           ? ((image * s->height + (size_t)y) * s->width + (size_t)x) * s->channels
                           : SIZE_MAX;
        }
}

KERNEL lanes load_pixel(const float *x, size_t offset, uint32_t channel) {
    return offset == SIZE_MAX ? broadcast(0) : load(x + offset + channel);
}

/* ---- whole blocks of tiles ---- */

/* v (36, count, channels) = B^T d B */
static void transform_inputs(float *v, const float *x, const images *s, size_t first,
                             size_t count) {
    size_t step = matrix_size(s->channels);
    for (size_t t = 0; t < count; t++) {
        size_t offsets[POINTS];
        find_pixels(offsets, s, first + t, IN, 1);
        for (uint32_t c = 0; c < s->channels; c += LANES) {
            lanes half[IN][IN], column[IN];
            for (int j = 0; j < IN; j++) {
                for (int i = 0; i < IN; i++)
                    column[i] = load_pixel(x, offsets[i * IN + j], c);
                input_column(half[j], column);
            }
            float *to = v + t * s->channels + c;
            for (int i = 0; i < IN; i++) {
                lanes row[IN], done[IN];
                for (int j = 0; j < IN; j++)
                    row[j] = half[j][i];
                input_column(done, row);
                for (int j = 0; j < IN; j++, to += step)
                    store(to, done[j]);
            }
        }
    }
}

/* n (36, count, channels) = A dY A^T */
static void spread_outputs(float *n, const float *d, const images *s, size_t first, size_t count) {
    size_t step = matrix_size(s->channels);
    for (size_t t = 0; t < count; t++) {
        size_t offsets[OUT * OUT];
        find_pixels(offsets, s, first + t, OUT, 0);
        for (uint32_t c = 0; c < s->channels; c += LANES) {
            lanes half[OUT][IN], column[OUT];
            for (int j = 0; j < OUT; j++) {
                for (int i = 0; i < OUT; i++)
                    column[i] = load_pixel(d, offsets[i * OUT + j], c);
                spread_column(half[j], column);
            }
            float *to = n + t * s->channels + c;
            for (int i = 0; i < IN; i++) {
                lanes row[OUT], done[IN];
                for (int j = 0; j < OUT; j++)
                    row[j] = half[j][i];
                spread_column(done, row);
                for (int j = 0; j < IN; j++, to += step)
                    store(to, done[j]);
            }
        }
    }
}

/* y = A^T m A, or added; m (36, count, channels) */
static void transform_outputs(float *y, const float *m, const images *s, size_t first, size_t count,
                              bool add) {
    size_t step = matrix_size(s->channels);
    for (size_t t = 0; t < count; t++) {
        size_t offsets[OUT * OUT];
        find_pixels(offsets, s, first + t, OUT, 0);
        for (uint32_t c = 0; c < s->channels; c += LANES) {
            lanes half[IN][OUT], column[IN];
            const float *from = m + t * s->channels + c;
            for (int i = 0; i < IN; i++) {
                for (int j = 0; j < IN; j++, from += step)
                    column[j] = load(from);
                output_column(half[i], column);
            }
            for (int j = 0; j < OUT; j++) {
                lanes done[OUT];
                for (int i = 0; i < IN; i++)
                    column[i] = half[i][j];
                output_column(done, column);
                for (int i = 0; i < OUT; i++) {
                    size_t at = offsets[i * OUT + j];
                    if (at != SIZE_MAX)
                        store(y + at + c, add ? done[i] + load(y + at + c) : done[i]);
                }
            }
        }
    }
}

/* m (36, count, outputs) = v (36, count, channels) u; u (36, outputs/16, channels, 16) */
static void multiply(float *m, const float *v, const float *u, size_t count, uint32_t channels,
                     uint32_t outputs) {
    size_t offsets[TILE];
    for (size_t i = 0; i < TILE; i++)
        offsets[i] = i * channels;
    for (int point = 0; point < POINTS;
         point++, v += matrix_size(channels), m += matrix_size(outputs))
        for (uint32_t k = 0; k < outputs; k += PANEL, u += (size_t)channels * PANEL)
            for (size_t t = 0; t < count; t += TILE) { /* BLOCK is a multiple: rows beyond `count`
                                                          are there, and nobody looks at them */
                tile_sums sums;
                tile_clear(sums);
                tile_product(sums, v + t * channels, offsets, u, channels, TILE, 2);
#pragma GCC unroll 6
                for (size_t i = 0; i < TILE; i++) {
                    store(m + (t + i) * outputs + k, sums[2 * i]);
                    store(m + (t + i) * outputs + k + LANES, sums[2 * i + 1]);
                }
            }
}

KERNEL void correlate_tile(float *s, const float *v, const float *n, size_t count,
                           uint32_t channels, uint32_t outputs, uint32_t height) {
    tile_sums sums;
    tile_clear(sums);
    tile_outer_product(sums, v, channels, n, outputs, count, height, 2);
#pragma GCC unroll 6
    for (uint32_t i = 0; i < height; i++, s += outputs) {
        store(s, load(s) + sums[2 * i]);
        store(s + LANES, load(s + LANES) + sums[2 * i + 1]);
    }
}

/* s (36, channels, outputs) += v^T n, for each of the 36. Channels are a multiple of 16: sixes and
 * fours. */
static void correlate(float *s, const float *v, const float *n, size_t count, uint32_t channels,
                      uint32_t outputs) {
    for (int point = 0; point < POINTS;
         point++, v += matrix_size(channels), n += matrix_size(outputs))
        for (uint32_t c = 0, height; c < channels; c += height, s += (size_t)height * outputs) {
            height = channels - c == 8 || channels - c == 4 ? 4 : TILE;
            for (uint32_t k = 0; k < outputs; k += PANEL)
                if (height == TILE)
                    correlate_tile(s + k, v + c, n + k, count, channels, outputs, TILE);
                else
                    correlate_tile(s + k, v + c, n + k, count, channels, outputs, 4);
        }
}

/* ---- weights ---- */

/* u (36, outputs/16, channels, 16) = G g G^T; w (3, 3, channels, outputs) */
static void transform_weights(float *u, const float *w, uint32_t channels, uint32_t outputs) {
    size_t step = (size_t)channels * outputs;
    for (uint32_t c = 0; c < channels; c++)
        for (uint32_t k = 0; k < outputs; k += LANES) {
            const float *from = w + (size_t)c * outputs + k;
            float *to = u + ((size_t)(k / PANEL) * channels + c) * PANEL + k % PANEL;
            lanes half[3][IN];
            for (int s = 0; s < 3; s++)
                weight_column(half[s], (lanes[3]){load(from + (size_t)s * step),
                                                  load(from + (size_t)(3 + s) * step),
                                                  load(from + (size_t)(6 + s) * step)});
            for (int i = 0; i < IN; i++) {
                lanes done[IN];
                weight_column(done, (lanes[3]){half[0][i], half[1][i], half[2][i]});
                for (int j = 0; j < IN; j++, to += step)
                    store(to, done[j]);
            }
        }
}

/* g (3, 3, channels, outputs) = G^T s G */
static void gather_weights(float *g, const float *s, uint32_t channels, uint32_t outputs) {
    size_t step = (size_t)channels * outputs;
    for (size_t at = 0; at < step; at += LANES) {
        lanes half[IN][3];
        for (int j = 0; j < IN; j++) {
            lanes column[IN];
            for (int i = 0; i < IN; i++)
                column[i] = load(s + (size_t)(i * IN + j) * step + at);
            gather_column(half[j], column);
        }
        for (int r = 0; r < 3; r++) {
            lanes row[IN], done[3];
            for (int j = 0; j < IN; j++)
                row[j] = half[j][r];
            gather_column(done, row);
            for (int t = 0; t < 3; t++)
                store(g + (size_t)(r * 3 + t) * step + at, done[t]);
        }
    }
}

/* (3, 3, outputs, channels) from (3, 3, channels, outputs), turned by half a circle. */
static void turn_weights(float *turned, const float *w, uint32_t channels, uint32_t outputs) {
    for (int tap = TAPS; tap-- > 0;)
        for (uint32_t k = 0; k < outputs; k++)
            for (uint32_t c = 0; c < channels; c++)
                *turned++ = w[((size_t)tap * channels + c) * outputs + k];
}

/* ---- the three passes ---- */

bool sl_winograd_fits(const sl_layer *l) {
    return l->window == 3 && l->stride == 1 && l->padding == 1 && !l->bias && !l->relu &&
           l->in.channels % PANEL == 0 && l->out.channels % PANEL == 0;
}

/* Transformed weights, or their gradient; turned weights, or two blocks. */
size_t sl_winograd_scratch(const sl_layer *l) {
    size_t weights = (size_t)l->in.channels * l->out.channels;
    return (POINTS + TAPS) * weights +
           POINTS * (matrix_size(l->in.channels) + matrix_size(l->out.channels));
}

static void convolve(float *y, const float *x, const float *u, float *blocks, const images *in,
                     const images *out, bool add) {
    float *v = blocks, *m = v + POINTS * matrix_size(in->channels);
    memset(v, 0,
           POINTS * matrix_size(in->channels) *
               sizeof *v); /* no stray NaN slows the rows that nobody looks at */
    for (size_t first = 0, total = tiles_of(in); first < total; first += BLOCK) {
        size_t count = total - first < BLOCK ? total - first : BLOCK;
        transform_inputs(v, x, in, first, count);
        multiply(m, v, u, count, in->channels, out->channels);
        transform_outputs(y, m, out, first, count, add);
    }
}

void sl_winograd_forward(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    images in = images_of(c->rows, l->in), out = images_of(c->rows, l->out);
    float *u = c->scratch, *blocks = u + POINTS * (size_t)in.channels * out.channels;
    transform_weights(u, c->w, in.channels, out.channels);
    convolve(c->out, c->in, u, blocks, &in, &out, false);
}

void sl_winograd_input_gradient(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    images in = images_of(c->rows, l->in), out = images_of(c->rows, l->out);
    float *u = c->scratch, *turned = u + POINTS * (size_t)in.channels * out.channels,
          *blocks = turned + TAPS * (size_t)in.channels * out.channels;
    turn_weights(turned, c->w, in.channels, out.channels);
    transform_weights(u, turned, out.channels, in.channels);
    convolve(c->d_in, c->d_out, u, blocks, &out, &in, c->add_in);
}

void sl_winograd_weight_gradient(const sl_layer_call *c) {
    const sl_layer *l = c->layer;
    images in = images_of(c->rows, l->in), out = images_of(c->rows, l->out);
    size_t weights = (size_t)in.channels * out.channels;
    float *s = c->scratch, *v = s + POINTS * weights, *n = v + POINTS * matrix_size(in.channels);
    memset(s, 0, POINTS * weights * sizeof *s);
    for (size_t first = 0, total = tiles_of(&in); first < total; first += BLOCK) {
        size_t count = total - first < BLOCK ? total - first : BLOCK;
        transform_inputs(v, c->in, &in, first, count);
        spread_outputs(n, c->d_out, &out, first, count);
        correlate(s, v, n, count, in.channels, out.channels);
    }
    gather_weights(c->g, s, in.channels, out.channels);
}
