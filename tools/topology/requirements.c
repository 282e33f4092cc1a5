/* requirements.c - the conditions of `starling topology analyse --require`: one row each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/findings.h"

typedef enum sense { HOLDS, AT_LEAST, AT_MOST } sense;

/* The measured value; HOLDS: 1 or 0. NaN: unknown. */
static double is_connected(const findings *f) {
    return f->structure.connected;
}
static double is_symmetric(const findings *f) {
    return f->report.stochastic.symmetric;
}
static double is_row(const findings *f) {
    return f->report.stochastic.row;
}
static double is_column(const findings *f) {
    return f->report.stochastic.column;
}
static double is_nonnegative(const findings *f) {
    return f->report.stochastic.nonnegative;
}
static double is_doubly(const findings *f) {
    return f->report.stochastic.row && f->report.stochastic.column &&
           f->report.stochastic.nonnegative;
}
static double is_exact(const findings *f) {
    return f->exact_after > 0;
}
static double is_converged(const findings *f) {
    return f->spectrum.converged;
}
static double exact_after(const findings *f) {
    return f->exact_after > 0 ? (double)f->exact_after : (double)INFINITY;
}
static double gap(const findings *f) {
    return f->gap_per_round;
}
static double rho(const findings *f) {
    return f->effective_rho;
}
static double rounds(const findings *f) {
    return f->rounds;
}
static double max_degree(const findings *f) {
    return f->structure.degree_max;
}
/* The bound that the condition may rely on. */
static double diameter(const findings *f) {
    return f->structure.diameter.high == SL_UNBOUNDED ? INFINITY
                                                      : (double)f->structure.diameter.high;
}
static double edge_connectivity(const findings *f) {
    return (double)f->structure.edge_connectivity.low;
}
static double node_connectivity(const findings *f) {
    return (double)f->structure.node_connectivity.low;
}

static const struct {
    const char *name;
    sense sense;
    double (*measure)(const findings *f);
    const char *meaning;
} conditions[] = {
    {"connected", HOLDS, is_connected, "every node reaches every other"},
    {"symmetric", HOLDS, is_symmetric, "W is symmetric in every round"},
    {"row-stochastic", HOLDS, is_row, "rows sum to 1"},
    {"column-stochastic", HOLDS, is_column, "columns sum to 1"},
    {"nonnegative", HOLDS, is_nonnegative, "no weight is negative"},
    {"doubly-stochastic", HOLDS, is_doubly, "rows and columns sum to 1, no weight is negative"},
    {"exact", HOLDS, is_exact, "the average is exact after finitely many rounds"},
    {"converged", HOLDS, is_converged, "the eigenvalues settled"},
    {"exact-after", AT_MOST, exact_after, "after at most so many rounds"},
    {"gap", AT_LEAST, gap, "1 - rho of a round is at least this"},
    {"rho", AT_MOST, rho, "rho of a round is at most this"},
    {"rounds", AT_MOST, rounds, "at most so many rounds to --epsilon"},
    {"degree", AT_MOST, max_degree, "no node sends more messages in a round"},
    {"diameter", AT_MOST, diameter, "at most so many hops"},
    {"edge-connectivity", AT_LEAST, edge_connectivity,
     "so many edges must be lost before nodes are"},
    {"node-connectivity", AT_LEAST, node_connectivity,
     "so many nodes must be lost before others are"},
};
enum { CONDITIONS = sizeof conditions / sizeof *conditions };

/* Finds the row, and the value after the equals sign. -1 with an error. */
static int parse(const char *text, double *value, sl_error *error) {
    size_t length = strcspn(text, "=");
    char all[512] = "", *end = NULL;
    for (int i = 0; i < CONDITIONS; i++) {
        const char *name = conditions[i].name;
        bool compares = conditions[i].sense != HOLDS;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s%s", i ? ", " : "", name,
                 compares ? "=X" : "");
        if (strlen(name) != length || strncmp(name, text, length) != 0)
            continue;
        if (compares && text[length] == '=')
            *value = strtod(text + length + 1, &end);
        if (!compares && text[length] == '\0')
            return i;
        if (compares && text[length] == '=' && end != text + length + 1 && *end == '\0' &&
            isfinite(*value))
            return i;
        sl_fail(error, SL_EINVAL, "--require %s: %s%s%s", text,
                compares ? "expected a number, as in " : "takes no value: ", name,
                compares ? "=0.5" : "");
        return -1;
    }
    sl_fail(error, SL_EINVAL, "--require %s: not a condition; one of %s", text, all);
    return -1;
}

int requirement_parse(const char *condition, sl_error *error) {
    double value;
    return parse(condition, &value, error) < 0 ? SL_EINVAL : 0;
}

int requirement_check(const findings *f, const char *condition, char text[NOTE_BYTES],
                      sl_error *error) {
    double wanted = 1;
    int row = parse(condition, &wanted, error);
    if (row < 0)
        return SL_EINVAL;
    double found = conditions[row].measure(f);
    switch (conditions[row].sense) {
    case HOLDS:
        snprintf(text, NOTE_BYTES, "it is not");
        return found == 1;
    case AT_LEAST:
        snprintf(text, NOTE_BYTES, "it is %.12g, not at least %.12g", found, wanted);
        return found >= wanted;
    case AT_MOST:
        snprintf(text, NOTE_BYTES, "it is %.12g, not at most %.12g", found, wanted);
        return found <= wanted;
    }
    return 0;
}

char *requirements_help(void) {
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    for (int i = 0; to != NULL && i < CONDITIONS; i++)
        fprintf(to, "  %s%s  %s\n", conditions[i].name, conditions[i].sense == HOLDS ? "" : "=X",
                conditions[i].meaning);
    if (to != NULL)
        fclose(to);
    return text;
}

const char *requirement_name(size_t index) {
    return index < CONDITIONS ? conditions[index].name : NULL;
}
