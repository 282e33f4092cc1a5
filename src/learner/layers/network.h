/* network.h - runs a table of layers (layer.h), softmax and cross-entropy on top: the gradient of
 * one flat parameter vector.
 *
 * The gradient is written straight into the caller's vector; the network's input needs none.
 * Activations of a batch are kept for the backward pass; gradients of activations share a few
 * buffers, each taken from its first writer to the layer that consumes it.
 *
 * The last activation lies (positions, classes): the loss is the mean over rows and positions, of
 * which an image classifier has one and a language model as many as characters.
 *
 * Vectors and layers may be a device's. Then a batch and its labels are what goes there, and the
 * loss is all that comes back.
 */
#ifndef SL_LEARNER_NETWORK_H
#define SL_LEARNER_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#include "learner/layers/layer.h"
#include "starling/types.h"
#include "starling/vec.h"

#define SL_NETWORK_WORK_MAX ((size_t)1 << 30) /* floats of working memory */

/* A gradient that a device computes again and again, at the same x into the same g: what it takes
 * is noted the second time, and then repeated. */
typedef struct sl_network_repeat {
    const float *x; /* NULL: there was none */
    float *g;
    uint32_t rows;
    sl_vec_graph *graph; /* NULL: it was computed once */
} sl_network_repeat;

typedef struct sl_network {
    sl_layers table;
    const sl_vec_ops *vec; /* whose memory it works on */
    const sl_layer_backend *backend;
    uint32_t rows_max, positions, classes;
    float *input;        /* (rows_max, size) on the host, filled by the caller */
    uint16_t *labels;    /* (rows_max, positions) likewise */
    sl_vec_event *taken; /* behind the copies of both to a device; NULL on the host */
    float *work;         /* (work_floats) one allocation behind the pointers below */
    size_t work_floats;
    float *activations[SL_LAYERS_MAX +
                       1]; /* (rows_max, size); [0]: the input; on the host the one above */
    float
        *deltas[SL_LAYERS_MAX + 1]; /* d loss / d activation, likewise, sharing buffers; [0] NULL */
    float *saved[SL_LAYERS_MAX];
    float *scratch;
    double *result;                      /* (2) of the loss */
    uint16_t *labels_there;              /* (rows_max, positions); on the host the ones above */
    double *kept[SL_LAYERS_MAX];         /* each layer's part of the population's statistics */
    float *statistics;                   /* all of these, as memory */
    size_t statistics_count;             /* floats; 0: no layer keeps any */
    const sl_progress *progress;         /* of gradients; NULL: nobody hears of it */
    sl_vec_event *passed[SL_LAYERS_MAX]; /* behind each layer's gradient, once somebody hears of it;
                                            NULL on the host */
    bool repeats;                        /* work may be noted */
    sl_network_repeat latest[2]; /* two, for algorithms swap the model with another vector */
} sl_network;

/* Floats that a pass over one sample needs. */
size_t sl_network_row_floats(const sl_layers *table);

/* The table is copied. x and g of the calls below are vectors of `vec`, and so is all working
 * memory. */
int sl_network_open(sl_network *out, const sl_layers *table, const sl_vec_ops *vec,
                    uint32_t rows_max, sl_error *error);
void sl_network_close(sl_network *network);

/* Mean loss over the first `rows` of the input; its gradient into g (dimension). */
double sl_network_gradient(sl_network *network, uint32_t rows, const float *x, float *g);
/* The same in two: the first returns when the input may be filled again, which on a device is long
 * before the second knows the loss. */
void sl_network_begin_gradient(sl_network *network, uint32_t rows, const float *x, float *g);
double sl_network_end_gradient(sl_network *network, uint32_t rows);

/* Before scoring: forgets what was collected, then adds the input's first `rows` as one batch to
 * the statistics that scoring uses. Not needed where statistics_count is 0. */
void sl_network_forget(sl_network *network);
void sl_network_collect(sl_network *network, uint32_t rows, const float *x);
/* Sum of losses over the first `rows` of the input and their positions; *correct grows by those
 * whose largest output is their label. */
double sl_network_score(sl_network *network, uint32_t rows, const float *x, uint64_t *correct);

#endif
