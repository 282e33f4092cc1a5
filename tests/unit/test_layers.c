/* test_layers.c - every kind of layer against losses in float64, written from the definitions. */
#include "layer_rows.h"
#include "machines.h"

/* ---- the reference: in float64, sharing no code with the layers ---- */

typedef double *volume; /* (rows, height, width, channels) */

static double at(volume v, sl_shape s, uint32_t row, int64_t y, int64_t x, uint32_t c) {
    bool outside = y < 0 || x < 0 || y >= s.height || x >= s.width || c >= s.channels;
    return outside
               ? 0
               : v[(((size_t)row * s.height + (size_t)y) * s.width + (size_t)x) * s.channels + c];
}

static double dense_at(const sl_layer *l, volume in, const double *w, uint32_t row, uint32_t k) {
    size_t inputs = l->each ? l->in.channels : sl_shape_size(l->in);
    double sum = w[inputs * l->out.channels + k];
    for (size_t i = 0; i < inputs; i++)
        sum += in[row * inputs + i] * w[i * l->out.channels + k];
    return sum;
}

static double conv_at(const sl_layer *l, volume in, const double *w, uint32_t row, uint32_t y,
                      uint32_t x, uint32_t k) {
    double sum = l->bias ? w[l->tensors[0] + k] : 0;
    for (uint32_t r = 0; r < l->window; r++)
        for (uint32_t s = 0; s < l->window; s++)
            for (uint32_t c = 0; c < l->in.channels; c++)
                sum += at(in, l->in, row, (int64_t)y * l->stride + r - l->padding,
                          (int64_t)x * l->stride + s - l->padding, c) *
                       w[((r * l->window + s) * l->in.channels + c) * l->out.channels + k];
    return sum;
}

static double pool_at(const sl_layer *l, volume in, uint32_t row, uint32_t y, uint32_t x,
                      uint32_t k) {
    uint32_t height = l->window ? l->window : l->in.height,
             width = l->window ? l->window : l->in.width;
    double sum = 0, top = -INFINITY;
    for (uint32_t r = 0; r < height; r++)
        for (uint32_t s = 0; s < width; s++) {
            double v = at(in, l->in, row, y * l->stride + r, x * l->stride + s, k);
            sum += v / (height * width);
            top = v > top ? v : top;
        }
    return l->kind == SL_LAYER_MAX_POOL ? top : sum;
}

/* Mean and variance of one channel over the batch. */
static void moments(const sl_layer *l, volume in, uint32_t rows, uint32_t k, double *mean,
                    double *variance) {
    size_t positions = (size_t)rows * l->in.height * l->in.width;
    *mean = *variance = 0;
    for (size_t p = 0; p < positions; p++)
        *mean += in[p * l->in.channels + k] / positions;
    for (size_t p = 0; p < positions; p++)
        *variance += pow(in[p * l->in.channels + k] - *mean, 2) / positions;
}

static double embedding_at(const sl_layer *l, volume in, const double *w, uint32_t row, uint32_t x,
                           uint32_t k) {
    size_t channels = l->out.channels, code = (size_t)at(in, l->in, row, 0, x, 0);
    return w[code * channels + k] + (l->bias ? w[(l->symbols + x) * channels + k] : 0);
}

static double layer_norm_at(const sl_layer *l, volume in, const double *w, uint32_t row, uint32_t y,
                            uint32_t x, uint32_t k) {
    uint32_t n = l->in.channels;
    double mean = 0, variance = 0;
    for (uint32_t c = 0; c < n; c++)
        mean += at(in, l->in, row, y, x, c) / n;
    for (uint32_t c = 0; c < n; c++)
        variance += pow(at(in, l->in, row, y, x, c) - mean, 2) / n;
    return w[k] * (at(in, l->in, row, y, x, k) - mean) / sqrt(variance + 1e-5) + w[n + k];
}

static double attention_at(const sl_layer *l, volume in, uint32_t row, uint32_t x, uint32_t k) {
    uint32_t width = l->out.channels, n = width / l->heads, first = k / n * n;
    double sum = 0, total = 0;
    for (uint32_t s = 0; s <= x; s++) {
        double fit = 0;
        for (uint32_t c = first; c < first + n; c++)
            fit += at(in, l->in, row, 0, x, c) * at(in, l->in, row, 0, s, width + c) / sqrt(n);
        total += exp(fit);
        sum += exp(fit) * at(in, l->in, row, 0, s, 2 * width + k);
    }
    return sum / total;
}

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double logistic(double x) {
    return 1 / (1 + exp(-x));
}

