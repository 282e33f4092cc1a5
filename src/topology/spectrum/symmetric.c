/* symmetric.c - lambda_2 and lambda_n of a symmetric W by iterations: which, and what they are
 * worth.
 *
 * Lanczos' recurrence first. It ends at once on expanders. If it finds that a gap is small and is
 * not getting there, the graph is worth a Cholesky factor, provided that its fill can be afforded;
 * else the recurrence goes on to the limit.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/watch.h"
#include "topology/spectrum/inverse.h"
#include "topology/spectrum/lanczos.h"

enum { PATIENCE = 200, GUESS_STEPS = 60 };
static const double factor_entries_max = 1.5e8; /* 1.2 GB */
static const double factor_weight =
    3; /* an operation of a factor counts as so many: they wait for one another */
static const double recurrence_share =
    0.9; /* of the tolerance: what the recurrence promises, its vectors keep to a few digits */
static const double rounding = 0x1p-48; /* of a gap that is written over the edges, relative */

typedef struct search {
    sparse w;
    const sl_spectrum_settings *settings;
    lanczos recurrence;
    ritz ends[2];     /* by `end` */
    bool known[2];    /* without any iteration */
    bool inverted[2]; /* solved with a factor */
    double *vectors[2], *spare;
    uint64_t products;
} search;

/* The recurrence runs twice. */
static uint32_t affordable_steps(const sparse *w, double work_max) {
    double steps = work_max / 2 / (2.0 * (double)w->edges + 12.0 * w->nodes);
    return steps < 20 ? 20 : steps > 1e6 ? 1000000 : (uint32_t)steps;
}

/* Every piece is bipartite and no node keeps anything: -1 is an eigenvalue. The order of nodes is
 * breadth first, so that only the first of a piece has no neighbour before it. */
static bool swaps_sides(const sparse *w, double *signs) {
    memset(signs, 0, w->nodes * sizeof *signs);
    for (uint32_t i = 0; i < w->nodes; i++) {
        signs[i] = signs[i] == 0 ? 1 : signs[i];
        if (w->self[i] != 0)
            return false;
        for (uint64_t e = w->start[i]; e < w->start[i + 1]; e++) {
            if (signs[w->peers[e]] == signs[i])
                return false;
            signs[w->peers[e]] = -signs[i];
        }
    }
    return true;
}

static void judge(search *s, end which, double separation) {
    const double *v = s->vectors[which];
    ritz *r = &s->ends[which];
    r->value = sl_end_quotient(&s->w, which, v);
    r->residual = sqrt(sl_end_residual(&s->w, which, r->value, v, s->spare) /
                       sl_vector_dot(v, v, s->w.nodes));
    r->separation = separation;
}

/* Solves one end with a factor of its own, if that can be afforded. -1 without memory. */
static int invert(search *s, end which) {
    const settled *guess = &s->recurrence.ends[which];
    factor_cost cost;
    factor *f = sl_factor_open(&s->w, which, &cost);
    int result = 0;
    sl_watch_tell(s->settings->watch, 0); /* nobody knows how far it is */
    if (f != NULL && cost.entries <= factor_entries_max &&
        factor_weight * cost.operations <= s->settings->work_max) {
        result = sl_factor_lanczos(f, guess->gap, guess->estimate, s->settings->tolerance,
                                   &s->ends[which], s->vectors[which], &s->products);
        s->inverted[which] = result == 0;
    }
    sl_factor_close(&f);
    return result < 0 ? -1 : 0;
}

/* The eigenvectors of the ends that the recurrence has solved, or come closest to. */
static int collect(search *s) {
    lanczos *l = &s->recurrence;
    sl_watch_tell(s->settings->watch, 0);
    if (sl_lanczos_vectors(l, s->vectors) != 0)
        return -1;
    for (end which = UPPER; which <= LOWER; which++)
        if (!s->inverted[which] && !s->known[which])
            judge(s, which, l->ends[which].separation);
    s->products += l->steps + 2;
    return 0;
}

