/* layer.h - a model as data: a table of layers over one flat parameter vector.
 *
 * Here stands what a layer is (kind, shapes, where its parameters lie, how they start), and nothing
 * of how it is computed: a backend brings a table of functions, one row a kind, and the loss
 * (sl_layer_backend; the CPU's is sl_layer_backend_cpu, a device's comes with its vectors), and
 * network.c runs any table over any backend.
 *
 * Activation 0 is the network's input; activation i + 1 is the output of layer i. Each sample's
 * activation lies (height, width, channels), channels fastest, samples one after the other; a plain
 * vector is (1, 1, n), so that nothing moves between a convolution and a dense layer. Where a model
 * works on sequences, width is time.
 *
 *     y = relu?( op(x; w) + shortcut? )
 */
#ifndef SL_LEARNER_LAYER_H
#define SL_LEARNER_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/error.h"
#include "starling/tensors.h"

#define SL_LAYERS_MAX 128
#define SL_LAYER_TENSORS_MAX 4
#define SL_LAYERS_DIMENSION_MAX ((size_t)1 << 31)
#define SL_LAYER_SIZE_MAX ((size_t)INT32_MAX / 16) /* numbers of one sample's activation */

typedef struct sl_shape {
    uint32_t height, width, channels;
} sl_shape;

static inline size_t sl_shape_size(sl_shape s) {
    return (size_t)s.height * s.width * s.channels;
}

/* The kinds of layers: enum suffix, name in C, name in texts. What a kind computes, and its tensors
 * in the order in which they lie, stands at the head of its file. A row's place is part of the hash
 * of layouts: new rows go to the end. */
#define SL_LAYER_TABLE(X)                                                                          \
    X(DENSE, dense, "dense")                                                                       \
    X(CONV2D, conv2d, "conv2d")                                                                    \
    X(BATCH_NORM, batch_norm, "batch norm")                                                        \
    X(MAX_POOL, max_pool, "max pool")                                                              \
    X(AVERAGE_POOL, average_pool, "average pool")                                                  \
    X(EMBEDDING, embedding, "embedding")                                                           \
    X(LSTM, lstm, "lstm")                                                                          \
    X(LAYER_NORM, layer_norm, "layer norm")                                                        \
    X(ATTENTION, attention, "attention")                                                           \
    X(GELU, gelu, "gelu")
typedef enum sl_layer_kind {
#define SL_LAYER_ENUM(kind, function, text) SL_LAYER_##kind,
    SL_LAYER_TABLE(SL_LAYER_ENUM)
#undef SL_LAYER_ENUM
} sl_layer_kind;
#define SL_LAYER_COUNT(kind, function, text) +1
enum { SL_LAYER_KINDS = SL_LAYER_TABLE(SL_LAYER_COUNT) };

typedef struct sl_layer {
    sl_layer_kind kind;
    bool relu;                        /* max(0, .) at the end */
    bool bias;                        /* conv2d, embedding; a dense layer always has one */
    bool each;                        /* dense: at each position by itself */
    uint32_t window, stride, padding; /* conv2d, pools: the same in both directions */
    uint32_t symbols;                 /* embedding: codes are below it */
    uint32_t heads;                   /* attention */
    double deviation;                 /* of the weights at the start; 0: the kind's own */
    uint32_t input;                   /* which activation */
    uint32_t shortcut; /* batch norm, dense at each position: the activation added before relu; 0:
                          none. Batch norm takes a larger one at every second position, and missing
                          channels as 0 (He et al. 2015, option A) */
    sl_shape in, out;  /* of one sample */
    size_t offset, count;                 /* its parameters in the flat vector */
    size_t tensors[SL_LAYER_TENSORS_MAX]; /* (tensor_count) how many numbers each has */
    size_t tensor_count;
} sl_layer;

typedef struct sl_layers {
    sl_layer items[SL_LAYERS_MAX];
    size_t count;
    sl_shape input;   /* of one sample */
    size_t dimension; /* parameters */
    size_t tensor_ends[SL_LAYERS_MAX *
                       SL_LAYER_TENSORS_MAX]; /* (tensor_count) rising, the last at dimension */
    size_t tensor_count;
} sl_layers;

/* Appends a layer of which kind, relu, bias, each, window, stride, padding, symbols, heads,
 * deviation, shortcut and, for dense, conv2d, embedding and lstm, out.channels are given. Its input
 * is the last activation; all else follows from it. What does not fit is refused with the layer's
 * number and shapes. */
