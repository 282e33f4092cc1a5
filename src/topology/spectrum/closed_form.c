/* closed_form.c - spectra by formula: W = I - L/q for graphs whose Laplacian L is known.
 *
 * Laplacian eigenvalues of ring, path, complete and complete bipartite graph are classical (Chung,
 * "Spectral Graph Theory", 1997), and those of a Cartesian product (torus, grid, hypercube) are the
 * sums of its factors'. Differences such as 1 - cos x are written as 2 sin^2(x/2), and the largest
 * eigenvalue is kept as its distance from 2 D, D the largest degree, so that a gap of 1e-18 has as
 * many digits as one of 0.1.
 */
#include <math.h>
#include <string.h>

#include "topology/spectrum/spectral.h"

/* What has to be known of a graph's Laplacian. */
typedef struct laplacian {
    double lambda_2;       /* smallest eigenvalue above 0 */
    uint32_t multiplicity; /* of lambda_2 */
    double lack;     /* 2 degree - largest eigenvalue: 0 if and only if regular and bipartite */
    uint32_t degree; /* largest */
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
    return (laplacian){squared_sine(0.5, n), 1, n == 2 ? 0 : squared_sine(0.5, n), n == 2 ? 1 : 2,
                       n == 2};
}

static laplacian of_ring(uint32_t n) {
    if (n <= 2) /* without a double edge */
        return of_path(n);
    return (laplacian){squared_sine(1, n), 2, n % 2 == 0 ? 0 : squared_sine(0.5, n), 2, true};
}

static laplacian of_complete(uint32_t n) {
    return n == 1 ? single() : (laplacian){n, n - 1, n - 2.0, n - 1, true};
}

static laplacian of_bipartite(uint32_t part, uint32_t n) {
    uint32_t other = n - part, small = part < other ? part : other, large = n - small;
    if (n == 2)
        return of_path(2);
    return (laplacian){small, small == large ? n - 2 : large - 1, large - (double)small, large,
                       small == large};
}

/* lambda_2 of a product is the smallest of its factors'; largest eigenvalues and degrees add up. */
static laplacian product(laplacian a, laplacian b) {
    bool same = fabs(a.lambda_2 - b.lambda_2) <=
                1e-12 * a.lambda_2; /* a ring of 4 and an edge both have 2 */
    return (laplacian){
        .lambda_2 = fmin(a.lambda_2, b.lambda_2),
        .multiplicity = same                      ? a.multiplicity + b.multiplicity
                        : a.lambda_2 < b.lambda_2 ? a.multiplicity
                                                  : b.multiplicity,
        .lack = a.lack + b.lack,
        .degree = a.degree + b.degree,
        .regular = a.regular && b.regular,
    };
}

static bool of_sides(laplacian *out, const sl_topology_spec *spec,
                     laplacian (*factor)(uint32_t side)) {
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

static bool of_circulant(laplacian *out, const uint32_t *offsets, uint32_t count, uint32_t n) {
    *out = n == 1 ? single() : (laplacian){.regular = true};
    for (uint32_t k = 0; k < count; k++)
        out->degree += 2 * (uint64_t)offsets[k] == n ? 1 : 2;
    return n == 1 || sl_spectrum_circulant_extremes(offsets, count, n, &out->lambda_2,
                                                    &out->multiplicity, &out->lack);
}

static bool of_symmetric_exponential(laplacian *out, uint32_t n) {
    uint32_t offsets[32], count = 0;
    for (uint32_t offset = 1; offset <= n / 2; offset *= 2)
        offsets[count++] = offset;
    return of_circulant(out, offsets, count, n);
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
        *out = spec->nodes == 1 ? single() : of_bipartite(1, spec->nodes);
        return true;
    case SL_FAMILY_COMPLETE:
        *out = of_complete(spec->nodes);
        return true;
    case SL_FAMILY_TORUS:
        return of_sides(out, spec, of_ring);
    case SL_FAMILY_GRID:
        return of_sides(out, spec, of_path);
    case SL_FAMILY_CIRCULANT:
        return of_circulant(out, spec->offsets, spec->offset_count, spec->nodes);
    case SL_FAMILY_SYMMETRIC_EXPONENTIAL:
        return of_symmetric_exponential(out, spec->nodes);
    case SL_FAMILY_COMPLETE_BIPARTITE:
        *out = of_bipartite(spec->part, spec->nodes);
        return spec->part > 0 && spec->part < spec->nodes;
    case SL_FAMILY_HYPERCUBE:
        return of_hypercube(out, spec->nodes);
    }
    return false;
}

