/* perron.c - the vector that a period's product W(m) ... W(1) leaves as it is: where push-sum's
 * weights go, or whose values an agreement is made of.
 *
 * Up to DENSE_NODES_MAX nodes and without negative weights by elimination (Grassmann, Taksar,
 * Heyman 1985), which subtracts nothing, so that the smallest share is as exact as the largest;
 * otherwise by powers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/analysis/union.h"
#include "topology/graph/apply.h"

enum { DENSE_NODES_MAX = 512 };
#define AT_REST 1e-15

/* x <- x times the period's product from the left (row-stochastic), or the product times x
 * (column-stochastic). */
static void apply_period(const sl_topology *t, bool left, double *x, double *spare) {
    for (uint32_t k = 0; k < t->graph.period; k++) {
        const slot *p = &t->graph.slots[left ? t->graph.period - 1 - k : k];
        if (left)
            sl_slot_apply_transposed(p, t->graph.nodes, x, spare);
        else
            sl_slot_apply(p, t->graph.nodes, x, spare);
        memcpy(x, spare, t->graph.nodes * sizeof *x);
    }
}

/* Row i of the transition matrix, rows summing to 1: what the transposed operator makes of unit
 * vector i. false: negative entries. */
static bool transitions(const sl_topology *t, bool left, double *matrix, double *spare) {
    size_t n = t->graph.nodes;
    bool good = true;
    memset(matrix, 0, n * n * sizeof *matrix);
    for (size_t i = 0; i < n; i++) {
        double *row = matrix + i * n;
        row[i] = 1;
        apply_period(t, left, row, spare);
        for (size_t j = 0; j < n; j++)
            good = good && row[j] >= 0;
    }
    return good;
}

/* Censors the states from the last to the first, then builds the shares up again. false: the states
 * do not all lead to each other. */
static bool eliminate(double *p, double *shares, size_t n) {
    for (size_t k = n - 1; k > 0; k--) {
        double out = 0;
        for (size_t j = 0; j < k; j++)
            out += p[k * n + j];
        if (!(out > 0))
            return false;
        for (size_t i = 0; i < k; i++) {
            double share = p[i * n + k] / out;
            p[i * n + k] = share;
            for (size_t j = 0; j < k && share > 0; j++)
                p[i * n + j] += share * p[k * n + j];
        }
    }
    shares[0] = 1;
    for (size_t k = 1; k < n; k++) {
        shares[k] = 0;
        for (size_t i = 0; i < k; i++)
            shares[k] += shares[i] * p[i * n + k];
    }
    return true;
}

static void normalize(double *shares, uint32_t n) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += shares[i];
    for (uint32_t i = 0; i < n; i++)
        shares[i] /= sum;
}

/* Largest change of a share by one more period; `next` becomes the shares after it. */
static double change(const sl_topology *t, bool left, const double *shares, double *next,
                     double *spare) {
    double largest = 0;
    memcpy(next, shares, t->graph.nodes * sizeof *next);
    apply_period(t, left, next, spare);
    for (uint32_t i = 0; i < t->graph.nodes; i++)
        largest = fmax(largest, fabs(next[i] - shares[i]));
    return largest;
}

static void iterate(const sl_topology *t, bool left, double *shares, double *next, double *spare) {
    budget b = {SL_ANALYSIS_WORK};
    uint64_t edges = 0;
    for (uint32_t k = 0; k < t->graph.period; k++)
        edges += t->graph.slots[k].edges + 2ull * t->graph.nodes;
    for (uint32_t i = 0; i < t->graph.nodes; i++)
        shares[i] = 1. / t->graph.nodes;
    while (change(t, left, shares, next, spare) > AT_REST / t->graph.nodes &&
           budget_spend(&b, edges))
        memcpy(shares, next, t->graph.nodes * sizeof *shares);
    normalize(shares, t->graph.nodes);
}

int sl_topology_perron(double *shares, double *residual, const sl_topology *t, sl_error *error) {
    size_t n = t->graph.nodes;
    bool left = t->graph.stochastic.row, dense = n <= DENSE_NODES_MAX, found = false;
    double *next = malloc(2 * n * sizeof *next),
           *matrix = dense ? malloc(n * n * sizeof *matrix) : NULL;
    if (next == NULL || (dense && matrix == NULL)) {
        free(next);
        free(matrix);
        return sl_fail(error, SL_ENOMEM, "out of memory for the Perron vector of %zu nodes", n);
    }
    double *spare = next + n;
    if (t->graph.stochastic.row && t->graph.stochastic.column) {
        for (size_t i = 0; i < n; i++)
            shares[i] = 1. / (double)n;
    } else {
        if (dense && transitions(t, left, matrix, spare))
            found = eliminate(matrix, shares, n);
        if (found)
            normalize(shares, t->graph.nodes);
        else
            iterate(t, left, shares, next, spare);
    }
    *residual = change(t, left, shares, next, spare);
    free(next);
    free(matrix);
    return 0;
}
