/* findings.c - collects what the library knows of a topology; see findings.h. */
#include "topology/findings.h"

#include <math.h>
#include <stdlib.h>

#include "cli/patience.h"

enum { ROUNDS_MIN = 16, ROUNDS_MAX = 512 };

static int take_closed_form(findings *f, sl_error *error) {
    const sl_topology_spec *spec = f->asked.spec;
    const char *family = sl_family_describe(spec->family)->name;
    if (!sl_structure_closed_form(&f->structure, spec) ||
        !sl_spectrum_closed_form(&f->spectrum, spec))
        return sl_fail(error, SL_EINVAL,
                       "nodes: %u are too many for family \"%s\" with these weights, for which no "
                       "formula is known; at most %u nodes",
                       spec->nodes, family, SL_NODES_MAX);
    if (f->asked.eigenvalues)
        return sl_fail(error, SL_EINVAL,
                       "--spectrum: all eigenvalues of %u nodes are too many; at most %u nodes",
                       spec->nodes, SL_SPECTRUM_DENSE_NODES_MAX);
    f->by_formula = true;
    f->report = (sl_topology_report){.nodes = spec->nodes, .period = 1};
    sl_stochasticity_closed_form(&f->report.stochastic, spec);
    f->mixing = sl_mixing_bounds(spec->nodes, f->spectrum.gap);
    f->perron_min = f->perron_max = 1. / spec->nodes;
    f->loss.rho = f->structure.cut_nodes > 0 ? 1 : NAN;
    f->traffic = (sl_traffic){.messages = 2 * (double)f->structure.edges,
                              .sent_mean = f->structure.degree_mean,
                              .sent_max = f->structure.degree_max};
    for (int i = 0; i < FINDINGS_DECAY_COUNT; i++)
        f->neighbours[i] = NAN;
    return 0;
}

