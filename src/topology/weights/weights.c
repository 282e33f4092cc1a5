/* weights.c - the weight schemes: from edges to W. One row of `schemes` each; docs/topology.md has
 * them with their properties.
 *
 * Sources: metropolis, max-degree, best-constant, fdla: Xiao, Boyd, "Fast linear iterations for
 * distributed averaging", 2004. fmmc, metropolis0: Boyd, Diaconis, Xiao, "Fastest mixing Markov
 * chain on a graph", 2004. The forms that end in 0 are those of the papers, in which a node of the
 * largest degree keeps nothing for itself; the forms without add the node itself to its neighbours.
 *
 * bandwidth is Metropolis and Hastings' rule for a walk that leaves a node over link j in
 * proportion to the link's bandwidth b_ij, made aperiodic as metropolis is: W_ij = b_ij / (b_ij +
 * max(B_i, B_j)), B_i = sum_j b_ij. On equal links it is metropolis.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "starling/links.h"
#include "starling/suggest.h"
#include "starling/weights.h"
#include "topology/weights/optimal.h"
#include "topology/weights/rounding.h"

typedef struct weighing {
    const slot *p;
    const sl_links *links;
    double *bandwidths; /* (nodes) of all links of a node */
    uint64_t degree_max;
} weighing;

typedef struct scheme {
    const char *lazy_name; /* its name is what follows "lazy-" */
    const char *meaning;
    bool undirected;   /* needs every edge's reverse */
    bool by_column;    /* a node's own weight is what its column lacks to 1, not its row */
    bool own_not_kept; /* own weights may be 0 or below */
    double (*edge)(const weighing *g, uint32_t i, uint32_t j); /* W_ij; NULL: */
    whole_rule *whole; /* the weights of a connected graph at once */
} scheme;

/* ---- rules ---- */

static uint64_t degree(const side *s, uint32_t i) {
    return s->start[i + 1] - s->start[i];
}

static double larger_degree(const weighing *g, uint32_t i, uint32_t j) {
    return fmax((double)degree(&g->p->in, i), (double)degree(&g->p->in, j));
}

static double metropolis(const weighing *g, uint32_t i, uint32_t j) {
    return 1 / (1 + larger_degree(g, i, j));
}

static double metropolis0(const weighing *g, uint32_t i, uint32_t j) {
    return 1 / larger_degree(g, i, j);
}

static double max_degree(const weighing *g, uint32_t i, uint32_t j) {
    (void)i, (void)j;
    return 1 / (1 + (double)g->degree_max);
}

static double max_degree0(const weighing *g, uint32_t i, uint32_t j) {
    (void)i, (void)j;
    return 1 / (double)g->degree_max;
}

static double uniform(const weighing *g, uint32_t i, uint32_t j) {
    (void)j;
    return 1 / (1 + (double)degree(&g->p->in, i));
}

static double push_sum(const weighing *g, uint32_t i, uint32_t j) {
    (void)i;
    return 1 / (1 + (double)degree(&g->p->out, j));
}

static double bandwidth(const weighing *g, uint32_t i, uint32_t j) {
    double own = sl_links_get(g->links, i, j).bandwidth_mbit;
    return own / (own + fmax(g->bandwidths[i], g->bandwidths[j]));
}

static const scheme schemes[SL_WEIGHTINGS] = {
    [SL_WEIGHTING_METROPOLIS] = {"lazy-metropolis", "1/(1 + max(d_i, d_j))", .undirected = true,
                                 .edge = metropolis},
    [SL_WEIGHTING_METROPOLIS0] = {"lazy-metropolis0", "1/max(d_i, d_j)", .undirected = true,
                                  .own_not_kept = true, .edge = metropolis0},
    [SL_WEIGHTING_MAX_DEGREE] = {"lazy-max-degree", "I - L/(1 + largest degree)",
                                 .undirected = true, .edge = max_degree},
    [SL_WEIGHTING_MAX_DEGREE0] = {"lazy-max-degree0", "I - L/largest degree", .undirected = true,
                                  .own_not_kept = true, .edge = max_degree0},
    [SL_WEIGHTING_UNIFORM] = {"lazy-uniform", "1/(1 + in-degree of the receiver): rows sum to 1",
                              .edge = uniform},
    [SL_WEIGHTING_BEST_CONSTANT] = {"lazy-best-constant",
                                    "I - aL, a = 2/(lambda_2(L) + lambda_max(L))",
                                    .undirected = true, .own_not_kept = true,
                                    .whole = sl_weights_best_constant},
    [SL_WEIGHTING_FMMC] = {"lazy-fmmc",
                           "fastest mixing: non-negative symmetric weights of the smallest rho",
                           .undirected = true, .own_not_kept = true,
                           .whole = sl_weights_fastest_mixing},
    [SL_WEIGHTING_FDLA] =
        {"lazy-fdla",
         "fastest linear averaging: symmetric weights of any sign, of the smallest rho",
         .undirected = true, .own_not_kept = true, .whole = sl_weights_fastest_averaging},
    [SL_WEIGHTING_PUSH_SUM] = {"lazy-push-sum",
                               "1/(1 + out-degree of the sender): columns sum to 1",
                               .by_column = true, .edge = push_sum},
    [SL_WEIGHTING_BANDWIDTH] =
        {"lazy-bandwidth",
         "b_ij/(b_ij + max(B_i, B_j)) of the links' bandwidths b and their sums B",
         .undirected = true, .edge = bandwidth},
};