/* One sample through a layer of LSTM: out (width, n). */
static void reference_lstm(const sl_layer *l, volume in, volume out, const double *w,
                           uint32_t row) {
    uint32_t inputs = l->in.channels, n = l->out.channels;
    const double *u = w + 4 * inputs * n, *b = u + 4 * n * n;
    double *cell = calloc(n, sizeof *cell), *a = malloc(4 * n * sizeof *a);
    for (uint32_t t = 0; t < l->in.width; t++, out += n) {
        for (uint32_t k = 0; k < 4 * n; k++) {
            a[k] = b[k];
            for (uint32_t c = 0; c < inputs; c++)
                a[k] += at(in, l->in, row, 0, t, c) * w[c * 4 * n + k];
            for (uint32_t c = 0; c < n && t > 0; c++)
                a[k] += out[c - (int64_t)n] * u[c * 4 * n + k];
        }
        for (uint32_t k = 0; k < n; k++) {
            cell[k] = logistic(a[n + k]) * cell[k] + logistic(a[k]) * tanh(a[2 * n + k]);
            out[k] = logistic(a[3 * n + k]) * tanh(cell[k]);
        }
    }
    free(cell);
    free(a);
}

static double value_at(const sl_layer *l, volume in, const double *w, uint32_t row, uint32_t y,
                       uint32_t x, uint32_t k, const double *mean, const double *variance) {
    switch (l->kind) {
    case SL_LAYER_DENSE:
        return dense_at(l, in, w, l->each ? (row * l->in.height + y) * l->in.width + x : row, k);
    case SL_LAYER_CONV2D:
        return conv_at(l, in, w, row, y, x, k);
    case SL_LAYER_BATCH_NORM:
        return w[k] * (at(in, l->in, row, y, x, k) - mean[k]) / sqrt(variance[k] + 1e-5) +
               w[l->out.channels + k];
    case SL_LAYER_MAX_POOL:
    case SL_LAYER_AVERAGE_POOL:
        return pool_at(l, in, row, y, x, k);
    case SL_LAYER_EMBEDDING:
        return embedding_at(l, in, w, row, x, k);
    case SL_LAYER_LAYER_NORM:
        return layer_norm_at(l, in, w, row, y, x, k);
    case SL_LAYER_ATTENTION:
        return attention_at(l, in, row, x, k);
    case SL_LAYER_GELU:
        return gelu(at(in, l->in, row, y, x, k));
    case SL_LAYER_LSTM:
        break;
    }
    return NAN;
}

static void reference_layer(const sl_layer *l, volume in, volume shortcut, sl_shape from,
                            volume out, const double *w, uint32_t rows) {
    double mean[512], variance[512];
    uint32_t step = shortcut != NULL && from.height != l->out.height ? 2 : 1;
    for (uint32_t k = 0; k < l->in.channels && l->kind == SL_LAYER_BATCH_NORM; k++)
        moments(l, in, rows, k, &mean[k], &variance[k]);
    for (uint32_t row = 0; row < rows && l->kind == SL_LAYER_LSTM; row++)
        reference_lstm(l, in, out + row * sl_shape_size(l->out), w, row);
    for (uint32_t row = 0; row < rows && l->kind != SL_LAYER_LSTM; row++)
        for (uint32_t y = 0; y < l->out.height; y++)
            for (uint32_t x = 0; x < l->out.width; x++)
                for (uint32_t k = 0; k < l->out.channels; k++) {
                    double v = value_at(l, in, w, row, y, x, k, mean, variance);
                    if (shortcut != NULL)
                        v += at(shortcut, from, row, y * step, x * step, k);
                    *out++ = l->relu && v < 0 ? 0 : v;
                }
}

static double reference_loss(const sl_network *net, uint32_t rows, const double *x) {
    volume activations[SL_LAYERS_MAX + 1];
    const sl_layers *t = &net->table;
    for (uint32_t i = 0; i <= t->count; i++)
        activations[i] = malloc(rows * sl_shape_size(sl_layers_shape(t, i)) * sizeof(double));
    for (size_t i = 0; i < rows * sl_shape_size(t->input); i++)
        activations[0][i] = net->input[i];
    for (size_t l = 0; l < t->count; l++) {
        const sl_layer *layer = &t->items[l];
        reference_layer(
            layer, activations[layer->input], layer->shortcut ? activations[layer->shortcut] : NULL,
            sl_layers_shape(t, layer->shortcut), activations[l + 1], x + layer->offset, rows);
    }
    double loss = 0;
    uint32_t labels = rows * net->positions;
    for (uint32_t row = 0; row < labels; row++) {
        const double *z = activations[t->count] + row * net->classes;
        double sum = 0;
        for (uint32_t k = 0; k < net->classes; k++)
            sum += exp(z[k] - z[net->labels[row]]);
        loss += log(sum) / labels;
    }
    for (size_t i = 0; i <= t->count; i++)
        free(activations[i]);
    return loss;
}

