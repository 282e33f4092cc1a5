/* lanczos.h - Lanczos' recurrence for both ends of the spectrum of a symmetric W; see lanczos.c. */
#ifndef SL_LANCZOS_H
#define SL_LANCZOS_H

#include "topology/spectrum/krylov.h"

typedef struct settled {
    uint32_t steps;       /* after so many */
    double *coefficients; /* (steps) of the eigenvector in the recurrence's vectors */
    double gap, estimate; /* 1 - lambda or 1 + lambda, from above; and the residual that the
                             recurrence promises */
    double separation;    /* from the next value of the tridiagonal matrix */
    bool converged;
} settled;

/* The last two vectors: q_k = v / norm, q_(k-1) = last / last_norm. */
typedef struct recurrence {
    const sparse *w;
    double *v, *last, norm, last_norm;
    double sum; /* of v */
} recurrence;

typedef struct lanczos {
    recurrence now;
    double *alpha,
        *beta;     /* (steps) the tridiagonal matrix; beta[k] is beside alpha[k] and alpha[k + 1] */
    double *means; /* (steps) what was taken out of the constant vector */
    uint32_t steps, room;
    settled ends[2]; /* by `end` */
    const sl_watch *watch;
    double told; /* to the watch; it never falls */
} lanczos;

int sl_lanczos_open(lanczos *l, const sparse *w,
                    const sl_watch *watch); /* -1 without memory; close it also then */
void sl_lanczos_close(lanczos *l);
/* Goes on until both ends have converged, or to steps_max, or from step `patience` on until a gap
 * below `small` is seen that has not. -1 without memory. */
int sl_lanczos_run(lanczos *l, double tolerance, uint32_t steps_max, uint32_t patience,
                   double small);
/* vectors[end] is (nodes): overwritten by the eigenvector of that end, length about 1. -1 without
 * memory. */
int sl_lanczos_vectors(const lanczos *l, double *vectors[2]);

#endif
