/* weights.c - the weight schemes: from edges to W.
 *
 *   metropolis   W_ij = 1/(1 + max(d_i, d_j)), W_ii = 1 - sum (Xiao, Boyd, "Fast linear iterations", 2004): symmetric
 *   lazy         (I + metropolis)/2: no eigenvalue below 0
 *   uniform      W_ij = 1/(1 + in-degree of i): row-stochastic
 *   push-sum     P_ji = 1/(1 + out-degree of i): column-stochastic
 *   explicit     as listed
 */
#include <math.h>
#include <string.h>

#include "topology/graph.h"

const char *weighting_name(sl_weighting weighting) {
    switch (weighting) {
    case SL_WEIGHTING_METROPOLIS:
        return "metropolis";
    case SL_WEIGHTING_UNIFORM:
        return "uniform";
    case SL_WEIGHTING_LAZY:
        return "lazy";
    case SL_WEIGHTING_PUSH_SUM:
        return "push-sum";
    case SL_WEIGHTING_EXPLICIT:
        return "explicit";
    }
    return "?";
}

static uint64_t degree(const side *s, uint32_t i) {
    return s->start[i + 1] - s->start[i];
}

static double scheme_weight(const phase *p, sl_weighting weighting, uint32_t i, uint32_t j) {
    double largest = (double)(degree(&p->in, i) > degree(&p->in, j) ? degree(&p->in, i) : degree(&p->in, j));
    switch (weighting) {
    case SL_WEIGHTING_METROPOLIS:
        return 1 / (1 + largest);
    case SL_WEIGHTING_LAZY:
        return 0.5 / (1 + largest);
    case SL_WEIGHTING_UNIFORM:
        return 1 / (1 + (double)degree(&p->in, i));
    case SL_WEIGHTING_PUSH_SUM:
        return 1 / (1 + (double)degree(&p->out, j));
    case SL_WEIGHTING_EXPLICIT:
        break;
    }
    return NAN;
}

static void apply_scheme(phase *p, sl_weighting weighting, uint32_t nodes) {
    for (uint32_t i = 0; i < nodes; i++) {
        double rest = 1;
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++) {
            p->in.weights[e] = scheme_weight(p, weighting, i, p->in.peers[e]);
            rest -= p->in.weights[e];
        }
        p->self[i] = weighting == SL_WEIGHTING_PUSH_SUM ? 1 / (1 + (double)degree(&p->out, i)) : rest;
    }
}

/* The receivers' weights, seen from the sender. Rows are walked in order of receivers, and so are each sender's. */
static void mirror_weights(phase *p, uint32_t nodes) {
    uint64_t *next = p->out.start;
    for (uint32_t i = 0; i < nodes; i++)
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++)
            p->out.weights[next[p->in.peers[e]]++] = p->in.weights[e];
    memmove(next + 1, next, (size_t)nodes * sizeof *next);
    next[0] = 0;
}

static double sum_of(const side *s, uint32_t i) {
    double sum = 0;
    for (uint64_t e = s->start[i]; e < s->start[i + 1]; e++)
        sum += s->weights[e];
    return sum;
}

/* Where no self-loop was listed, the self-weight is what the row (or the column) lacks. */
static void complete_self_weights(phase *p, bool by_column, uint32_t nodes) {
    for (uint32_t i = 0; i < nodes; i++)
        if (isnan(p->self[i]))
            p->self[i] = 1 - sum_of(by_column ? &p->out : &p->in, i);
}

static int check_self_weights(const phase *p, uint32_t nodes, sl_error *error) {
    for (uint32_t i = 0; i < nodes; i++)
        if (!(p->self[i] > 0))
            return sl_fail(error, SL_EINVAL,
                           "weights: node %u's own weight W[%u][%u] is %.9g; it must be above 0: make the weights of its "
                           "neighbours smaller", i, i, i, p->self[i]);
    return 0;
}

/* One of rows and columns must sum to 1 everywhere; otherwise no average of any kind is kept. */
static int check_sums(const phase *p, uint32_t nodes, sl_error *error) {
    uint32_t worst_row = 0, worst_column = 0;
    double row = 0, column = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        double r = fabs(p->self[i] + sum_of(&p->in, i) - 1), c = fabs(p->self[i] + sum_of(&p->out, i) - 1);
        if (r > row) {
            row = r;
            worst_row = i;
        }
        if (c > column) {
            column = c;
            worst_column = i;
        }
    }
    if (row <= SL_STOCHASTIC_TOLERANCE || column <= SL_STOCHASTIC_TOLERANCE)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "weights: row %u sums to %.9g (off by %.3g) and column %u to %.9g (off by %.3g); all rows, or all columns, "
                   "must sum to 1 within %g", worst_row, p->self[worst_row] + sum_of(&p->in, worst_row), row, worst_column,
                   p->self[worst_column] + sum_of(&p->out, worst_column), column, SL_STOCHASTIC_TOLERANCE);
}

static int check_listed(const phase *p, uint32_t nodes, sl_error *error) {
    for (uint32_t i = 0; i < nodes; i++)
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++)
            if (!isfinite(p->in.weights[e]) || p->in.weights[e] == 0)
                return sl_fail(error, SL_EINVAL, "edges: the weight of edge [%u, %u] is %g; it must be finite and not 0",
                               p->in.peers[e], i, p->in.weights[e]);
    return 0;
}

int phase_weigh(phase *p, const sl_topology_spec *spec, uint32_t nodes, sl_error *error) {
    sl_weighting weighting = spec->weighting;
    if ((weighting == SL_WEIGHTING_METROPOLIS || weighting == SL_WEIGHTING_LAZY) && !p->undirected)
        return sl_fail(error, SL_EINVAL, "weights: \"%s\" needs undirected edges; on a directed graph take \"push-sum\", "
                                         "\"uniform\", or give each edge its weight", weighting_name(weighting));
    int result = 0;
    if (weighting == SL_WEIGHTING_EXPLICIT)
        result = check_listed(p, nodes, error);
    else
        apply_scheme(p, weighting, nodes);
    if (result != 0)
        return result;
    mirror_weights(p, nodes);
    complete_self_weights(p, spec->self_completes_column, nodes);
    result = check_self_weights(p, nodes, error);
    return result != 0 ? result : check_sums(p, nodes, error);
}
