/* algorithm.h - an algorithm is a few vector hooks over a range of elements.
 *
 * Nearly every algorithm is one sentence: publish one (compressed) vector, receive the weighted sum of the neighbours' vectors, settle.
 * Hooks work on [from, from + count) so that adapting, encoding, sending and combining overlap chunk by chunk.
 */
#ifndef STARLING_ALGORITHM_H
#define STARLING_ALGORITHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/compressor.h"
#include "starling/experiment.h"
#include "starling/vec.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_ALGORITHM_VECTORS_MAX 4

/* A node's state as the hooks see it. All vectors have d elements and belong to the node. */
typedef struct sl_state {
    const sl_vec_ops *vec;
    const sl_compressor *compressor;
    float *x;                                /* model */
    float *g;                                /* gradient of this round */
    float *m;                                /* momentum buffer, NULL when momentum is 0 */
    float *extra[SL_ALGORITHM_VECTORS_MAX];  /* the algorithm's own */
    sl_sgd sgd;                              /* this round's */
} sl_state;

/* What arrived for one chunk: in neighbour order. */
typedef struct sl_mix {
    float self_weight;      /* W_ii */
    const float *weights;   /* (k) W_ij */
    const sl_payload *payloads; /* (k) */
    size_t k;
} sl_mix;

typedef struct sl_algorithm {
    const char *name;
    sl_algorithm_variant variant;
    bool doubly_stochastic;       /* needs rows and columns of W that sum to 1, or the mean drifts */
    bool publishes_old_model;     /* the message does not need this round's gradient: exchange and gradient overlap */
    bool combines_in_place;       /* combine overwrites what is being sent: a chunk waits until it has left */
    size_t extra_vectors;
    /* gradient -> update of the range, before it is published */
    void (*local)(sl_state *s, size_t from, size_t count);
    /* the vector to publish, at `from` */
    const float *(*publish)(const sl_state *s, size_t from);
    /* the weighted sum of what came -> new model of the range */
    void (*combine)(sl_state *s, const sl_mix *mix, size_t from, size_t count);
    /* gradient there and everything combined: finish the round over the whole vector */
    void (*settle)(sl_state *s, size_t dimension);
} sl_algorithm;

/* NULL when there is none. */
const sl_algorithm *sl_algorithm_find(const char *name, sl_algorithm_variant variant);
/* Does W have what the algorithm needs? */
int sl_algorithm_check(const sl_algorithm *algorithm, const sl_topology *topology, sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