/* W = I - L/q, if the weights are of that form: on regular graphs all local schemes are; Metropolis
 * also where every edge has an end of the largest degree. *excess is q - degree, without the
 * rounding of a difference. */
static bool find_excess(double *excess, const sl_topology_spec *spec, const laplacian *l) {
    bool even = l->regular || spec->family == SL_FAMILY_PATH || spec->family == SL_FAMILY_STAR ||
                spec->family == SL_FAMILY_COMPLETE_BIPARTITE;
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

/* W = I - L/(degree + excess), lazy or not; false if it is not of that form. */
static bool find_matrix(laplacian *l, double *excess, const sl_topology_spec *spec) {
    if (spec->nodes == 0 || !find_laplacian(l, spec) || !find_excess(excess, spec, l))
        return false;
    if (spec->lazy)
        *excess = 2 * *excess + l->degree;
    return true;
}

static bool of_symmetric(sl_spectrum *out, const sl_topology_spec *spec) {
    laplacian l;
    double excess;
    if (!find_matrix(&l, &excess, spec))
        return false;
    double q = l.degree + excess;
    *out = spec->nodes == 1
               ? sl_spectrum_from_gaps(1, 1, 1)
               : sl_spectrum_from_gaps(spec->nodes, l.lambda_2 / q, (2 * excess + l.lack) / q);
    out->multiplicity = l.multiplicity;
    return true;
}

/* W = (1 - a) I + a P, P a cyclic shift: 1 - rho^2 = 4 a (1 - a) sin^2(pi/n), and W is normal. */
static bool of_directed_ring(sl_spectrum *out, const sl_topology_spec *spec) {
    if (spec->family != SL_FAMILY_DIRECTED_RING || spec->nodes < 3 ||
        (spec->weighting != SL_WEIGHTING_UNIFORM && spec->weighting != SL_WEIGHTING_PUSH_SUM))
        return false;
    double moved = spec->lazy ? 0.25 : 0.5,
           lost = moved * (1 - moved) * squared_sine(1, spec->nodes), rho = sqrt(1 - lost);
    *out = sl_spectrum_of_modulus(spec->nodes, rho, rho);
    out->gap = lost / (1 + rho);
    out->multiplicity = 2;
    return true;
}

bool sl_spectrum_closed_form(sl_spectrum *out, const sl_topology_spec *spec) {
    sl_spectrum s;
    if (!of_symmetric(&s, spec) && (spec->nodes == 0 || !of_directed_ring(&s, spec)))
        return false;
    s.method = SL_SPECTRUM_CLOSED_FORM;
    s.residual = s.gap_error = 0x1p-50; /* a few roundings and a sine */
    sl_spectrum_round(&s, s.residual);
    *out = s;
    return true;
}

bool sl_stochasticity_closed_form(sl_stochasticity *out, const sl_topology_spec *spec) {
    laplacian l;
    double excess;
    sl_spectrum s;
    if (spec->nodes > 0 && of_directed_ring(&s, spec))
        *out = (sl_stochasticity){.row = true, .column = true, .nonnegative = true};
    else if (find_matrix(&l, &excess, spec)) /* W_ii of the largest degree is excess/q */
        *out = (sl_stochasticity){
            .symmetric = true, .row = true, .column = true, .nonnegative = excess >= 0};
    else
        return false;
    return true;
}
