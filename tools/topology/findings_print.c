/* findings_print.c - findings for people: the short report of `starling check`, and below it what
 * else was found. */
#include <math.h>
#include <stdio.h>

#include "cli/names.h"
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

/* At so many significant digits. */
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
    printf("  transient rounds    %s with the same data everywhere",
           name_number(text, sl_transient_rounds(f->report.nodes, f->gap_per_round, true), 2));
    printf(", %s otherwise (in order of magnitude)\n",
           name_number(text, sl_transient_rounds(f->report.nodes, f->gap_per_round, false), 2));
    print_loss(f);
}

static void print_seconds(double seconds) {
    if (isfinite(seconds))
        printf(" %11.4g", seconds);
    else
        printf(" %11s", "never");
}

static void print_cost(const findings *f) {
    bool timed = f->asked.links != NULL;
    printf("\ncost of a round, %llu parameters\n", (unsigned long long)f->asked.parameters);
    printf("  messages            %.6g, %.4g of a node, %.4g of the busiest\n", f->traffic.messages,
           f->traffic.sent_mean, f->traffic.sent_max);
    if (timed)
        printf("  %-22s %13s %13s %23s %23s\n", "", "", "", "seconds of a round",
               "seconds to consensus");
    printf("  %-22s %13s %13s", "compressor", "message bytes", "MB per node");
    if (timed)
        printf(" %11s %11s %11s %11s", "serial", "parallel", "serial", "parallel");
    putchar('\n');
    for (int k = 0; k < SL_COMPRESSOR_COUNT; k++) {
        const message_cost *m = &f->messages[k];
        char name[64];
        name_compressor(&m->compressor, name, sizeof name);
        printf("  %-22s %13.0f %13.4g", name, m->bytes, m->bytes * f->traffic.sent_mean / 1e6);
        if (timed) {
            print_seconds(m->serial_s);
            print_seconds(m->parallel_s);
            print_seconds(m->serial_s * f->rounds);
            print_seconds(m->parallel_s * f->rounds);
        }
        putchar('\n');
    }
    if (timed)
        printf("  consensus: %.6g rounds to %.3g; a compressor that loses something needs more of "
               "them\n",
               f->rounds, f->asked.epsilon);
}

void findings_print(const findings *f) {
    char notes[NOTES_MAX][NOTE_BYTES];
    size_t count = findings_notes(f, notes);
    topology_report_print(&f->report);
    print_structure(f);
    print_spectrum(f);
    print_agreement(f);
    print_cost(f);
    for (size_t i = 0; i < count; i++)
        printf("%snote: %s\n", i == 0 ? "\n" : "", notes[i]);
}
