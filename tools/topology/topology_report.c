/* topology_report.c - the short report of a topology; see topology_report.h. */
#include "topology/topology_report.h"

#include <math.h>
#include <stdio.h>

static void print_sum(const char *label, bool holds, double residual) {
    printf("  %-19s %s", label, holds ? "yes" : "no");
    if (!isnan(residual))
        printf(", largest |sum - 1| = %.3g", residual);
    putchar('\n');
}

/* What rounding leaves of an eigenvalue that is 0. */
#define VANISHED 1e-13

static double settled(double value) {
    return fabs(value) < VANISHED ? 0 : value;
}

static void print_spectrum(const sl_topology_report *r) {
    if (!r->spectrum_known)
        printf("  spectrum            not found within the limit; so far:\n");
    if (r->period > 1)
        printf("  spectrum of the product of the %u slots:\n", r->period);
    if (!isnan(r->lambda_2))
        printf("  lambda_2            %.12g\n  lambda_n            %.12g\n", settled(r->lambda_2),
               settled(r->lambda_n));
    printf("  rho                 %.12g%s\n", settled(r->rho),
           isnan(r->lambda_2) ? "  (second largest modulus; W is not symmetric)" : "");
    printf("  spectral gap 1-rho  %.12g\n", r->gap);
}

void topology_report_print(const sl_topology_report *r) {
    const sl_stochasticity *s = &r->stochastic;
    printf("topology\n");
    printf("  nodes               %u\n", r->nodes);
    if (r->period > 1)
        printf("  schedule            %u slots\n", r->period);
    printf("  edges               %llu\n", (unsigned long long)r->edges);
    printf("  degree              %u to %u, mean %.4g\n", r->degree_min, r->degree_max,
           r->degree_mean);
    printf("  connected           %s\n", r->connected ? "yes" : "no");
    printf("  symmetric           %s\n", s->symmetric ? "yes" : "no");
    printf("  doubly stochastic   %s\n", s->row && s->column && s->nonnegative ? "yes" : "no");
    printf("  nonnegative         %s\n", s->nonnegative ? "yes" : "no");
    print_sum("rows sum to 1", s->row, s->row_residual);
    print_sum("columns sum to 1", s->column, s->column_residual);
    print_spectrum(r);
}
