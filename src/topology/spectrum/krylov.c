/* krylov.c - products with W and with what its gaps belong to; see krylov.h.
 *
 * Long sums go block by block, so that a million terms cost no more digits than a few thousand.
 */
#include "topology/spectrum/krylov.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LANES = 8, BLOCK = 2048, HUGE_PAGE = 2 << 20 };

/* A sum and what rounding has taken from it (Kahan 1965): the centre of a star adds up as many
 * terms as there are nodes. */
typedef struct exact_sum {
    double sum, lost;
} exact_sum;

static void add(exact_sum *s, double term) {
    double missing = term - s->lost, sum = s->sum + missing;
    s->lost = (sum - s->sum) - missing;
    s->sum = sum;
}

/* order[new] = old, by breadth-first search from node 0; place[old] = new. Returns in how many
 * pieces the graph is. */
static uint32_t order_nodes(const side *rows, uint32_t n, uint32_t *order, uint32_t *place) {
    uint32_t placed = 0, next = 0, pieces = 0;
    for (uint32_t i = 0; i < n; i++)
        place[i] = UINT32_MAX;
    for (uint32_t root = 0; root < n; root++) {
        if (place[root] != UINT32_MAX)
            continue;
        pieces++;
        place[root] = placed;
        order[placed++] = root;
        for (; next < placed; next++)
            for (uint64_t e = rows->start[order[next]]; e < rows->start[order[next] + 1]; e++)
                if (place[rows->peers[e]] == UINT32_MAX) {
                    place[rows->peers[e]] = placed;
                    order[placed++] = rows->peers[e];
                }
    }
    return pieces;
}

static void renumber(sparse *w, const slot *p, const uint32_t *order, const uint32_t *place) {
    uint64_t at = 0;
    w->even = p->edges > 0 ? p->in.weights[0] : NAN;
    w->degree = (uint32_t)(p->in.start[1] - p->in.start[0]);
    for (uint32_t i = 0; i < w->nodes; i++) {
        w->start[i] = at;
        exact_sum kept = {1, 0};
        w->degree = p->in.start[order[i] + 1] - p->in.start[order[i]] == w->degree ? w->degree : 0;
        for (uint64_t e = p->in.start[order[i]]; e < p->in.start[order[i] + 1]; e++, at++) {
            w->peers[at] = place[p->in.peers[e]];
            w->weights[at] = p->in.weights[e];
            w->even = w->weights[at] == w->even ? w->even : NAN;
            add(&kept, -w->weights[at]);
        }
        w->self[i] = fabs(kept.sum) < 0x1p-50
                         ? 0
                         : kept.sum; /* 0 in theory is not always 0 in the weights' last digits */
    }
    w->start[w->nodes] = at;
}

int sl_sparse_open(sparse *out, const graph *g) {
    const slot *p = &g->slots[0];
    size_t n = g->nodes;
    sparse w = {.nodes = g->nodes, .edges = p->edges, .start = malloc((n + 1) * sizeof *w.start)};
    w.peers = calloc(p->edges + SPARSE_AHEAD, sizeof *w.peers);
    w.weights = malloc((p->edges + 1) * sizeof *w.weights);
    w.self = malloc(n * sizeof *w.self);
    uint32_t *order = malloc(n * sizeof *order), *place = malloc(n * sizeof *place);
    bool complete = w.start && w.peers && w.weights && w.self && order && place;
    if (complete) {
        w.pieces = order_nodes(&p->in, g->nodes, order, place);
        renumber(&w, p, order, place);
        *out = w;
    } else {
        sl_sparse_close(&w);
    }
    free(order);
    free(place);
    return complete ? 0 : -1;
}

void sl_sparse_close(sparse *w) {
    free(w->start);
    free(w->peers);
    free(w->weights);
    free(w->self);
    *w = (sparse){0};
}

double *sl_vector_allocate(size_t count) {
    size_t bytes = (count * sizeof(double) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (bytes <= HUGE_PAGE)
        return malloc((count + 1) * sizeof(double));
    double *x = aligned_alloc(HUGE_PAGE, bytes);
    if (x != NULL)
        madvise(x, bytes, MADV_HUGEPAGE);
    return x;
}

static double add_lanes(const double lanes[LANES]) {
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

double sl_vector_dot(const double *x, const double *y, uint32_t n) {
    double total = 0;
    for (uint32_t from = 0; from < n; from += BLOCK) {
        uint32_t i = from, to = n - from < BLOCK ? n : from + BLOCK;
        double lanes[LANES] = {0};
        for (; i + LANES <= to; i += LANES)
            for (uint32_t k = 0; k < LANES; k++)
                lanes[k] += x[i + k] * y[i + k];
        for (; i < to; i++)
            lanes[i % LANES] += x[i] * y[i];
        total += add_lanes(lanes);
    }
    return total;
}

void sl_vector_add(double *y, double factor, const double *x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        y[i] += factor * x[i];
}

void sl_vector_scale(double *x, double factor, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        x[i] *= factor;
}

double sl_end_residual(const sparse *w, end which, double theta, const double *x, double *y) {
    double sign = which == UPPER ? -1 : 1;
    for (uint32_t i = 0; i < w->nodes; i++) {
        exact_sum row = {which == UPPER ? 0 : 2 * w->self[i] * x[i], 0};
        for (uint64_t e = w->start[i]; e < w->start[i + 1]; e++)
            add(&row, w->weights[e] * (x[i] + sign * x[w->peers[e]]));
        y[i] = row.sum - theta * x[i];
    }
    return sl_vector_dot(y, y, w->nodes);
}

/* x_i's share of 2 x'Bx: every edge counts at both its ends. */
static double energy(const sparse *w, end which, const double *x, uint32_t i) {
    exact_sum row = {which == UPPER ? 0 : 4 * w->self[i] * x[i] * x[i], 0};
    double sign = which == UPPER ? -1 : 1;
    for (uint64_t e = w->start[i]; e < w->start[i + 1]; e++) {
        double d = x[i] + sign * x[w->peers[e]];
        add(&row, w->weights[e] * d * d);
    }
    return row.sum;
}

double sl_end_quotient(const sparse *w, end which, const double *x) {
    double total = 0;
    for (uint32_t from = 0; from < w->nodes; from += BLOCK) {
        uint32_t to = w->nodes - from < BLOCK ? w->nodes : from + BLOCK;
        double lanes[LANES] = {0};
        for (uint32_t i = from; i < to; i++)
            lanes[i % LANES] += energy(w, which, x, i);
        total += add_lanes(lanes);
    }
    return total / 2 / sl_vector_dot(x, x, w->nodes);
}

double sl_ritz_error(const ritz *r) {
    return r->separation > r->residual ? r->residual * (r->residual / r->separation) : r->residual;
}
