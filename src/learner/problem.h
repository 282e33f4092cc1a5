/* problem.h - a model without data: each node has a function of its own, with its gradient. */
#ifndef SL_LEARNER_PROBLEM_H
#define SL_LEARNER_PROBLEM_H

#include "starling/learner.h"

typedef struct sl_problem {
    const struct sl_problem_ops *ops;
    void *self; /* owned */
    size_t dimension;
    const sl_tensor *tensors; /* (tensor_count) of `self` */
    size_t tensor_count;
    double products; /* multiplications that one sample takes forward; 0: there are no samples */
    size_t bytes;    /* of its memory */
    uint64_t data_hash;
} sl_problem;

typedef struct sl_problem_ops {
    /* Fills *out, and what a person reads of it. `close` follows, whatever it returns. */
    int (*open)(sl_problem *out, const sl_learner_settings *settings, char *text, size_t size,
                sl_error *error);
    void (*close)(void *self); /* NULL does nothing */
    void (*initial)(const void *self, uint32_t rank, float *x);
    /* f_rank(x), its gradient in `round` into g (d). */
    double (*gradient)(void *self, uint32_t rank, uint64_t round, const float *x, float *g);
    /* (1/n) sum of f_i(x). */
    double (*mean)(const void *self, const float *x);
} sl_problem_ops;

extern const sl_problem_ops sl_quadratic_problem, sl_synthetic_problem;

#endif
