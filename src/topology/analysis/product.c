/* product.c - how far k rounds of averaging are from the exact average: ||W(k) ... W(1) - J||_2,
 * without ever forming the product.
 *
 * With M = W(k) ... W(1), E = M (I - J) is M - J where rows sum to 1. Where rows do not, M's are
 * divided by their sums, as push-sum divides by its weights, and where columns do not, the mean is
 * taken off afterwards. E times a vector is k products with sparse matrices, on vectors that shrink
 * as E does, so that small errors are known to the same relative accuracy as large ones. The
 * largest eigenvalue of E^T E comes from the Lanczos recurrence without reorthogonalisation, which
 * only repeats values.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/analysis/union.h"
#include "topology/graph/apply.h"

enum { STEPS_MAX = 400, STEPS_BETWEEN_LOOKS = 4 };
#define LANCZOS_CHANGE                                                                             \
    1e-13 /* relative, of sigma^2 over STEPS_BETWEEN_LOOKS steps: it has come to rest */
#define EXACT_BELOW 1e-12
#define EXACT_FROM 1e-6

void dsterf_(const int *n, double *d, double *e, int *info);

typedef struct product {
    const sl_topology *t;
    uint32_t nodes, rounds;
    bool scales, centers; /* divides rows by their sums; takes the mean off afterwards */
    double *sums;         /* (nodes) of M's rows, where it scales */
    double *spare;        /* (nodes) */
    double *blocks;       /* 5 vectors in one allocation: the above, and three for Lanczos */
    budget budget;
} product;

static int product_open(product *out, const sl_topology *t, sl_error *error) {
    size_t n = t->graph.nodes;
    product p = {.t = t,
                 .nodes = t->graph.nodes,
                 .scales = !t->graph.stochastic.row,
                 .centers = t->graph.stochastic.row,
                 .budget = {SL_ANALYSIS_WORK}};
    p.blocks = calloc(5 * n, sizeof *p.blocks);
    if (p.blocks == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for vectors of %zu nodes", n);
    p.sums = p.blocks + 3 * n;
    p.spare = p.blocks + 4 * n;
    for (size_t i = 0; i < n; i++)
        p.sums[i] = 1;
    *out = p;
    return 0;
}

/* x <- W x in round k, from 1. */
static void step(product *p, uint32_t k, double *x, bool transposed) {
    const slot *w = &p->t->graph.slots[(k - 1) % p->t->graph.period];
    if (transposed)
        sl_slot_apply_transposed(w, p->nodes, x, p->spare);
    else
        sl_slot_apply(w, p->nodes, x, p->spare);
    memcpy(x, p->spare, p->nodes * sizeof *x);
    budget_spend(&p->budget, w->edges + 2ull * p->nodes);
}

static void next_round(product *p) {
    p->rounds++;
    if (p->scales)
        step(p, p->rounds, p->sums, false);
}

static void scale(const product *p, double *x) {
    for (uint32_t i = 0; i < p->nodes && p->scales; i++)
        x[i] /= p->sums[i];
    if (p->centers)
        sl_vector_center(x, p->nodes);
}

/* x <- E^T E x */
static void apply_square(product *p, double *x) {
    sl_vector_center(x, p->nodes);
    for (uint32_t k = 1; k <= p->rounds; k++)
        step(p, k, x, false);
    scale(p, x);
    scale(p, x);
    for (uint32_t k = p->rounds; k >= 1; k--)
        step(p, k, x, true);
    sl_vector_center(x, p->nodes);
}

static double largest_of(const double *alpha, const double *beta, int steps) {
    double d[STEPS_MAX], e[STEPS_MAX];
    int info;
    memcpy(d, alpha, (size_t)steps * sizeof *d);
    memcpy(e, beta, (size_t)steps * sizeof *e);
    dsterf_(&steps, d, e, &info);
    return d[steps - 1];
}

static double dot(const double *x, const double *y, uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* One step of the recurrence: w = A q - beta old - alpha q. Returns the new beta. */
static double lanczos_step(product *p, const double *q, double *old, double *w, double beta,
                           double *alpha) {
    uint32_t n = p->nodes;
    memcpy(w, q, n * sizeof *w);
    apply_square(p, w);
    *alpha = dot(q, w, n);
    for (uint32_t i = 0; i < n; i++)
        w[i] -= *alpha * q[i] + beta * old[i];
    return sl_vector_length(w, n);
}

/* ||E||_2, or NaN when the budget ends. */
static double norm_of(product *p) {
    double alpha[STEPS_MAX], beta[STEPS_MAX], found = 0, before = 0, tail = 0;
    double *q = p->blocks, *old = q + p->nodes, *w = old + p->nodes;
    sl_vector_random(q, p->nodes, p->rounds);
    memset(old, 0, p->nodes * sizeof *old);
    for (int j = 0; j < STEPS_MAX; j++) {
        tail = lanczos_step(p, q, old, w, tail, &alpha[j]);
        beta[j] = tail;
        bool invariant = !(tail > 1e-15 * alpha[0]);
        if (invariant || j % STEPS_BETWEEN_LOOKS == STEPS_BETWEEN_LOOKS - 1) {
            found = largest_of(alpha, beta, j + 1);
            if (invariant || found - before <= LANCZOS_CHANGE * found)
                break;
            before = found;
        }
        if (p->budget.left == 0)
            return NAN;
        for (uint32_t i = 0; i < p->nodes; i++)
            w[i] /= tail;
        double *oldest = old;
        old = q;
        q = w;
        w = oldest;
    }
    return sqrt(fmax(0, found));
}

int sl_topology_product_errors(double *errors, uint32_t rounds, const sl_topology *topology,
                               sl_error *error) {
    product p = {0};
    int result = product_open(&p, topology, error);
    if (result != 0)
        return result;
    for (uint32_t k = 0; k < rounds; k++) {
        next_round(&p);
        errors[k] = p.budget.left > 0 ? norm_of(&p) : NAN;
    }
    free(p.blocks);
    return 0;
}

int sl_topology_exact_after(uint32_t *out, const sl_topology *topology, uint32_t rounds,
                            sl_error *error) {
    product p = {0};
    int result = product_open(&p, topology, error);
    if (result != 0)
        return result;
    double *x = p.blocks, *seen = x + p.nodes, before = 1;
    uint32_t exact = topology->graph.nodes == 1;
    sl_vector_random(x, p.nodes, 0);
    while (exact == 0 && p.rounds < rounds) {
        next_round(&p);
        step(&p, p.rounds, x, false);
        memcpy(seen, x, p.nodes * sizeof *seen);
        scale(&p, seen);
        double length = sl_vector_length(seen, p.nodes);
        if (length < EXACT_BELOW && before > EXACT_FROM)
            exact = p.rounds;
        before = length;
    }
    free(p.blocks);
    *out = exact;
    return 0;
}
