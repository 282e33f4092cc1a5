/* closed_form.c - spectra by formula: W = I - L/q for graphs whose Laplacian L is known.
 *
 * Laplacian eigenvalues of ring, path, star and complete graph are classical (Chung, "Spectral Graph Theory", 1997), and those of a Cartesian
 * product (torus, grid, hypercube) are the sums of its factors'. Differences such as 1 - cos x are written as 2 sin^2(x/2), and the largest
 * eigenvalue is kept as its distance from 2 D, D the largest degree, so that a gap of 1e-18 has as many digits as one of 0.1.
 */
#include <math.h>
#include <string.h>

#include "topology/spectral.h"

/* What has to be known of a graph's Laplacian. */
typedef struct laplacian {
    double lambda_2;       /* smallest eigenvalue above 0 */
    uint32_t multiplicity; /* of lambda_2 */
    double lack;           /* 2 degree - largest eigenvalue: 0 if and only if regular and bipartite */
    uint32_t degree;       /* largest */
    bool regular;
} laplacian;

static double squared_sine(double numerator, double denominator) {
    double s = sin(M_PI * numerator / denominator);
    return 4 * s * s;
}

static laplacian single(void) {
    return (laplacian){.lambda_2 = INFINITY, .regular = true};
}

static laplacian of_path(uint32_t n) {
    if (n == 1)
        return single();
    return (laplacian){squared_sine(0.5, n), 1, n == 2 ? 0 : squared_sine(0.5, n), n == 2 ? 1 : 2, n == 2};
}

static laplacian of_ring(uint32_t n) {
    if (n <= 2) /* without a double edge */
        return of_path(n);
    return (laplacian){squared_sine(1, n), 2, n % 2 == 0 ? 0 : squared_sine(0.5, n), 2, true};
}

static laplacian of_complete(uint32_t n) {
    return n == 1 ? single() : (laplacian){n, n - 1, n - 2.0, n - 1, true};
}

static laplacian of_star(uint32_t n) {
    return n <= 2 ? of_path(n) : (laplacian){1, n - 2, n - 2.0, n - 1, false};
}

/* lambda_2 of a product is the smallest of its factors'; largest eigenvalues and degrees add up. */
static laplacian product(laplacian a, laplacian b) {
    bool same = fabs(a.lambda_2 - b.lambda_2) <= 1e-12 * a.lambda_2; /* a ring of 4 and an edge both have 2 */
    return (laplacian){
        .lambda_2 = fmin(a.lambda_2, b.lambda_2),
        .multiplicity = same ? a.multiplicity + b.multiplicity : a.lambda_2 < b.lambda_2 ? a.multiplicity : b.multiplicity,
        .lack = a.lack + b.lack,
        .degree = a.degree + b.degree,
        .regular = a.regular && b.regular,
    };
}

static bool of_sides(laplacian *out, const sl_topology_spec *spec, laplacian (*factor)(uint32_t side)) {
    uint64_t nodes = 1;
    *out = single();
    for (uint32_t d = 0; d < spec->side_count; d++) {
        nodes *= spec->sides[d];
        if (spec->sides[d] == 0 || nodes > spec->nodes)
            return false;
        *out = product(*out, factor(spec->sides[d]));
    }
    return nodes == spec->nodes;
}

static bool of_hypercube(laplacian *out, uint32_t n) {
    *out = single();
    for (uint32_t rest = n; rest > 1; rest /= 2)
        *out = product(*out, of_path(2));
    return (n & (n - 1)) == 0;
}

static bool find_laplacian(laplacian *out, const sl_topology_spec *spec) {
    switch ((int)spec->family) { /* all others have no formula */
    case SL_FAMILY_RING:
        *out = of_ring(spec->nodes);
        return true;
    case SL_FAMILY_PATH:
        *out = of_path(spec->nodes);
        return true;
    case SL_FAMILY_STAR:
        *out = of_star(spec->nodes);
        return true;
    case SL_FAMILY_COMPLETE:
        *out = of_complete(spec->nodes);
        return true;
    case SL_FAMILY_TORUS:
        return of_sides(out, spec, of_ring);
    case SL_FAMILY_GRID:
        return of_sides(out, spec, of_path);
    case SL_FAMILY_HYPERCUBE:
        return of_hypercube(out, spec->nodes);
    }
    return false;
}

/* W = I - L/q, if the weights are of that form: on regular graphs all local schemes are; Metropolis also where every edge has an end of the largest
 * degree. *excess is q - degree, without the rounding of a difference. */
static bool find_excess(double *excess, const sl_topology_spec *spec, const laplacian *l) {
    bool even = l->regular || spec->family == SL_FAMILY_PATH || spec->family == SL_FAMILY_STAR;
    *excess = 1;
    switch (spec->weighting) {
    case SL_WEIGHTING_METROPOLIS:
        return even;
    case SL_WEIGHTING_METROPOLIS0:
        *excess = 0;
        return even;
    case SL_WEIGHTING_MAX_DEGREE:
        return true;
    case SL_WEIGHTING_MAX_DEGREE0:
        *excess = 0;
        return true;
    case SL_WEIGHTING_UNIFORM:
    case SL_WEIGHTING_PUSH_SUM:
        return l->regular;
    case SL_WEIGHTING_BEST_CONSTANT: /* q = (lambda_2 + largest)/2 */
        *excess = (l->lambda_2 - l->lack) / 2;
        return true;
    case SL_WEIGHTING_FMMC:
    case SL_WEIGHTING_FDLA:
    case SL_WEIGHTING_BANDWIDTH:
    case SL_WEIGHTING_EXPLICIT:
        break;
    }
    return false;
}

bool sl_spectrum_closed_form(sl_spectrum *out, const sl_topology_spec *spec) {
    laplacian l;
    double excess;
    if (spec->nodes == 0 || !find_laplacian(&l, spec) || !find_excess(&excess, spec, &l))
        return false;
    if (spec->lazy)
        excess = 2 * excess + l.degree;
    sl_spectrum s = {0};
    double q = l.degree + excess;
    if (spec->nodes == 1)
        s = spectrum_from_gaps(1, 1, 1);
    else
        s = spectrum_from_gaps(spec->nodes, l.lambda_2 / q, (2 * excess + l.lack) / q);
    s.multiplicity = l.multiplicity;
    s.method = SL_SPECTRUM_CLOSED_FORM;
    s.residual = s.gap_error = 0x1p-50; /* a few roundings and a sine */
    *out = s;
    return true;
}
