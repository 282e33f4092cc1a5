/* link_budget.c - see starling/link_budget.h. */
#include "starling/link_budget.h"

#include <math.h>
#include <stdlib.h>

#include "algorithm/gossip/edge_colours.h"
#include "wire/frame.h"

static const double bits_per_ms = 1e3; /* of 1 Mbit/s */

/* ---- the links ---- */

static double slower(double a, double b) {
    return a <= 0 ? b : b <= 0 ? a : fmin(a, b);
}

/* 0: infinite. */
static sl_link link_of(const sl_budget *b, uint32_t i, uint32_t j) {
    const sl_number_rows *links = b->links;
    const double *row = links != NULL ? links->values : NULL;
    for (size_t k = 0; links != NULL && k < links->rows; k++, row += links->columns)
        if ((row[0] == i && row[1] == j) || (row[0] == j && row[1] == i))
            return (sl_link){slower(row[2], b->link.bandwidth_mbit),
                             links->columns > 3 ? row[3] : b->link.latency_ms};
    return b->link;
}

static double slowest_given(const sl_budget *b) {
    double slowest = b->link.bandwidth_mbit;
    for (size_t k = 0; b->links != NULL && k < b->links->rows; k++)
        slowest = slower(slowest, b->links->values[k * b->links->columns + 2]);
    return slowest;
}

/* ---- what a compressor can be set to ---- */

static bool counts_entries(const sl_compressor_config *c) {
    return sl_compressor_reads(c->kind, "fraction");
}

static bool counts_levels(const sl_compressor_config *c) {
    return sl_compressor_reads(c->kind, "levels");
}

static bool counts_bits(const sl_compressor_config *c) {
    return sl_compressor_reads(c->kind, "bits");
}

static sl_compressor_config set_to(const sl_compressor_config *compressor, uint64_t value) {
    sl_compressor_config c = *compressor;
    if (counts_entries(&c))
        c.k = value;
    else if (counts_levels(&c))
        c.levels = (uint32_t)value;
    else
        c.bits = (uint32_t)value;
    return c;
}

static uint64_t least(const sl_budget *b, const sl_compressor_config *c, size_t dimension) {
    const double entries = ceil(b->fraction_min * (double)dimension);
    return counts_entries(c) && entries > 1 ? (uint64_t)entries : 1;
}

/* More than any compressor takes. */
static uint64_t beyond(const sl_compressor_config *c, size_t dimension) {
    return counts_entries(c) ? (uint64_t)dimension + 1 : (uint64_t)UINT16_MAX;
}

double sl_budget_message_ms(const sl_compressor_config *compressor, sl_link link,
                            size_t dimension) {
    const double bits = sl_compressor_bits(compressor, dimension) + 8.0 * SL_FRAME_HEADER_BYTES;
    return bits / (link.bandwidth_mbit * bits_per_ms);
}

static bool fits(const sl_compressor_config *c, const sl_budget_edge *edge, size_t dimension) {
    return sl_compressor_check(c, dimension, NULL) == 0 &&
           sl_compressor_bits(c, dimension) <= 32 * (double)dimension &&
           sl_budget_message_ms(c, edge->link, dimension) <= edge->ms;
}

sl_compressor_config sl_budget_compressor(const sl_budget *budget,
                                          const sl_compressor_config *compressor,
                                          const sl_budget_edge *edge, size_t dimension) {
    uint64_t low = least(budget, compressor, dimension), high = beyond(compressor, dimension);
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        const sl_compressor_config c = set_to(compressor, middle);
        *(fits(&c, edge, dimension) ? &low : &high) = middle;
    }
    return set_to(compressor, low);
}

/* ---- the steps' times ---- */

typedef struct sharing {
    const sl_budget *budget;
    double unknown;     /* bandwidth of a pair that has none */
    sl_link *slowest;   /* (steps) the least bandwidth, and the largest latency */
    double *ms;         /* (steps) what each has, without latency; NaN: a share of `left` */
    double *bandwidths; /* (edges) */
    size_t edges;
    uint32_t steps;
    double latencies, budget_ms; /* of all steps; with them */
    double left, share;          /* ms for the steps that share; their sum of 1/sqrt(b_s) */
    void (*each)(void *context, const sl_budget_edge *edge);
    void *context;
} sharing;

static sl_link known_link(const sharing *t, const sl_coloured_edge *e) {
    sl_link link = link_of(t->budget, e->i, e->j);
    if (link.bandwidth_mbit <= 0)
        link.bandwidth_mbit = t->unknown;
    return link;
}

static void note_edge(void *context, const sl_coloured_edge *e) {
    sharing *t = context;
    const sl_link link = known_link(t, e);
    sl_link *step = &t->slowest[e->colour];
    step->bandwidth_mbit = slower(step->bandwidth_mbit, link.bandwidth_mbit);
    step->latency_ms = fmax(step->latency_ms, link.latency_ms);
    t->bandwidths[t->edges++] = link.bandwidth_mbit;
}