/* ---- names ---- */

enum { LAZY_LENGTH = sizeof "lazy-" - 1 };

const char *sl_weighting_name(sl_weighting weighting, bool lazy) {
    return weighting == SL_WEIGHTING_EXPLICIT
               ? "explicit"
               : schemes[weighting].lazy_name + (lazy ? 0 : LAZY_LENGTH);
}

const char *sl_weighting_meaning(sl_weighting weighting) {
    return weighting == SL_WEIGHTING_EXPLICIT ? "as listed" : schemes[weighting].meaning;
}

int sl_weighting_parse(sl_weighting *weighting, bool *lazy, const char *name, sl_error *error) {
    const char *names[2 * SL_WEIGHTINGS];
    char all[512] = "; it must be one of ", way_out[sizeof all];
    if (strcmp(name, "lazy") == 0) /* its name when it was the only lazy one */
        name = "lazy-metropolis";
    for (int i = 0; i < 2 * SL_WEIGHTINGS; i++) {
        names[i] = sl_weighting_name((sl_weighting)(i / 2), i % 2);
        if (strcmp(name, names[i]) == 0) {
            *weighting = (sl_weighting)(i / 2);
            *lazy = i % 2;
            return 0;
        }
        if (i % 2 == 0)
            strcat(strcat(all, i ? ", " : ""), names[i]);
    }
    strcat(all, ", or lazy- and one of them");
    sl_suggest_text(way_out, sizeof way_out, name, names, 2 * SL_WEIGHTINGS, all);
    return sl_fail(error, SL_EINVAL, "weights: \"%.64s\" is not known%s", name, way_out);
}

/* ---- filling ---- */

static int check_scheme(const slot *p, const sl_topology_spec *spec, uint32_t nodes,
                        sl_error *error) {
    if (schemes[spec->weighting].undirected && !p->undirected)
        return sl_fail(error, SL_EINVAL,
                       "weights: \"%s\" needs undirected edges; on a directed graph take "
                       "\"push-sum\", \"uniform\", or give "
                       "each edge its weight",
                       sl_weighting_name(spec->weighting, spec->lazy));
    if (spec->weighting != SL_WEIGHTING_BANDWIDTH)
        return 0;
    if (spec->links == NULL)
        return sl_fail(error, SL_EINVAL,
                       "links: missing; weights \"bandwidth\" follow from it: a links file's name, "
                       "or what it holds");
    if (sl_links_nodes(spec->links) != nodes)
        return sl_fail(error, SL_EINVAL, "links: are of %u nodes, and the topology has %u",
                       sl_links_nodes(spec->links), nodes);
    for (uint32_t i = 0; i < nodes; i++)
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++)
            if (sl_links_get(spec->links, i, p->in.peers[e]).bandwidth_mbit == 0)
                return sl_fail(error, SL_EINVAL,
                               "links: the link between %u and %u has no bandwidth_mbit, or 0, "
                               "which stands for infinite; "
                               "weights \"bandwidth\" need a number above 0 for each edge",
                               i, p->in.peers[e]);
    return 0;
}

static int apply_rule(slot *p, const scheme *s, const sl_links *links, uint32_t nodes,
                      sl_error *error) {
    weighing g = {.p = p, .links = links, .bandwidths = calloc(nodes, sizeof *g.bandwidths)};
    if (g.bandwidths == NULL)
        return sl_fail(error, SL_ENOMEM, "weights: out of memory for %u nodes", nodes);
    uint64_t degree_min = UINT64_MAX;
    for (uint32_t i = 0; i < nodes; i++) {
        g.degree_max = degree(&p->in, i) > g.degree_max ? degree(&p->in, i) : g.degree_max;
        degree_min = degree(&p->in, i) < degree_min ? degree(&p->in, i) : degree_min;
        for (uint64_t e = p->in.start[i]; links != NULL && e < p->in.start[i + 1]; e++)
            g.bandwidths[i] += sl_links_get(links, i, p->in.peers[e]).bandwidth_mbit;
    }
    bool alike =
        degree_min == g.degree_max && p->undirected &&
        links == NULL; /* then one edge is as good as another, and none need be looked up */
    for (uint32_t i = 0; i < nodes; i++)
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++)
            p->in.weights[e] = alike && e > 0 ? p->in.weights[0] : s->edge(&g, i, p->in.peers[e]);
    free(g.bandwidths);
    return 0;
}

