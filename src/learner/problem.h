/* problem.h - a model without layers: each node has a function of its own, with its gradient. */
#ifndef SL_LEARNER_PROBLEM_H
#define SL_LEARNER_PROBLEM_H

#include "learner/data/data.h"
#include "learner/data/shares.h"
#include "starling/learner.h"

typedef struct sl_problem {
    const struct sl_problem_ops *ops;
    void *self; /* owned */
    size_t dimension;
    const sl_tensor *tensors; /* (tensor_count) of `self` */
    size_t tensor_count;
    double products;    /* multiplications that one sample takes forward; 0: there are no samples */
    size_t bytes;       /* of its memory */
    uint64_t data_hash; /* of what is not a sample */
} sl_problem;

/* What a problem is made of; borrowed for its life. */
typedef struct sl_problem_source {
    const sl_learner_settings *settings;
    const sl_data *data; /* of one that takes data */
    sl_shares *shares;   /* likewise */
} sl_problem_source;

typedef struct sl_problem_ops {
    bool takes_data;
    /* Fills *out, and what a person reads of the model. `close` follows, whatever it returns. */
    int (*open)(sl_problem *out, const sl_problem_source *source, char *text, size_t size,
                sl_error *error);
    void (*close)(void *self); /* NULL does nothing */
    void (*initial)(const void *self, uint32_t rank, float *x);
    /* f_rank(x), its gradient in `round` into g (d). */
    double (*gradient)(void *self, uint32_t rank, uint64_t round, const float *x, float *g);
    /* On held-out samples; without data the loss is (1/n) sum of f_i(x). */
    sl_evaluation (*evaluate)(void *self, const float *x);
} sl_problem_ops;

extern const sl_problem_ops sl_quadratic_problem, sl_synthetic_problem, sl_linear_problem;

#endif