static double share_of(const sharing *t, uint32_t step) {
    return 1 / sqrt(t->slowest[step].bandwidth_mbit) / t->share;
}

static void tell_edge(void *context, const sl_coloured_edge *e) {
    const sharing *t = context;
    const uint32_t c = e->colour;
    const double share = share_of(t, c);
    t->each(t->context, &(sl_budget_edge){.i = e->i,
                                          .j = e->j,
                                          .step = e->colour,
                                          .link = known_link(t, e),
                                          .ms = isnan(t->ms[c]) ? t->left * share : t->ms[c],
                                          .share = share,
                                          .round_ms = t->budget_ms});
}

static int by_size(const void *x, const void *y) {
    const double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

static void take_budget(sharing *t, const sl_compressor_config *compressor, size_t dimension) {
    for (uint32_t c = 0; c < t->steps; c++) {
        t->latencies += t->slowest[c].latency_ms;
        t->ms[c] = NAN;
    }
    qsort(t->bandwidths, t->edges, sizeof *t->bandwidths, by_size);
    t->left = isnan(t->budget->round_ms) && t->edges > 0
                  ? t->steps * sl_budget_message_ms(
                                   compressor, (sl_link){t->bandwidths[t->edges / 2], 0}, dimension)
                  : t->budget->round_ms - t->latencies;
    t->budget_ms = t->latencies + t->left;
}

/* Of whole vectors; or of what must be sent, if that is longer. */
static double most_ms(const sharing *t, uint32_t step, const sl_compressor_config *c,
                      size_t dimension) {
    static const sl_compressor_config whole = {.kind = SL_COMPRESSOR_IDENTITY};
    const sl_compressor_config must = set_to(c, least(t->budget, c, dimension));
    return fmax(sl_budget_message_ms(&whole, t->slowest[step], dimension),
                sl_budget_message_ms(&must, t->slowest[step], dimension));
}

/* Who has time for that needs no more. */
static void share_out(sharing *t, const sl_compressor_config *compressor, size_t dimension) {
    bool any;
    do {
        any = false;
        t->share = 0;
        for (uint32_t c = 0; c < t->steps; c++)
            t->share += isnan(t->ms[c]) ? 1 / sqrt(t->slowest[c].bandwidth_mbit) : 0;
        const double left = t->left;
        for (uint32_t c = 0; c < t->steps; c++) {
            const double most = most_ms(t, c, compressor, dimension);
            if (!isnan(t->ms[c]) || left * share_of(t, c) <= most)
                continue;
            t->ms[c] = most;
            t->left -= most;
            any = true;
        }
    } while (any);
}

static size_t count_edges(const sl_topology *topology, size_t *degree) {
    size_t ends = 0;
    *degree = 0;
    for (uint32_t i = 0; i < sl_topology_nodes(topology); i++) {
        const size_t count = sl_topology_in(topology, 1, i).count;
        ends += count;
        *degree = count > *degree ? count : *degree;
    }
    return ends / 2;
}

int sl_budget_edges(const sl_budget *budget, const sl_compressor_config *compressor,
                    const sl_topology *topology, size_t dimension,
                    void (*each)(void *context, const sl_budget_edge *edge), void *context,
                    sl_error *error) {
    size_t degree, edges = count_edges(topology, &degree);
    sharing t = {.budget = budget,
                 .unknown = slowest_given(budget),
                 .slowest = calloc(2 * degree + 1, sizeof *t.slowest),
                 .ms = calloc(2 * degree + 1, sizeof *t.ms),
                 .bandwidths = calloc(edges + 1, sizeof *t.bandwidths),
                 .each = each,
                 .context = context};
    int result = t.slowest != NULL && t.ms != NULL && t.bandwidths != NULL
                     ? sl_edge_colours_each(&t.steps, topology, note_edge, &t, error)
                     : sl_fail(error, SL_ENOMEM, "out of memory for the links of %zu edges", edges);
    if (result == 0) {
        take_budget(&t, compressor, dimension);
        share_out(&t, compressor, dimension);
        result = sl_edge_colours_each(&t.steps, topology, tell_edge, &t, error);
    }
    free(t.slowest);
    free(t.ms);
    free(t.bandwidths);
    return result;
}

/* ---- all edges ---- */

typedef struct measuring {
    const sl_budget *budget;
    const sl_compressor_config *compressor;
    size_t dimension;
    sl_budget_extent extent;
    double least, most; /* bits */
    double *step_ms;
} measuring;

static void measure_edge(void *context, const sl_budget_edge *e) {
    measuring *m = context;
    sl_budget_extent *x = &m->extent;
    const sl_compressor_config c = sl_budget_compressor(m->budget, m->compressor, e, m->dimension);
    const double bits = sl_compressor_bits(&c, m->dimension),
                 ms = sl_budget_message_ms(&c, e->link, m->dimension) + e->link.latency_ms;
    if (bits < m->least) {
        m->least = bits;
        x->least = *e;
        x->of_least = c;
    }
    if (bits > m->most) {
        m->most = bits;
        x->most = *e;
        x->of_most = c;
    }
    x->steps = e->step >= x->steps ? e->step + 1 : x->steps;
    m->step_ms[e->step] = fmax(m->step_ms[e->step], ms);
}

int sl_budget_measure(sl_budget_extent *out, const sl_budget *budget,
                      const sl_compressor_config *compressor, const sl_topology *topology,
                      size_t dimension, sl_error *error) {
    size_t degree;
    count_edges(topology, &degree);
    measuring m = {.budget = budget,
                   .compressor = compressor,
                   .dimension = dimension,
                   .least = INFINITY,
                   .step_ms = calloc(2 * degree + 1, sizeof *m.step_ms)};
    const int result =
        m.step_ms == NULL
            ? sl_fail(error, SL_ENOMEM, "out of memory for the links of %zu neighbours", degree)
            : sl_budget_edges(budget, compressor, topology, dimension, measure_edge, &m, error);
    for (uint32_t c = 0; result == 0 && c < m.extent.steps; c++)
        m.extent.round_ms += m.step_ms[c];
    free(m.step_ms);
    *out = m.extent;
    return result;
}

/* ---- refusals ---- */

static int refuse_compressor(const sl_compressor_config *c, sl_error *error) {
    if (c->scope == SL_SCOPE_TENSOR)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.per: \"tensor\", but algorithm.budget sizes messages "
                       "of the whole model; leave one of them out");
    return sl_fail(error, SL_EINVAL,
                   "algorithm.compressor.name: \"%s\" has no fraction, levels or bits that could "
                   "follow a link, as algorithm.budget asks; take top-k, random-k, qsgd or eden, "
                   "or leave the budget out",
                   sl_compressor_name(c->kind));
}