/* ---- small tables that together have everything ---- */

#define END                                                                                        \
    { .out = {.channels = 0}, .window = 99 }

static const struct {
    struct {
        const char *name;
        sl_shape input;
        uint32_t rows;
    };
    sl_layer layers[8];
} tables[] = {
    {{"dense", {2, 3, 4}, 3}, {RELU(20), LAST(3), END}},
    {{"perceptron", {1, 1, 9}, 33}, {RELU(20), LAST(4), END}},
    {{"perceptron of odd widths", {1, 1, 12}, 9}, {RELU(33), RELU(6), RELU(18), LAST(5), END}},
    {{"300 rows", {1, 1, 3}, 300}, {LAST(2), END}},
    {{"5x5, bias and relu", {7, 9, 1}, 3},
     {CONV(6, 5, 1, 2, true, true), CONV(5, 5, 1, 0, true, true), LAST(3), END}},
    {{"3x3 of 3 channels", {6, 5, 3}, 2},
     {CONV(16, 3, 1, 1, false, true), CONV(18, 3, 1, 1, true, false), LAST(4), END}},
    {{"3x3 of 16 channels", {8, 8, 4}, 2},
     {CONV(16, 3, 1, 1, false, true), CONV(16, 3, 1, 1, false, true), LAST(2), END}},
    {{"3x3 of 32 channels, odd sides", {7, 6, 4}, 2},
     {CONV(32, 3, 1, 1, true, true), CONV(16, 3, 1, 1, false, true), LAST(2), END}},
    {{"stride 2", {8, 7, 2}, 2},
     {CONV(9, 3, 2, 1, false, true), CONV(24, 3, 2, 1, true, true), LAST(3), END}},
    {{"stride 3, no padding", {9, 11, 2}, 2},
     {CONV(3, 2, 3, 0, true, true), CONV(7, 2, 1, 1, true, true), LAST(3), END}},
    {{"1x1", {5, 4, 6}, 2},
     {CONV(17, 1, 1, 0, false, true), CONV(4, 1, 2, 0, true, true), LAST(3), END}},
    {{"max pool", {8, 9, 5}, 2},
     {CONV(11, 3, 1, 1, true, false), MAX_POOL(2, 2), MAX_POOL(3, 1), LAST(3), END}},
    {{"average pools", {8, 9, 5}, 2},
     {CONV(11, 3, 1, 1, true, false), AVERAGE_POOL(2, 2), AVERAGE_POOL(0, 0), LAST(3), END}},
    {{"batch norm", {5, 6, 3}, 4},
     {CONV(19, 3, 1, 1, false, false), NORM(true, 0), CONV(8, 3, 1, 1, false, false),
      NORM(false, 0), LAST(3), END}},
    {{"3x3 of 16 and 32 channels, sides 9 and 5", {9, 5, 16}, 2},
     {CONV(32, 3, 1, 1, false, false), CONV(16, 3, 1, 1, false, false), MAX_POOL(2, 2), LAST(3),
      END}},
    {{"residual", {6, 6, 3}, 3},
     {CONV(16, 3, 1, 1, false, false), NORM(true, 0), CONV(16, 3, 1, 1, false, false),
      NORM(true, 0), CONV(16, 3, 1, 1, false, false), NORM(true, 2), LAST(3), END}},
    {{"option A", {7, 6, 3}, 3},
     {CONV(10, 3, 1, 1, false, false), NORM(true, 0), CONV(21, 3, 2, 1, false, false),
      NORM(true, 0), CONV(21, 3, 1, 1, false, false), NORM(true, 2), LAST(3), END}},
    {{"option A, whole vectors", {8, 8, 3}, 2},
     {CONV(8, 3, 1, 1, false, false), NORM(true, 0), CONV(16, 3, 2, 1, false, false), NORM(true, 2),
      AVERAGE_POOL(0, 0), LAST(3), END}},
    {{"one row, one class more", {1, 1, 3}, 1}, {LAST(2), END}},
    {{"dense at each position", {3, 4, 5}, 2}, {EACH(7, 0), EACH(7, 1), EACH(3, 0), END}},
    {{"dense at each position, rectified", {1, 6, 5}, 2},
     {DENSE(16, true, true), EACH(16, 1), LAST(3), END}},
    {{"embedding", {1, 7, 1}, 3}, {EMBED(5, 6, false), EACH(5, 0), END}},
    {{"embedding of positions", {1, 7, 1}, 3}, {EMBED(5, 9, true), EACH(9, 1), EACH(5, 0), END}},
    {{"lstm", {1, 9, 1}, 3}, {EMBED(6, 3, false), LSTM(5), EACH(6, 0), END}},
    {{"lstm, whole vectors", {1, 6, 1}, 4},
     {EMBED(6, 3, false), LSTM(16), LSTM(8), EACH(6, 0), END}},
    {{"lstm of one step", {1, 1, 4}, 2}, {LSTM(11), LAST(3), END}},
    {{"layer norm", {2, 3, 11}, 3}, {LAYER_NORM, EACH(13, 0), LAYER_NORM, LAST(3), END}},
    {{"layer norm, whole vectors", {1, 5, 16}, 2}, {EACH(24, 0), LAYER_NORM, EACH(3, 0), END}},
    {{"attention", {1, 9, 4}, 2}, {EACH(18, 0), ATTEND(2), EACH(3, 0), END}},
    {{"attention of one head", {1, 17, 4}, 2},
     {EACH(24, 0), ATTEND(1), EACH(24, 0), ATTEND(8), EACH(3, 0), END}},
    {{"gelu", {1, 3, 7}, 2}, {EACH(19, 0), GELU, EACH(19, 2), GELU, LAST(4), END}},
    {{"transformer block", {1, 6, 1}, 2},
     {EMBED(5, 12, true), LAYER_NORM, EACH(36, 0), ATTEND(3), EACH(12, 1), LAYER_NORM, EACH(5, 0),
      END}},
};

