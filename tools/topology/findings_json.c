/* findings_json.c - prints findings as JSON; docs/topology.md lists the keys. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "cli/names.h"
#include "topology/findings.h"

enum { SHARES_MAX = 1000 };

/* null: unknown or infinite. */
static json_t *real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static void put(json_t *to, const char *key, json_t *value) {
    json_object_set_new(to, key, value);
}

/* Writes KEY, and KEY_bounds if only two bounds are known. */
static void put_bounds(json_t *to, const char *key, sl_bounds b) {
    bool known = b.low == b.high && b.high != SL_UNBOUNDED;
    put(to, key, known ? json_integer((json_int_t)b.low) : json_null());
    if (known || b.low == SL_UNBOUNDED)
        return;
    char name[64];
    snprintf(name, sizeof name, "%s_bounds", key);
    put(to, name,
        json_pack("[Io]", (json_int_t)b.low,
                  b.high == SL_UNBOUNDED ? json_null() : json_integer((json_int_t)b.high)));
}

static json_t *reals(const double *values, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, real(values[i]));
    return list;
}

static void put_structure(json_t *to, const findings *f) {
    const sl_structure *s = &f->structure;
    put(to, "nodes", json_integer(f->report.nodes));
    put(to, "period", json_integer(f->report.period));
    put(to, "edges", json_integer((json_int_t)s->edges));
    put(to, "directed", json_boolean(s->directed));
    put(to, "connected", json_boolean(s->connected));
    put(to, "components", json_integer(s->components));
    put(to, "largest_component", json_integer(s->component_nodes_max));
    put(to, "bipartite", json_boolean(s->bipartite));
    put_bounds(to, "diameter", s->diameter);
    put(to, "min_degree", json_integer(s->degree_min));
    put(to, "max_degree", json_integer(s->degree_max));
    put(to, "mean_degree", real(s->degree_mean));
    put(to, "min_in_degree", json_integer(s->in_degree_min));
    put(to, "max_in_degree", json_integer(s->in_degree_max));
    put(to, "bridges", json_integer(s->bridges));
    put(to, "cut_nodes", json_integer(s->cut_nodes));
    put_bounds(to, "edge_connectivity", s->edge_connectivity);
    put_bounds(to, "node_connectivity", s->node_connectivity);
}

static json_t *eigenvalues(const findings *f) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < f->report.nodes; i++)
        json_array_append_new(list, f->spectrum.symmetric
                                        ? real(f->real[i])
                                        : json_pack("[ff]", f->real[i], f->imaginary[i]));
    return list;
}

static void put_spectrum(json_t *to, const findings *f) {
    const sl_stochasticity *w = &f->report.stochastic;
    const sl_spectrum *s = &f->spectrum;
    put(to, "symmetric", json_boolean(w->symmetric));
    put(to, "row_stochastic", json_boolean(w->row));
    put(to, "column_stochastic", json_boolean(w->column));
    put(to, "doubly_stochastic", json_boolean(w->row && w->column && w->nonnegative));
    put(to, "nonnegative", json_boolean(w->nonnegative));
    put(to, "row_residual", real(w->row_residual));
    put(to, "column_residual", real(w->column_residual));
    put(to, "lambda_2", real(s->lambda_2));
    put(to, "lambda_n", real(s->lambda_n));
    put(to, "multiplicity", s->multiplicity > 0 ? json_integer(s->multiplicity) : json_null());
    put(to, "rho", real(s->rho));
    put(to, "gap", real(s->gap));
    put(to, "gap_lambda2", real(s->gap_lambda2));
    put(to, "singular_2", real(s->singular_2));
    put(to, "spectrum",
        json_pack("{ss sb so so}", "method", sl_spectrum_method_name(s->method), "converged",
                  s->converged, "residual", real(s->residual), "gap_error", real(s->gap_error)));
    if (f->optimized)
        put(to, "optimum",
            json_pack("{so so sb}", "rho", real(f->optimum.rho), "lower_bound",
                      real(f->optimum.lower_bound), "converged", f->optimum.converged));
    if (f->real != NULL)
        put(to, "eigenvalues", eigenvalues(f));
}