int sl_budget_check(const sl_budget *budget, const sl_compressor_config *c,
                    const sl_topology *topology, sl_error *error) {
    if (c->scope == SL_SCOPE_TENSOR || !(counts_entries(c) || counts_levels(c) || counts_bits(c)))
        return refuse_compressor(c, error);
    for (uint32_t i = 0; i < sl_topology_nodes(topology); i++) {
        const sl_row row = sl_topology_in(topology, 1, i);
        for (uint32_t k = 0; k < row.count; k++)
            if (link_of(budget, i, row.peers[k]).bandwidth_mbit <= 0)
                return sl_fail(error, SL_EINVAL,
                               "algorithm.budget: goes by the bandwidth of each edge, and nothing "
                               "says that of nodes %u and %u; set network.bandwidth_mbit, or list "
                               "the pair in network.links",
                               i, row.peers[k]);
    }
    return 0;
}

/* The edge whose least message asks for the longest round. */
typedef struct lack {
    const sl_budget *budget;
    const sl_compressor_config *compressor;
    size_t dimension;
    sl_budget_edge edge;
    double takes, needs; /* ms: it, and the round */
} lack;

static void note_lack(void *context, const sl_budget_edge *e) {
    lack *l = context;
    const sl_compressor_config c =
        set_to(l->compressor, least(l->budget, l->compressor, l->dimension));
    const double takes = sl_budget_message_ms(&c, e->link, l->dimension),
                 needs = e->round_ms + (takes - e->ms) / e->share;
    if (takes > e->ms && needs > l->needs) {
        l->edge = *e;
        l->takes = takes;
        l->needs = needs;
    }
}

static const double rounding = 1.001; /* of what is said to be enough */

int sl_budget_check_times(const sl_budget *budget, const sl_compressor_config *c,
                          const sl_topology *topology, size_t dimension, sl_error *error) {
    lack l = {.budget = budget, .compressor = c, .dimension = dimension};
    const int result = sl_budget_edges(budget, c, topology, dimension, note_lack, &l, error);
    if (result != 0 || l.needs == 0)
        return result;
    return sl_fail(error, SL_EINVAL,
                   "algorithm.budget.round_ms: leaves the link of nodes %u and %u, %g Mbit/s, %.4g "
                   "ms, but the least message, %s, takes it %.4g ms; allow %.4g ms%s",
                   l.edge.i, l.edge.j, l.edge.link.bandwidth_mbit, fmax(l.edge.ms, 0),
                   counts_entries(c) ? "of algorithm.budget.fraction_min" : "of 1 level or bit",
                   l.takes, rounding * l.needs, counts_entries(c) ? ", or lower fraction_min" : "");
}
