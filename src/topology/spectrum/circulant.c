/* circulant.c - extreme eigenvalues of circulant graphs up to a billion nodes.
 *
 * The Laplacian's eigenvalues are sum over offsets 4 sin^2(pi o k/n), k = 0 .. n - 1 (an offset of
 * n/2, a single edge, counts half). For which k > 0 the sum is smallest is a question of
 * simultaneous approximation with no formula. It is found by branch and bound: over an interval of
 * k, a term is at least 0 if it has a zero inside, else the smaller of its ends, and an interval
 * whose terms add up to more than a sum already found is not looked into. Few offsets, and offsets
 * in geometric progression, take few intervals; where it would take too many, nothing is said.
 */
#include <math.h>

#include "topology/spectrum/spectral.h"

enum { INTERVALS_MAX = 400000, DEPTH = 64 };
static const double same = 1e-12; /* relative: sums as near to each other are one eigenvalue */

/* Sum of 4 sin^2 (or 4 cos^2) over offsets. */
typedef struct sums {
    const uint32_t *offsets;
    uint32_t count, nodes;
    bool cosine;
} sums;

/* Half the phase of a term at k in units of pi/(2 n). */
static uint64_t position(const sums *s, uint32_t term, uint32_t k) {
    return 2 * (uint64_t)s->offsets[term] * k + (s->cosine ? s->nodes : 0);
}

static double term_at(const sums *s, uint32_t term, uint64_t position) {
    uint64_t period = 2 * (uint64_t)s->nodes, rest = position % period;
    double sine =
        sin(M_PI * (double)(rest < period - rest ? rest : period - rest) / (double)period);
    return (2 * (uint64_t)s->offsets[term] == s->nodes ? 2 : 4) * sine * sine;
}

static double sum_at(const sums *s, uint32_t k) {
    double sum = 0;
    for (uint32_t term = 0; term < s->count; term++)
        sum += term_at(s, term, position(s, term, k));
    return sum;
}

static double least_of(const sums *s, uint32_t from, uint32_t to) {
    double sum = 0;
    for (uint32_t term = 0; term < s->count; term++) {
        uint64_t first = position(s, term, from), last = position(s, term, to),
                 period = 2 * (uint64_t)s->nodes;
        if (first / period == last / period)
            sum += fmin(term_at(s, term, first), term_at(s, term, last));
    }
    return sum;
}

/* The smallest sum over k = 1 .. n - 1, and for how many k; false if too many intervals look alike.
 */
static bool smallest(const sums *s, double *value, uint32_t *multiplicity) {
    struct {
        uint32_t from, to;
    } open[DEPTH];
    uint32_t depth = 1, looked_at = 0;
    open[0].from = 1;
    open[0].to = s->nodes / 2; /* k and n - k are the same */
    *value = INFINITY;
    while (depth > 0 && looked_at++ < INTERVALS_MAX) {
        uint32_t from = open[--depth].from, to = open[depth].to, middle = from + (to - from) / 2;
        if (from < to && least_of(s, from, to) > *value * (1 + same))
            continue;
        double sum = sum_at(s, middle);
        if (sum < *value * (1 - same))
            *multiplicity = 0;
        *value = fmin(*value, sum);
        if (from == to) {
            *multiplicity += sum > *value * (1 + same) ? 0 : 2 * (uint64_t)from == s->nodes ? 1 : 2;
        } else {
            open[depth].from = middle + 1;
            open[depth++].to = to;
            open[depth].from = from;
            open[depth++].to = middle;
        }
        if (*value == 0)
            return true;
    }
    return depth == 0;
}

bool sl_spectrum_circulant_extremes(const uint32_t *offsets, uint32_t count, uint32_t nodes,
                                    double *lambda_2, uint32_t *multiplicity, double *lack) {
    sums low = {offsets, count, nodes, false}, high = {offsets, count, nodes, true};
    uint32_t unused = 0;
    return smallest(&low, lambda_2, multiplicity) && smallest(&high, lack, &unused);
}