int sl_layers_add(sl_layers *table, const sl_layer *wanted, sl_error *error);
/* The activation that the next layer will take: for a shortcut. */
uint32_t sl_layers_last(const sl_layers *table);
/* Shape of activation `index`. */
sl_shape sl_layers_shape(const sl_layers *table, uint32_t index);
const char *sl_layer_name(sl_layer_kind kind);

/* Names and shapes of the table's tensors (tensor_count); the names stand in `names`
 * (tensor_count). "dense1.weight" is that of the first dense layer. */
typedef struct sl_tensor_name {
    char text[48];
} sl_tensor_name;
void sl_layers_name_tensors(const sl_layers *table, sl_tensor *out, sl_tensor_name *names);

/* Multiplications, with an addition each, that products of matrices take forward for one sample: at
 * every position with each weight; in attention, of queries with keys, and of those with values.
 * What goes element by element is not counted, and embeddings are looked up. */
double sl_layers_products(const sl_layers *table);

/* x0 (dimension), as each kind starts; see its file. A table of one layer is convex and starts at
 * 0. */
void sl_layers_initial(const sl_layers *table, uint64_t seed, float *x);
/* Equal tables, equal hash: what the vector's numbers mean. */
uint64_t sl_layers_hash(uint64_t hash, const sl_layers *table);

/* ---- how a layer is computed ---- */

typedef enum sl_pass {
    SL_PASS_TRAIN,   /* forward; backward may follow */
    SL_PASS_COLLECT, /* forward as in training, which also adds to the population's statistics in
                        `kept` */
    SL_PASS_EVALUATE /* forward with the statistics that were collected */
} sl_pass;

/* One call of a layer. Vectors are 64-byte aligned but for w and g, and do not overlap. */
typedef struct sl_layer_call {
    const sl_layer *layer;
    sl_pass pass;
    uint32_t rows;         /* samples */
    const float *w;        /* (count) its parameters */
    const float *in;       /* (rows, in) */
    const float *shortcut; /* (rows, shortcut_shape), or NULL */
    sl_shape shortcut_shape;
    float *out;     /* (rows, out) */
    float *saved;   /* (saved) from forward to backward of one batch; 0 at first */
    double *kept;   /* (kept) from SL_PASS_COLLECT to SL_PASS_EVALUATE; zeroed before the first */
    float *scratch; /* (scratch) shared by all layers */
    /* backward only: */
    float *g;                  /* (count) the parameters' gradient, overwritten */
    float *d_out;              /* (rows, out) d loss / d out; the layer may overwrite it */
    float *d_in;               /* (rows, in), or NULL where nobody wants it */
    float *d_shortcut;         /* or NULL; written before d_in, which may be the same */
    bool add_in, add_shortcut; /* add to what is there, instead of overwriting it */
} sl_layer_call;

/* Floats of working memory that a layer needs for `rows` samples. */
typedef struct sl_layer_memory {
    size_t saved, kept, scratch;
} sl_layer_memory;

typedef struct sl_layer_ops {
    sl_layer_memory (*memory)(const sl_layer *layer, uint32_t rows);
    void (*forward)(const sl_layer_call *call);
    void (*backward)(const sl_layer_call *call);
} sl_layer_ops;

/* Softmax and cross-entropy over the last activation. */
typedef struct sl_loss_call {
    float *z; /* (rows, classes) outputs, overwritten; `gradient`: by (softmax - onehot) / rows */
    const uint16_t *labels; /* (rows) */
    uint32_t rows, classes;
    bool gradient;
    double *result; /* (2) sum of losses; how many rows' largest output is their label's */
    float *scratch; /* (loss_scratch(rows)) */
} sl_loss_call;

/* All that computes on one kind of memory; sl_vec_ops gives that memory. Calls take effect in order
 * with its operations. */
typedef struct sl_layer_backend {
    const sl_layer_ops *const *kinds; /* (SL_LAYER_KINDS); NULL: it cannot compute that kind */
    size_t (*loss_scratch)(uint32_t rows);
    void (*loss)(const sl_loss_call *call);
    /* Comes before all calls, any number of times; NULL: nothing is to be opened. SL_EDEVICE: what
     * is missing; SL_ENOMEM, without words: see sl_vec_no_memory. */
    int (*open)(sl_error *error);
} sl_layer_backend;

/* The fastest for this processor, and the one for any, which tests take too. */
const sl_layer_backend *sl_layer_backend_cpu(void);
const sl_layer_backend *sl_layer_backend_plain(void);

#endif