/* A network of the table with random parameters (*x), inputs and labels. */
static sl_network open_table(int i, machine where, float **x) {
    sl_network net;
    sl_layers table = {.input = tables[i].input};
    for (size_t l = 0; tables[i].layers[l].window != 99; l++)
        ck_assert_msg(sl_layers_add(&table, &tables[i].layers[l], &error) == 0, "%s: %s",
                      tables[i].name, error.text);
    EXPECT_WELL(open_on(&net, &table, where, tables[i].rows));
    *x = new_floats(table.dimension);
    fill(*x, table.dimension, 1, 0.3);
    fill(net.input, tables[i].rows * sl_shape_size(table.input), 2, 1.5);
    for (size_t p = 0; p < tables[i].rows * sl_shape_size(table.input) &&
                       table.items[0].kind == SL_LAYER_EMBEDDING;
         p++)
        net.input[p] = (float)(p * 11 % 17 % table.items[0].symbols);
    for (uint32_t row = 0; row < tables[i].rows * net.positions; row++)
        net.labels[row] = (uint16_t)(row * 7 % net.classes);
    return net;
}

static void check_gradient(sl_network *net, const char *name, uint32_t rows, const float *x) {
    size_t dimension = net->table.dimension;
    float *g = new_floats(dimension);
    double *point = malloc(dimension * sizeof *point), largest = 0;
    for (size_t i = 0; i < dimension; i++)
        point[i] = x[i];
    double loss = find_gradient(net, rows, x, g), loss_again = find_gradient(net, rows, x, g);
    ck_assert_double_eq_tol(loss, reference_loss(net, rows, point), 5e-6 * (1 + fabs(loss)));
    ck_assert(loss == loss_again);
    for (size_t i = 0; i < dimension; i++)
        largest = fmax(largest, fabs(g[i]));
    const size_t looked_at = getenv("STARLING_QUICK") != NULL ? 15 : 150;
    for (size_t i = 0; i < dimension; i += 1 + dimension / looked_at) {
        const double h = 1e-6;
        point[i] = x[i] + h;
        double above = reference_loss(net, rows, point);
        point[i] = x[i] - h;
        double slope = (above - reference_loss(net, rows, point)) / (2 * h);
        point[i] = x[i];
        ck_assert_msg(fabs(g[i] - slope) <= 1e-5 * (1 + largest),
                      "%s, %u rows: parameter %zu: %.9g, but in float64 %.9g", name, rows, i, g[i],
                      slope);
    }
    free(point);
}

