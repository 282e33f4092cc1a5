/* findings_print.c - prints findings as tables: the short report of `starling check`, then the
 * rest. */
#include <math.h>
#include <stdio.h>

#include "cli/names.h"
#include "cli/text_table.h"
#include "topology/findings.h"
#include "topology/topology_report.h"

enum { EIGENVALUES_A_LINE = 6, ERRORS_A_LINE = 8, TEXT_BYTES = 128 };

static const char *name_bounds(char text[TEXT_BYTES], sl_bounds b) {
    if (b.low == SL_UNBOUNDED)
        snprintf(text, TEXT_BYTES, "infinite");
    else if (b.high == SL_UNBOUNDED)
        snprintf(text, TEXT_BYTES,
                 b.low == 0 ? "not computed" : "at least %llu (not computed further)",
                 (unsigned long long)b.low);
    else if (b.low == b.high)
        snprintf(text, TEXT_BYTES, "%llu", (unsigned long long)b.low);
    else
        snprintf(text, TEXT_BYTES, "%llu to %llu (bounds: more would be too much work)",
                 (unsigned long long)b.low, (unsigned long long)b.high);
    return text;
}

static void print_structure(const findings *f) {
    const sl_structure *s = &f->structure;
    char text[TEXT_BYTES];
    puts("\nstructure");
    if (!s->connected)
        printf("  components          %u, the largest of %u nodes\n", s->components,
               s->component_nodes_max);
    printf("  bipartite           %s\n", s->bipartite ? "yes" : "no");
    if (s->directed)
        printf("  in-degree           %u to %u\n", s->in_degree_min, s->in_degree_max);
    printf("  diameter            %s\n", name_bounds(text, s->diameter));
    if (s->connected) {
        printf("  edge connectivity   %s\n", name_bounds(text, s->edge_connectivity));
        printf("  node connectivity   %s\n", name_bounds(text, s->node_connectivity));
    }
    printf("  bridges             %u\n  cut nodes           %u\n", s->bridges, s->cut_nodes);
}

static void print_list(const char *head, const double *values, uint32_t count, uint32_t a_line) {
    for (uint32_t i = 0; i < count; i++) {
        if (i % a_line == 0)
            printf("%s  %-19s", i > 0 ? "\n" : "", i == 0 ? head : "");
        printf(" %.4g", values[i]);
    }
    if (count > 0)
        putchar('\n');
}

static void print_spectrum(const findings *f) {
    const sl_spectrum *s = &f->spectrum;
    puts("\nspectrum");
    if (s->multiplicity > 0)
        printf("  multiplicity        %u\n", s->multiplicity);
    if (s->symmetric)
        printf("  1 - lambda_2        %.12g\n", s->gap_lambda2);
    printf("  ||W - J||           %.12g\n", s->singular_2);
    printf("  computed by         %s, residual %.2g%s\n", sl_spectrum_method_name(s->method),
           s->residual, s->converged ? "" : ", not converged");
    if (f->optimized)
        printf("  least possible rho  at least %.9g, at most %.9g%s\n", f->optimum.lower_bound,
               f->optimum.rho, f->optimum.converged ? "" : ", not converged");
    if (f->real == NULL)
        return;
    if (s->symmetric) {
        print_list("eigenvalues", f->real, f->report.nodes, EIGENVALUES_A_LINE);
        return;
    }
    for (uint32_t i = 0; i < f->report.nodes; i++)
        printf("  %-19s %.6g %+.6gi, modulus %.6g\n", i == 0 ? "eigenvalues" : "", f->real[i],
               f->imaginary[i], hypot(f->real[i], f->imaginary[i]));
}

/* With so many significant digits. */
static const char *name_number(char text[TEXT_BYTES], double value, int digits) {
    if (isnan(value))
        snprintf(text, TEXT_BYTES, "not computed");
    else if (isinf(value))
        snprintf(text, TEXT_BYTES, "infinite");
    else
        snprintf(text, TEXT_BYTES, "%.*g", digits, value);
    return text;
}

static void print_loss(const findings *f) {
    if (isnan(f->loss.rho))
        printf("  worst node loss     not computed above %u nodes\n", SL_LOSS_NODES_MAX);
    else if (f->loss.rho == 1)
        puts("  worst node loss     parts the graph");
    else
        printf("  worst node loss     rho %.6g a round, of node %u\n", f->loss.rho, f->loss.node);
}

