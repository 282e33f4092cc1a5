/* picture.c - gathers what a topology's picture shows; see picture.h. */
#include <math.h>
#include <stdlib.h>

#include "cli/patience.h"
#include "draw/picture.h"
#include "starling/rng.h"

/* Random starts that are averaged, and what averaging them may cost: edges times rounds times
 * starts. */
enum { STARTS = 8, WORST_ROUNDS_MAX = 400, SEED = 1 };
/* All eigenvalues take a second for as many nodes. */
enum { SYMMETRIC_NODES_MAX = 1000, GENERAL_NODES_MAX = 400 };
#define RANDOM_WORK 4e8

void picture_free(picture *f) {
    free(f->real);
    free(f->imaginary);
    free(f->points);
    free(f->worst);
    free(f->random);
}

static int gather_spectrum(picture *f, sl_error *error) {
    uint32_t n = sl_topology_nodes(f->topology);
    sl_spectrum_settings settings;
    sl_spectrum_defaults(&settings);
    settings.watch = patience_watch();
    int result = sl_spectrum_compute(&f->spectrum, f->topology, &settings, error);
    if (result != 0 || n > (f->spectrum.symmetric ? SYMMETRIC_NODES_MAX : GENERAL_NODES_MAX))
        return result;
    f->real = calloc(n, sizeof *f->real);
    f->imaginary = calloc(n, sizeof *f->imaginary);
    if (f->real == NULL || f->imaginary == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u eigenvalues", n);
    return sl_spectrum_eigenvalues(f->topology, f->real, f->imaginary, error);
}

/* ---- gossip averaging of random numbers ---- */

typedef struct gossip {
    const sl_topology *topology;
    double *x, *next; /* (nodes, STARTS + 1); the last column: push-sum's weights */
    bool push_sum;
} gossip;

enum { COLUMNS = STARTS + 1 };

static void gossip_round(gossip *g, uint64_t round) {
    for (uint32_t i = 0; i < sl_topology_nodes(g->topology); i++) {
        sl_row row = sl_topology_in(g->topology, round, i);
        double *target = g->next + (size_t)i * COLUMNS;
        for (int c = 0; c < COLUMNS; c++)
            target[c] = row.self * g->x[(size_t)i * COLUMNS + c];
        for (uint32_t e = 0; e < row.count; e++)
            for (int c = 0; c < COLUMNS; c++)
                target[c] += row.weights[e] * g->x[(size_t)row.peers[e] * COLUMNS + c];
    }
    double *swap = g->x;
    g->x = g->next;
    g->next = swap;
}

static double value_of(const gossip *g, uint32_t i, int c) {
    const double *x = g->x + (size_t)i * COLUMNS;
    return g->push_sum ? x[c] / x[STARTS] : x[c];
}

/* Root of the sum, over nodes and starts, of the squared distance from the nodes' mean. */
static double disagreement(const gossip *g) {
    uint32_t n = sl_topology_nodes(g->topology);
    double sum = 0;
    for (int c = 0; c < STARTS; c++) {
        double mean = 0;
        for (uint32_t i = 0; i < n; i++)
            mean += value_of(g, i, c) / n;
        for (uint32_t i = 0; i < n; i++)
            sum += (value_of(g, i, c) - mean) * (value_of(g, i, c) - mean);
    }
    return sqrt(sum);
}

static void gossip_begin(gossip *g) {
    for (uint32_t i = 0; i < sl_topology_nodes(g->topology); i++) {
        sl_rng rng = sl_rng_open(SEED, i, 0, SL_PURPOSE_INIT);
        for (int c = 0; c < STARTS; c++)
            g->x[(size_t)i * COLUMNS + c] = sl_rng_normal(&rng);
        g->x[(size_t)i * COLUMNS + STARTS] = 1;
    }
}

static int gossip_run(picture *f, uint32_t rounds, sl_error *error) {
    size_t size = (size_t)sl_topology_nodes(f->topology) * COLUMNS;
    gossip g = {f->topology, calloc(size, sizeof(double)), calloc(size, sizeof(double)),
                !f->stochastic.row};
    f->random = calloc((size_t)rounds + 1, sizeof *f->random);
    int result =
        g.x && g.next && f->random
            ? 0
            : sl_fail(error, SL_ENOMEM, "out of memory for averaging over %u rounds", rounds);
    if (result == 0) {
        gossip_begin(&g);
        double first = disagreement(&g);
        for (f->random_count = 0; first > 0 && f->random_count < rounds;) {
            gossip_round(&g, f->random_count + 1);
            f->random[f->random_count++] = disagreement(&g) / first;
        }
    }
    free(g.x);
    free(g.next);
    return result;
}

/* ---- curves ---- */

static int gather_worst(picture *f, sl_error *error) {
    uint32_t period = sl_topology_period(f->topology),
             most = WORST_ROUNDS_MAX > 2 * period ? WORST_ROUNDS_MAX : 2 * period;
    int result = sl_topology_exact_after(&f->exact_after, f->topology, most, error);
    if (result != 0)
        return result;
    double enough = fmax(ceil(f->rounds) + period, f->exact_after);
    uint32_t rounds = enough < most ? (uint32_t)enough : most;
    f->worst = calloc(rounds, sizeof *f->worst);
    if (f->worst == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the errors of %u rounds", rounds);
    result = sl_topology_product_errors(f->worst, rounds, f->topology, error);
    while (result == 0 && f->worst_count < rounds && !isnan(f->worst[f->worst_count]))
        f->worst_count++;
    /* An error that is lost in rounding is NaN; where averaging is exact it is 0. */
    if (result == 0 && f->exact_after == f->worst_count + 1 && f->exact_after <= rounds)
        f->worst[f->worst_count++] = 0;
    return result;
}

static int gather_curves(picture *f, sl_error *error) {
    uint32_t period = sl_topology_period(f->topology);
    double gap_round = period == 1 ? f->spectrum.gap : -expm1(log1p(-f->spectrum.gap) / period);
    f->rho_round = period == 1 ? f->spectrum.rho : 1 - gap_round;
    f->rounds = sl_rounds_to(gap_round, CURVE_FLOOR);
    int result = gather_worst(f, error);
    if (result != 0)
        return result;
    if (f->exact_after > 0)
        f->rho_round = 0;
    f->rounds = sl_rounds_along(f->worst, f->worst_count, period, gap_round, CURVE_FLOOR);
    double work = (f->traffic.messages + sl_topology_nodes(f->topology)) * STARTS,
           shown = isfinite(f->rounds) ? fmax(f->rounds + 1, 4) : 100;
    return gossip_run(f, (uint32_t)fmin(shown, fmax(1, RANDOM_WORK / work)), error);
}

static int gather_points(picture *f, sl_error *error) {
    uint32_t n = sl_topology_nodes(f->topology);
    if (n > SL_LAYOUT_NODES_MAX || f->structure.edges > PANEL_LINES_MAX)
        return 0;
    f->points = calloc(n, sizeof *f->points);
    if (f->points == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", n);
    f->layout = sl_layout_choose(f->topology);
    return sl_layout_place(f->points, &f->layout, f->topology, error);
}

int picture_gather(picture *out, const sl_topology *topology, sl_error *error) {
    picture f = {.topology = topology,
                 .stochastic = sl_topology_stochasticity(topology),
                 .traffic = sl_topology_traffic(topology)};
    int result = sl_topology_structure(&f.structure, topology, error);
    if (result == 0)
        result = gather_spectrum(&f, error);
    if (result == 0)
        result = gather_curves(&f, error);
    if (result == 0)
        result = gather_points(&f, error);
    if (result != 0)
        picture_free(&f);
    else
        *out = f;
    return result;
}