START_LOOP_TEST(gradients_agree_with_finite_differences_in_float64,
                MACHINES * sizeof tables / sizeof *tables) {
    float *x;
    int i = _i / MACHINES;
    sl_network net = open_table(i, _i % MACHINES, &x);
    check_gradient(&net, tables[i].name, tables[i].rows, x);
    check_gradient(&net, tables[i].name, 1, x);
    sl_network_close(&net);
}

/* ---- networks of dense layers ---- */

static int table_of(const char *name) {
    int i = 0;
    while (strcmp(tables[i].name, name) != 0)
        i++;
    return i;
}

START_TEST(score_agrees_with_float64) {
    float *x;
    const int i = table_of("perceptron");
    sl_network net = open_table(i, FASTEST, &x);
    double point[512];
    uint64_t correct = 0;
    for (size_t k = 0; k < net.table.dimension; k++)
        point[k] = x[k];
    const double loss = sl_network_score(&net, tables[i].rows, x, &correct) / tables[i].rows;
    ck_assert_double_eq_tol(loss, reference_loss(&net, tables[i].rows, point), 1e-5);
    ck_assert_uint_le(correct, tables[i].rows);
    sl_network_close(&net);
}

START_TEST(huge_outputs_do_not_overflow) {
    float *x, g[8];
    sl_network net = open_table(table_of("one row, one class more"), FASTEST, &x);
    memset(x, 0, sizeof g);
    memset(net.input, 0, 3 * sizeof *net.input);
    x[6] = 3e30f;
    net.labels[0] = 1;
    ck_assert_double_eq_tol(sl_network_gradient(&net, 1, x, g), 3e30, 1e25);
    ck_assert_float_eq(g[6], 1);
    ck_assert_float_eq(g[7], -1);
    sl_network_close(&net);
}

/* Through a ReLU, too. */
START_TEST(a_nan_parameter_shows_in_the_loss) {
    float *x, g[512];
    const int i = table_of("perceptron");
    sl_network net = open_table(i, FASTEST, &x);
    x[0] = NAN;
    ck_assert(isnan(sl_network_gradient(&net, tables[i].rows, x, g)));
    sl_network_close(&net);
}

START_TEST(gradients_do_not_depend_on_where_vectors_lie) {
    enum { ROWS = 32, PIXELS = 784, FARTHEST = 9 };
    const sl_layer layers[] = {RELU(256), LAST(10)};
    sl_layers table = {.input = {1, 1, PIXELS}};
    sl_network net;
    for (int l = 0; l < 2; l++)
        EXPECT_WELL(sl_layers_add(&table, &layers[l], &error));
    ck_assert_int_eq(open_on(&net, &table, FASTEST, ROWS), 0);
    const size_t d = table.dimension, room = ((d + FARTHEST) * sizeof(float) + 63) / 64 * 64;
    float *x = aligned_alloc(64, room), *g = aligned_alloc(64, room),
          *moved = aligned_alloc(64, room), *h = aligned_alloc(64, room);
    sl_layers_initial(&table, 1, x);
    memset(net.labels, 0, ROWS * sizeof *net.labels);
    fill(net.input, ROWS * PIXELS, 5, 1);
    for (size_t offset = 0; offset < FARTHEST; offset += 3) {
        memcpy(moved + offset, x, d * sizeof *x);
        const double loss = sl_network_gradient(&net, ROWS, x, g);
        ck_assert(loss == sl_network_gradient(&net, ROWS, moved + offset, h + offset));
        ck_assert_mem_eq(g, h + offset, d * sizeof *g);
    }
    free(x);
    free(g);
    free(moved);
    free(h);
    sl_network_close(&net);
}

START_TEST(every_kind_has_a_table) {
    static const char *const names[] = {
#define NAME(kind, function, text) text,
        SL_LAYER_TABLE(NAME)
#undef NAME
    };
    bool had[SL_LAYER_KINDS] = {false};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (size_t l = 0; tables[i].layers[l].window != 99; l++)
            had[tables[i].layers[l].kind] = true;
    for (int kind = 0; kind < SL_LAYER_KINDS; kind++)
        ck_assert_msg(had[kind], "%s: no table has it", names[kind]);
}

START_TEST(unfitting_layers_are_refused) {
    sl_layers table = {.input = {4, 4, 2}};
    sl_layer layer = CONV(3, 5, 1, 0, false, false);
    EXPECT_ERROR(sl_layers_add(&table, &layer, &error), SL_EINVAL, "layer 1 (conv2d 5x5");
    ck_assert_uint_eq(table.count, 0);
}
