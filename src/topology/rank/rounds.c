/* rounds.c - how many rounds a candidate takes until nodes agree; see candidates.h. */
#include <math.h>
#include <stdlib.h>

#include "starling/spectrum.h"
#include "topology/graph/graph.h"
#include "topology/rank/candidates.h"

enum { FIRST_ROUNDS = 8, ERROR_ROUNDS = 64 };
#define ROUNDING 1e-11    /* errors below tell nothing of the rate any more */
#define SPECTRUM_WORK 5e9 /* multiplications and additions: some seconds */

/* What a round takes off, from the errors of the first rounds: over the last whole period before
 * rounding rules, of which `rounds` hold one at least. */
static double gap_along(const double *errors, uint32_t rounds, uint32_t period) {
    uint32_t last = 0;
    while (last < rounds && errors[last] > ROUNDING)
        last++;
    if (last == 0)
        return 1;
    double ratio = last > period ? errors[last - 1] / errors[last - 1 - period] : errors[last - 1];
    return -expm1(log(ratio) / (last > period ? period : last));
}

/* Of W or of a period; NaN: not found within the limit. */
static int find_gap(double *gap, const sl_topology *t, sl_error *error) {
    sl_spectrum spectrum;
    sl_spectrum_settings settings;
    sl_spectrum_defaults(&settings);
    settings.work_max = SPECTRUM_WORK;
    int result = sl_spectrum_compute(&spectrum, t, &settings, error);
    if (result == 0)
        *gap = spectrum.converged ? spectrum.gap : NAN;
    return result;
}

/* Errors of as many rounds as it takes to come to epsilon, or else of *rounds and the limits that
 * there are; malloc'ed. Not of the rounds after which nothing is left but rounding: looking for its
 * size would take longest. */
static int follow(double **errors, uint32_t *rounds, const sl_candidate *c, double epsilon,
                  sl_error *error) {
    uint32_t most = *rounds, ends = c->exact_after > 1 ? c->exact_after - 1 : most;
    double *found = malloc(most * sizeof *found);
    int result = found == NULL
                     ? sl_fail(error, SL_ENOMEM, "out of memory for the errors of %u rounds", most)
                     : 0;
    uint32_t count = 0;
    while (result == 0 && count < most && count < ends &&
           (count == 0 || found[count - 1] > epsilon)) {
        count = count == 0 ? FIRST_ROUNDS : 2 * count;
        count = count < most ? count : most;
        count = count < ends ? count : ends;
        result = sl_topology_product_errors(found, count, c->topology, error);
    }
    if (result != 0) {
        free(found);
        return result;
    }
    *rounds = count;
    *errors = found;
    return 0;
}

static uint32_t count_known(const double *errors, uint32_t rounds) {
    uint32_t known = 0;
    while (known < rounds && !isnan(errors[known]))
        known++;
    return known;
}

/* A schedule is followed round by round, for two periods at least; where that is too much work, a
 * period's spectrum has to do. */
static int judge_schedule(sl_candidate *c, double epsilon, sl_error *error) {
    uint32_t period = sl_topology_period(c->topology),
             rounds = 2 * period > ERROR_ROUNDS ? 2 * period : ERROR_ROUNDS;
    double *errors = NULL;
    int result = sl_topology_exact_after(&c->exact_after, c->topology, rounds, error);
    if (result == 0)
        result = follow(&errors, &rounds, c, epsilon, error);
    if (result != 0)
        return result;
    uint32_t known = count_known(errors, rounds);
    if (c->exact_after > 0) {
        c->gap = 1;
    } else if (known > period || (known > 0 && errors[known - 1] <= epsilon)) {
        c->gap = gap_along(errors, known, period);
    } else {
        result = find_gap(&c->gap, c->topology, error);
        c->gap = -expm1(log1p(-c->gap) / period);
    }
    const bool reached = known > 0 && errors[known - 1] <= epsilon;
    c->rounds = c->exact_after > 0 && !reached
                    ? c->exact_after /* at the latest, where errors in between are not known */
                    : sl_rounds_along(errors, known, period, c->gap, epsilon);
    free(errors);
    return result;
}

/* W is not symmetric: its first rounds may do less than rho says. */
static int judge_directed(sl_candidate *c, double epsilon, sl_error *error) {
    double *errors = NULL;
    uint32_t rounds = ERROR_ROUNDS;
    int result = follow(&errors, &rounds, c, epsilon, error);
    if (result != 0)
        return result;
    uint32_t known = count_known(errors, rounds);
    if (isnan(c->gap) && known == rounds)
        c->gap = gap_along(errors, known, 1);
    c->rounds = sl_rounds_along(errors, known, 1, c->gap, epsilon);
    free(errors);
    return 0;
}

static int judge_graph(sl_candidate *c, double epsilon, sl_error *error) {
    bool symmetric = sl_topology_stochasticity(c->topology).symmetric;
    int result =
        sl_topology_exact_after(&c->exact_after, c->topology, symmetric ? 1 : ERROR_ROUNDS, error);
    c->gap = 1;
    if (result == 0 && c->exact_after == 0)
        result = find_gap(&c->gap, c->topology, error);
    c->rounds = c->exact_after > 0 ? c->exact_after : sl_rounds_to(c->gap, epsilon);
    return result != 0 || symmetric || c->exact_after == 1 ? result
                                                           : judge_directed(c, epsilon, error);
}

int sl_candidate_judge(sl_candidate *c, const sl_rank_settings *s, sl_error *error) {
    int result = sl_topology_period(c->topology) > 1 ? judge_schedule(c, s->epsilon, error)
                                                     : judge_graph(c, s->epsilon, error);
    c->bytes = sl_topology_traffic(c->topology).sent_mean * s->message_bytes;
    c->round_seconds =
        sl_topology_round_seconds(c->topology, s->links, s->compute_s, s->message_bytes, s->port);
    c->seconds = c->rounds * c->round_seconds;
    return result;
}