/* An end whose gap is small and open; and the lower one along with the upper one, where that has
 * shown that a factor can be had: there, unlike at the upper end, a shift makes up for a gap that
 * is not small. */
static bool is_for_factor(const search *s, end which) {
    const settled *e = &s->recurrence.ends[which];
    return !e->converged && (e->gap < SMALL_GAP || (which == LOWER && s->inverted[UPPER]));
}

static int run(search *s) {
    lanczos *l = &s->recurrence;
    double tolerance = recurrence_share * s->settings->tolerance;
    sl_spectrum_method method = s->settings->method;
    uint32_t steps_max = affordable_steps(&s->w, s->settings->work_max);
    int result = sl_lanczos_open(l, &s->w, s->settings->watch);
    for (end which = UPPER; which <= LOWER; which++)
        l->ends[which].converged = s->known[which];
    if (result == 0)
        result =
            sl_lanczos_run(l, tolerance, method == SL_SPECTRUM_INVERSE ? GUESS_STEPS : steps_max,
                           method == SL_SPECTRUM_LANCZOS ? steps_max : PATIENCE, SMALL_GAP);
    for (end which = UPPER; which <= LOWER && result == 0 && method != SL_SPECTRUM_LANCZOS; which++)
        if (!s->known[which] && (method == SL_SPECTRUM_INVERSE || is_for_factor(s, which)))
            result = invert(s, which);
    for (end which = UPPER; which <= LOWER; which++)
        l->ends[which].converged = l->ends[which].converged || s->inverted[which];
    if (result == 0)
        result = sl_lanczos_run(l, tolerance, steps_max, steps_max, 0);
    if (result == 0 &&
        !((s->inverted[UPPER] || s->known[UPPER]) && (s->inverted[LOWER] || s->known[LOWER])))
        result = collect(s);
    s->products += l->steps;
    sl_lanczos_close(l);
    return result;
}

static void report(sl_spectrum *out, const search *s) {
    const ritz *upper = &s->ends[UPPER], *lower = &s->ends[LOWER],
               *narrow = upper->value < lower->value ? upper : lower;
    *out = sl_spectrum_from_gaps(s->w.nodes, upper->value, lower->value);
    out->residual = fmax(upper->residual, lower->residual);
    out->gap_error =
        narrow->value == 0 ? 0 : sl_ritz_error(narrow) / fabs(narrow->value) + rounding;
    out->converged = out->residual <= s->settings->tolerance && out->gap_error <= GAP_ERROR_MAX;
    out->multiplicity =
        s->w.pieces - 1; /* of 1 where there is more than one piece; else not known */
    out->method =
        s->inverted[UPPER] || s->inverted[LOWER] ? SL_SPECTRUM_INVERSE : SL_SPECTRUM_LANCZOS;
    out->products = s->products;
}

int sl_spectrum_symmetric(sl_spectrum *out, const graph *g, const sl_spectrum_settings *settings,
                          sl_error *error) {
    search s = {.settings = settings, .spare = sl_vector_allocate(g->nodes)};
    s.vectors[UPPER] = sl_vector_allocate(g->nodes);
    s.vectors[LOWER] = sl_vector_allocate(g->nodes);
    bool allocated = s.spare && s.vectors[UPPER] && s.vectors[LOWER];
    int result = allocated ? sl_sparse_open(&s.w, g) : -1;
    if (result == 0) {
        s.known[UPPER] = s.w.pieces > 1;
        s.known[LOWER] = swaps_sides(&s.w, s.spare);
        result = run(&s);
        if (result == 0)
            report(out, &s);
        sl_sparse_close(&s.w);
    }
    free(s.spare);
    free(s.vectors[UPPER]);
    free(s.vectors[LOWER]);
    return result == 0 ? 0
                       : sl_fail(error, SL_ENOMEM,
                                 "spectrum: out of memory for the vectors of %u nodes", g->nodes);
}
