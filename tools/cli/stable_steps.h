/* stable_steps.h - the steps for which a trial converges, in words. */
#ifndef STABLE_STEPS_H
#define STABLE_STEPS_H

#include "cli/tool.h"

enum { STABLE_STEPS_BYTES = 256 };

typedef struct stable_steps {
    double most;                    /* the largest learning rate; NaN: not known */
    double share;                   /* what the experiment's is of it; NaN: not known */
    bool known;                     /* the curvature: else it is an estimate */
    char bound[STABLE_STEPS_BYTES]; /* "learning rate * curvature < ..."; "": not known */
    char why[STABLE_STEPS_BYTES];   /* it is not known */
    char rate[STABLE_STEPS_BYTES];  /* "learning rate < ..., at a curvature of ..."; "": likewise */
} stable_steps;

/* Of a W with this second largest and smallest eigenvalue. */
void stable_steps_find(stable_steps *out, const trial *t, double lambda_2, double lambda_n);
/* To standard error, after training has diverged: the limit, and what raises it. */
void stable_steps_advise(const trial *t);

#endif