static void print_agreement(const findings *f) {
    static const double decays[] = FINDINGS_DECAYS;
    char text[TEXT_BYTES];
    puts("\nagreement");
    if (f->errors != NULL)
        print_list("error by round", f->errors, f->error_count, ERRORS_A_LINE);
    if (f->report.period > 1) {
        if (f->exact_after > 0)
            printf("  exact after         %u rounds\n", f->exact_after);
        printf("  rho per round       %.12g\n", f->effective_rho);
    }
    printf("  rounds to %-9.3g %s\n", f->asked.epsilon, name_number(text, f->rounds, 6));
    printf("  p = 1 - ||W - J||^2 %.6g\n", f->consensus_rate);
    printf("  mixing time         %s\n", name_bounds(text, f->mixing));
    for (int i = 0; i < FINDINGS_DECAY_COUNT; i++)
        printf("  neighbours, %-7g %s\n", decays[i], name_number(text, f->neighbours[i], 4));
    if (f->perron_max > f->perron_min)
        printf("  shares              %.4g to %.4g of an even one\n",
               f->perron_min * f->report.nodes, f->perron_max * f->report.nodes);
    if (!f->structure.connected)
        return;
    printf("  transient rounds    about %s with the same data everywhere,\n",
           name_number(text, sl_transient_rounds(f->report.nodes, f->gap_per_round, true), 2));
    printf("                      about %s otherwise\n",
           name_number(text, sl_transient_rounds(f->report.nodes, f->gap_per_round, false), 2));
    print_loss(f);
}

static void put_seconds(text_table *t, double seconds) {
    text_table_put(t, isfinite(seconds) ? "%.4g" : "never", seconds);
}

static void add_cost_columns(text_table *t, bool timed) {
    text_table_column(t, ALIGN_LEFT, 0, "", "  compressor");
    text_table_column(t, ALIGN_RIGHT, 1, "message", "bytes");
    text_table_column(t, ALIGN_RIGHT, 0, "MB per", "node");
    if (!timed)
        return;
    text_table_column(t, ALIGN_RIGHT, 2, "s a round", "serial");
    text_table_column(t, ALIGN_RIGHT, 3, "s a round", "parallel");
    text_table_column(t, ALIGN_RIGHT, 0, "s to agree", "serial");
    text_table_column(t, ALIGN_RIGHT, 0, "s to agree", "parallel");
}

static void put_cost(text_table *t, const findings *f, const message_cost *m) {
    char name[64];
    name_compressor(&m->compressor, name, sizeof name);
    text_table_row(t);
    text_table_put(t, "  %s", name);
    text_table_put(t, "%.0f", m->bytes);
    text_table_put(t, "%.4g", m->bytes * f->traffic.sent_mean / 1e6);
    put_seconds(t, m->serial_s);
    put_seconds(t, m->parallel_s);
    put_seconds(t, m->serial_s * f->rounds);
    put_seconds(t, m->parallel_s * f->rounds);
}

static void print_cost(const findings *f, size_t width) {
    bool timed = f->asked.links != NULL;
    printf("\ncost of a round, %llu parameters\n", (unsigned long long)f->asked.parameters);
    printf("  messages            %.6g, %.4g of a node, %.4g of the busiest\n", f->traffic.messages,
           f->traffic.sent_mean, f->traffic.sent_max);
    text_table *t = text_table_open();
    if (t == NULL)
        return;
    add_cost_columns(t, timed);
    for (int k = 0; k < SL_COMPRESSOR_COUNT; k++)
        put_cost(t, f, &f->messages[k]);
    text_table_print(t, width);
    text_table_close(&t);
    char text[160];
    snprintf(text, sizeof text,
             "in %.6g rounds, to %g of the first error; a compressor that loses something needs "
             "more of them",
             f->rounds, f->asked.epsilon);
    if (timed)
        print_wrapped("  s to agree: ", text, width);
}

void findings_print(const findings *f, bool wide) {
    char notes[NOTES_MAX][NOTE_BYTES];
    size_t count = findings_notes(f, notes), width = output_width(wide);
    topology_report_print(&f->report);
    print_structure(f);
    print_spectrum(f);
    print_agreement(f);
    print_cost(f, width);
    if (count > 0)
        putchar('\n');
    for (size_t i = 0; i < count; i++)
        print_wrapped("note: ", notes[i], width);
}