static void put_agreement(json_t *to, const findings *f) {
    static const double decays[] = FINDINGS_DECAYS;
    if (f->errors != NULL)
        put(to, "product_error", reals(f->errors, f->error_count));
    put(to, "exact_after", f->exact_after > 0 ? json_integer(f->exact_after) : json_null());
    put(to, "effective_rho", real(f->effective_rho));
    put(to, "effective_gap", real(f->gap_per_round));
    put(to, "epsilon", real(f->asked.epsilon));
    put(to, "rounds_to_epsilon", real(f->rounds));
    put(to, "consensus_rate", real(f->consensus_rate));
    put_bounds(to, "mixing_time", f->mixing);
    json_t *neighbours = json_array();
    for (int i = 0; i < FINDINGS_DECAY_COUNT; i++)
        json_array_append_new(neighbours, json_pack("{sf so}", "decay", decays[i], "neighbours",
                                                    real(f->neighbours[i])));
    put(to, "effective_neighbours", neighbours);
    json_t *perron = json_pack(
        "{so so so so}", "min", real(f->perron_min), "max", real(f->perron_max), "imbalance",
        real(f->perron_max / f->perron_min), "residual", real(f->perron_residual));
    if (f->perron != NULL && f->report.nodes <= SHARES_MAX)
        put(perron, "shares", reals(f->perron, f->report.nodes));
    put(to, "perron", perron);
    put(to, "transient_rounds",
        json_pack("{so so}", "same_data",
                  real(sl_transient_rounds(f->report.nodes, f->gap_per_round, true)),
                  "different_data",
                  real(sl_transient_rounds(f->report.nodes, f->gap_per_round, false))));
    put(to, "worst_node_loss",
        json_pack("{so so}", "rho", real(f->loss.rho), "node",
                  isnan(f->loss.rho) || f->by_formula ? json_null() : json_integer(f->loss.node)));
}

static void put_cost(json_t *to, const findings *f) {
    json_t *messages = json_array();
    for (int k = 0; k < SL_COMPRESSOR_COUNT; k++) {
        const message_cost *m = &f->messages[k];
        char name[64];
        name_compressor(&m->compressor, name, sizeof name);
        json_t *row = json_pack("{ss sf sf sf}", "compressor", name, "message_bytes", m->bytes,
                                "node_bytes", m->bytes * f->traffic.sent_mean, "busiest_node_bytes",
                                m->bytes * f->traffic.sent_max);
        if (f->asked.links != NULL) {
            put(row, "serial_s", real(m->serial_s));
            put(row, "parallel_s", real(m->parallel_s));
            put(row, "consensus_serial_s", real(m->serial_s * f->rounds));
            put(row, "consensus_parallel_s", real(m->parallel_s * f->rounds));
        }
        json_array_append_new(messages, row);
    }
    put(to, "cost",
        json_pack("{sI sf sf sf so}", "parameters", (json_int_t)f->asked.parameters, "messages",
                  f->traffic.messages, "messages_per_node", f->traffic.sent_mean,
                  "messages_of_busiest_node", f->traffic.sent_max, "per_round", messages));
}

int findings_print_json(const findings *f, sl_error *error) {
    char lines[NOTES_MAX][NOTE_BYTES];
    size_t count = findings_notes(f, lines);
    json_t *root = json_object(), *notes = json_array();
    put_structure(root, f);
    put_spectrum(root, f);
    put_agreement(root, f);
    put_cost(root, f);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(notes, json_string(lines[i]));
    put(root, "notes", notes);
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    json_decref(root);
    if (text == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the findings");
    puts(text);
    free(text);
    return 0;
}
