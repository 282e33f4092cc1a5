/* learner.h - built-in models on built-in data sets: loss, gradient and evaluation of a parameter
 * vector.
 *
 * One learner serves all ranks (the simulator) or one (an agent). Samples are loaded once. The
 * partition over nodes is a function of the seed; the batch is a function of (seed, rank, round).
 * Calls leave no state behind. They share working memory, so they must not overlap. */
#ifndef STARLING_LEARNER_H
#define STARLING_LEARNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/data.h"
#include "starling/model.h"
#include "starling/task.h"
#include "starling/tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_learner_settings {
    sl_model_config model;
    sl_data_config data;
    uint32_t nodes;   /* that share the training samples */
    uint32_t joiners; /* ranks behind these, each with all training samples of its data, if
                         data.on_change is not "share" */
    uint64_t seed;    /* of initial weights, partition, batches and drawn data */
    uint64_t rounds;  /* 0: from epochs */
    double epochs;    /* passes over the training data */
    bool by_layers;   /* sl_learner_task's gradient tells how far it is */
} sl_learner_settings;

typedef struct sl_learner sl_learner;

/* Loads the data and checks that model and data fit. */
SL_API int sl_learner_open(sl_learner **out, const sl_learner_settings *settings, sl_error *error);
SL_API void sl_learner_close(sl_learner **learner);

SL_API size_t sl_learner_dimension(const sl_learner *learner); /* d */
/* settings.rounds, or epochs turned into rounds: ceil(epochs * train / (nodes * batch)). */
SL_API uint64_t sl_learner_rounds(const sl_learner *learner);
/* Of one pass over the training data; 1 of a quadratic. */
SL_API uint64_t sl_learner_epoch_rounds(const sl_learner *learner);
/* Where each tensor of the parameter vector ends, rising; borrowed. NULL and 0: it is one. */
SL_API const size_t *sl_learner_tensors(const sl_learner *learner, size_t *count);
/* Their rows as matrices: the first of two or more axes, or 1. NULL where that is. */
SL_API const size_t *sl_learner_tensor_rows(const sl_learner *learner);
/* Floating-point operations of a round's gradient: batch samples, 6 for each multiplication of the
 * products that one sample takes forward. Backward, each product becomes two. 0: a quadratic. */
SL_API double sl_learner_operations(const sl_learner *learner);
/* What a round's gradient is said to take, at model.gflops; 0: it takes what it takes. */
SL_API double sl_learner_gradient_seconds(const sl_learner *learner);
/* Names and shapes of the same tensors, at least one; borrowed. A quadratic's is "x". */
SL_API const sl_tensor *sl_learner_layout(const sl_learner *learner, size_t *count);
/* Hash of layer shapes and parameter order. Equal: vectors of two agents mean the same. */
SL_API uint64_t sl_learner_layout_hash(const sl_learner *learner);
/* Training samples of a node, at least 1; a problem without samples: 1. */
SL_API double sl_learner_samples(const sl_learner *learner, uint32_t rank);
/* Do shares follow the members? */
SL_API bool sl_learner_shares(const sl_learner *learner);
/* From now on rank has share `place` of as many as `count` nodes share all training samples in,
 * dealt as at first. Without samples nothing changes. At most nodes + joiners; data.on_change
 * "share". SL_ENOMEM. */
SL_API int sl_learner_share(sl_learner *learner, uint32_t rank, uint32_t place, uint32_t count,
                            sl_error *error);
/* Hash of the loaded samples and labels, and of what model.start holds. */
SL_API uint64_t sl_learner_data_hash(const sl_learner *learner);
/* Bytes of the samples and of the working memory. */
SL_API size_t sl_learner_memory(const sl_learner *learner);
/* One line: "mlp 784-256-10, 203530 parameters; digits, 12000 train, 2000 test, iid". Borrowed. */
SL_API const char *sl_learner_describe(const sl_learner *learner);

/* What is wrong with the held-out samples: they lack classes that are trained, or have others. "":
 * nothing. Borrowed. */
SL_API const char *sl_learner_warning(const sl_learner *learner);

/* Writes x0 of `rank` into x (d). Networks start alike on every rank; a quadratic's file says x0 of
 * each. With model.start every rank starts from that file. */
SL_API void sl_learner_initial(sl_learner *learner, uint32_t rank, float *x);
/* Returns the mean loss at x of rank's batch in `round` (from 1), and writes its gradient into g
 * (d). A quadratic's gradient is that of all its rows. x and g are on the host, or on the device
 * that was attached. */
SL_API double sl_learner_gradient(sl_learner *learner, uint32_t rank, uint64_t round,
                                  const float *x, float *g);
/* settings.by_layers */
SL_API bool sl_learner_goes_by_layers(const sl_learner *learner);
/* From here on gradients on the host tell `progress`, which is borrowed, how far they are. */
SL_API void sl_learner_watch(sl_learner *learner, const sl_progress *progress);

/* Scores x (d) on the held-out samples. x is always on the host. */
SL_API sl_evaluation sl_learner_evaluate(sl_learner *learner, const float *x);

/* The kind of processor that OpenBLAS has chosen its kernels for, such as "Haswell". Gradients of
 * networks have other last digits with each. OPENBLAS_CORETYPE chooses another one. */
SL_API const char *sl_learner_blas(void);

/* Is the model a network, which a device can compute? A quadratic, synthetic or linear one is not.
 */
SL_API bool sl_learner_has_layers(const sl_learner *learner);
/* Networks only: moves gradients and evaluation to the memory of `vec`; they begin on the host.
 * Agents and the simulator do this for their task. */
SL_API int sl_learner_attach(sl_learner *learner, const sl_vec_ops *vec, sl_error *error);

/* The learner as the task of an agent or the simulator; valid until the learner is closed. */
SL_API sl_task sl_learner_task(sl_learner *learner);

#ifdef __cplusplus
}
#endif
#endif