static int take_errors(findings *f, sl_error *error) {
    const sl_topology *t = f->asked.topology;
    uint32_t period = sl_topology_period(t),
             rounds = period > ROUNDS_MIN / 2 ? 2 * period : ROUNDS_MIN;
    rounds = rounds < ROUNDS_MAX ? rounds : ROUNDS_MAX;
    if (sl_topology_is_endless(t))
        rounds = period;
    int result = sl_topology_exact_after(&f->exact_after, t, rounds, error);
    if (result != 0 || (period == 1 && f->report.stochastic.symmetric))
        return result;
    rounds = f->exact_after > 0 ? f->exact_after : rounds;
    f->errors = calloc(rounds, sizeof *f->errors);
    if (f->errors == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u rounds", rounds);
    result = sl_topology_product_errors(f->errors, rounds, t, error);
    while (f->error_count < rounds && !isnan(f->errors[f->error_count]))
        f->error_count++;
    return result;
}

static int take_perron(findings *f, sl_error *error) {
    uint32_t n = f->report.nodes;
    f->perron = calloc(n, sizeof *f->perron);
    if (f->perron == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", n);
    int result = sl_topology_perron(f->perron, &f->perron_residual, f->asked.topology, error);
    f->perron_min = f->perron_max = f->perron[0];
    for (uint32_t i = 0; i < n; i++) {
        f->perron_min = fmin(f->perron_min, f->perron[i]);
        f->perron_max = fmax(f->perron_max, f->perron[i]);
    }
    return result;
}

static int take_eigenvalues(findings *f, sl_error *error) {
    uint32_t n = f->report.nodes;
    f->real = calloc(n, sizeof *f->real);
    f->imaginary = calloc(n, sizeof *f->imaginary);
    if (f->real == NULL || f->imaginary == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u eigenvalues", n);
    return sl_spectrum_eigenvalues(f->asked.topology, f->real, f->imaginary, error);
}

static int take_topology(findings *f, sl_error *error) {
    static const double decays[] = FINDINGS_DECAYS;
    const sl_topology *t = f->asked.topology;
    f->report.nodes = sl_topology_nodes(t);
    f->report.period = sl_topology_period(t);
    f->report.stochastic = sl_topology_stochasticity(t);
    f->traffic = sl_topology_traffic(t);
    sl_spectrum_settings settings;
    sl_spectrum_defaults(&settings);
    settings.watch = patience_watch();
    f->optimized = sl_topology_optimum(&f->optimum, t);
    int result = sl_topology_structure(&f->structure, t, error);
    if (result == 0)
        result = sl_spectrum_compute(&f->spectrum, t, &settings, error);
    if (result == 0)
        result = take_errors(f, error);
    if (result == 0)
        result = sl_topology_mixing_time(&f->mixing, t, f->spectrum.gap, error);
    for (int i = 0; i < FINDINGS_DECAY_COUNT && result == 0; i++)
        result = sl_topology_effective_neighbours(&f->neighbours[i], t, decays[i], error);
    if (result == 0)
        result = take_perron(f, error);
    if (result == 0)
        result = sl_topology_worst_loss(&f->loss, t, error);
    if (result == 0 && f->asked.eigenvalues)
        result = take_eigenvalues(f, error);
    return result;
}

/* Findings that follow from the spectrum, and for schedules those of each round. */
static void derive(findings *f) {
    const sl_spectrum *s = &f->spectrum;
    bool exact = f->exact_after > 0;
    f->gap_per_round = exact                   ? 1
                       : f->report.period == 1 ? s->gap
                                               : -expm1(log1p(-s->gap) / f->report.period);
    f->effective_rho = 1 - f->gap_per_round;
    f->rounds = sl_rounds_along(f->errors, f->error_count, f->report.period, f->gap_per_round,
                                f->asked.epsilon);
    f->consensus_rate =
        s->symmetric ? s->gap * (1 + s->rho) : (1 - s->singular_2) * (1 + s->singular_2);
    sl_topology_report *r = &f->report;
    r->edges = f->structure.edges;
    r->degree_min = f->structure.degree_min;
    r->degree_max = f->structure.degree_max;
    r->degree_mean = f->structure.degree_mean;
    r->connected = f->structure.connected;
    r->spectrum_known = true;
    r->lambda_2 = s->lambda_2;
    r->lambda_n = s->lambda_n;
    r->rho = s->rho;
    r->gap = s->gap;
}

/* All compressors, with an experiment's default parameters. */
static void take_costs(findings *f) {
    const inquiry *a = &f->asked;
    for (int kind = 0; kind < SL_COMPRESSOR_COUNT; kind++) {
        message_cost *m = &f->messages[kind];
        *m = (message_cost){.compressor = {.kind = (sl_compressor_kind)kind,
                                           .fraction = 0.01,
                                           .levels = 7,
                                           .bits = 2,
                                           .probability = 0.1,
                                           .threshold = 0.1,
                                           .bin = 500,
                                           .multiplier = 1},
                            .serial_s = NAN,
                            .parallel_s = NAN};
        m->bytes = ceil(sl_compressor_bits(&m->compressor, a->parameters) / 8);
        if (a->links != NULL && a->topology != NULL) {
            m->serial_s =
                sl_topology_round_seconds(a->topology, a->links, NULL, m->bytes, SL_PORT_SERIAL);
            m->parallel_s =
                sl_topology_round_seconds(a->topology, a->links, NULL, m->bytes, SL_PORT_PARALLEL);
        }
    }
}

int findings_open(findings *out, const inquiry *asked, sl_error *error) {
    *out = (findings){.asked = *asked};
    int result = asked->topology != NULL ? take_topology(out, error) : take_closed_form(out, error);
    if (result != 0)
        return result;
    derive(out);
    take_costs(out);
    return 0;
}

void findings_close(findings *f) {
    free(f->real);
    free(f->imaginary);
    free(f->errors);
    free(f->perron);
    *f = (findings){0};
}

/* ---- notes ---- */

/* Weights that should sum to 1 but were rounded. */
#define ALMOST 1e-3
#define ROUNDING 1e-12

static bool is_almost(bool holds, double residual) {
    return !holds && residual < ALMOST;
}

static bool alternates(const findings *f) {
    const inquiry *a = &f->asked;
    return a->topology != NULL ? sl_topology_alternates(a->topology)
                               : f->report.nodes > 1 && f->spectrum.gap_lambda_n == 0;
}

/* The file's text for it, if W has a name. */
static const char *lazy_form(const findings *f, char name[64]) {
    const sl_topology_spec *spec =
        f->asked.topology != NULL ? sl_topology_description(f->asked.topology) : f->asked.spec;
    name[0] = '\0';
    if (spec->weighting != SL_WEIGHTING_EXPLICIT)
        snprintf(name, 64, ": \"weights\": \"%s\"", sl_weighting_name(spec->weighting, true));
    return name;
}

size_t findings_notes(const findings *f, char notes[NOTES_MAX][NOTE_BYTES]) {
    const sl_stochasticity *s = &f->report.stochastic;
    size_t count = 0;
    char name[64], mended[NOTE_BYTES / 2];
#define NOTE(...) snprintf(notes[count++], NOTE_BYTES, __VA_ARGS__)
    if (f->asked.note != NULL && f->asked.note[0] != '\0')
        NOTE("%s", f->asked.note);
    if (!f->structure.connected)
        NOTE("The graph falls into %u parts; the largest has %u of %u nodes. Nothing can be "
             "trained on it: nodes of one part never hear of another's.",
             f->structure.components, f->structure.component_nodes_max, f->report.nodes);
    if (alternates(f))
        NOTE("lambda_n = -1: the graph is bipartite and no node keeps a weight for itself, so that "
             "averages swing between its two sides for ever. "
             "The lazy form of the weights, (I + W)/2, has no negative eigenvalue%s.",
             lazy_form(f, name));
    if (f->asked.topology != NULL && sl_topology_mended(mended, sizeof mended, f->asked.topology))
        NOTE("In the file %s.", mended);
    if (is_almost(s->row, s->row_residual) || is_almost(s->column, s->column_residual))
        NOTE("%s almost sum to 1 (off by %.3g at most, %g is allowed): were the weights rounded? "
             "Give more digits, or leave the nodes' own weights out.",
             s->row ? "Columns" : "Rows", s->row ? s->column_residual : s->row_residual,
             SL_STOCHASTIC_TOLERANCE);
    else if (!s->column)
        NOTE("Columns do not sum to 1: nodes agree, but not on the average; node shares differ by "
             "a factor of %.4g.",
             f->perron_max / f->perron_min);
    else if (!s->row)
        NOTE("Only columns sum to 1: averages need push-sum, whose weights settle between %.4g and "
             "%.4g of 1.",
             f->perron_min * f->report.nodes, f->perron_max * f->report.nodes);
    if (f->asked.topology != NULL && sl_topology_is_endless(f->asked.topology))
        NOTE("The schedule never repeats. Structure, costs and products are of its first %u "
             "rounds; rho is the root mean square of a round's factor over all such graphs.",
             f->report.period);
    if (f->exact_after > 0 && f->report.nodes > 1)
        NOTE("The average is exact after %u round%s.", f->exact_after,
             f->exact_after == 1 ? "" : "s");
    if (f->spectrum.gap < -ROUNDING)
        NOTE("rho is above 1: averaging drives nodes further apart for ever. Make the weights of "
             "the edges smaller, or their signs positive.");
    else if (f->spectrum.singular_2 > 1 + ROUNDING)
        NOTE("||W - J|| is above 1: %s can take nodes further apart before they agree.",
             f->report.period > 1 ? "a period" : "a round");
    if (!f->spectrum.converged)
        NOTE("The eigenvalues did not settle within the limit of work: rho is at least what is "
             "given, the gap at most.");
#undef NOTE
    return count;
}