/* Where no self-loop was listed, the own weight is what the row (or the column) lacks. */
static int complete_own_weights(slot *p, bool by_column, bool may_vanish, uint32_t nodes,
                                sl_error *error) {
    for (uint32_t i = 0; i < nodes; i++) {
        if (!isnan(p->self[i]))
            continue;
        p->self[i] = 1 - sl_side_sum(by_column ? &p->out : &p->in, i);
        if (!may_vanish && !(p->self[i] > 0))
            return sl_fail(error, SL_EINVAL,
                           "weights: node %u's own weight W[%u][%u] is %.9g, all that its "
                           "neighbours leave to 1; make their weights smaller, or if it is "
                           "meant to be so, list it",
                           i, i, i, p->self[i]);
    }
    return 0;
}

/* (I + W)/2 */
static void make_lazy(slot *p, uint32_t nodes) {
    for (uint64_t e = 0; e < p->edges; e++) {
        p->in.weights[e] /= 2;
        p->out.weights[e] /= 2;
    }
    for (uint32_t i = 0; i < nodes; i++)
        p->self[i] = (1 + p->self[i]) / 2;
}

/* ---- checking ---- */

/* The largest distance of a row's sum (a column's) from 1, and whose it is. */
static double worst_of(uint32_t *node, const slot *p, const side *s, uint32_t nodes) {
    double worst = 0;
    *node = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        double off = fabs(p->self[i] + sl_side_sum(s, i) - 1);
        if (off > worst) {
            worst = off;
            *node = i;
        }
    }
    return worst;
}

/* One of rows and columns must sum to 1 everywhere; otherwise no average of any kind is kept. */
static int check_sums(const slot *p, uint32_t nodes, sl_error *error) {
    uint32_t worst_row, worst_column;
    const double row = worst_of(&worst_row, p, &p->in, nodes),
                 column = worst_of(&worst_column, p, &p->out, nodes);
    if (row <= SL_STOCHASTIC_TOLERANCE || column <= SL_STOCHASTIC_TOLERANCE)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "weights: row %u sums to %.9g (off by %.3g) and column %u to %.9g (off by "
                   "%.3g); all rows, or all columns, must sum to 1 within %g for each weight; "
                   "leave the self-weights [i, i, weight] out: they are then 1 minus the rest",
                   worst_row, p->self[worst_row] + sl_side_sum(&p->in, worst_row), row,
                   worst_column, p->self[worst_column] + sl_side_sum(&p->out, worst_column), column,
                   SL_ROUNDED_WEIGHT);
}

static int check_listed(const slot *p, uint32_t nodes, sl_error *error) {
    for (uint32_t i = 0; i < nodes; i++) {
        if (isinf(p->self[i]))
            return sl_fail(error, SL_EINVAL, "edges: node %u's own weight is %g; it must be finite",
                           i, p->self[i]);
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++)
            if (!isfinite(p->in.weights[e]) || p->in.weights[e] == 0)
                return sl_fail(
                    error, SL_EINVAL,
                    "edges: the weight of edge [%u, %u] is %g; it must be finite and not 0",
                    p->in.peers[e], i, p->in.weights[e]);
    }
    return 0;
}

int sl_slot_weigh(slot *p, const sl_topology_spec *spec, uint32_t nodes, sl_error *error) {
    static const scheme listed = {.lazy_name = "lazy-explicit"};
    bool is_explicit = spec->weighting == SL_WEIGHTING_EXPLICIT;
    const scheme *s = is_explicit ? &listed : &schemes[spec->weighting];
    if (is_explicit && spec->lazy)
        return sl_fail(error, SL_EINVAL,
                       "weights: a lazy form is one of a scheme, and these weights are listed or "
                       "the family's own; halve them instead");
    int result = is_explicit ? check_listed(p, nodes, error) : check_scheme(p, spec, nodes, error);
    if (result == 0 && s->whole != NULL)
        result = sl_weights_by_component(p, s->whole, nodes, spec->watch, error);
    else if (result == 0 && s->edge != NULL)
        result = apply_rule(p, s, spec->links, nodes, error);
    if (result != 0)
        return result;
    sl_slot_mirror_weights(p, nodes);
    result = complete_own_weights(p, s->by_column || spec->self_completes_column, s->own_not_kept,
                                  nodes, error);
    if (result == 0 && spec->lazy)
        make_lazy(p, nodes);
    if (result == 0 && is_explicit)
        result = sl_weights_mend_rounding(p, nodes, error);
    return result != 0 ? result : check_sums(p, nodes, error);
}
