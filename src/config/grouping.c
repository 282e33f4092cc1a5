/* grouping.c - see grouping.h. */
#include "config/grouping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "starling/spectrum.h"

static const double gap_work_max = 1e9; /* a second; beyond it the gap is a bound */

static int measure(sl_grouping *g, const sl_topology *among, sl_error *error) {
    sl_spectrum_settings settings;
    sl_spectrum spectrum;
    sl_spectrum_defaults(&settings);
    settings.work_max = gap_work_max;
    const int result = sl_spectrum_compute(&spectrum, among, &settings, error);
    g->gap = spectrum.gap;
    return result;
}

int sl_grouping_open(sl_grouping *out, const sl_experiment *e, size_t dimension,
                     const uint32_t *ranks, uint32_t count, sl_error *error) {
    sl_topology *among = NULL;
    sl_grouping g = {.ranks = malloc(count * sizeof *ranks), .count = count};
    *out = (sl_grouping){0};
    if (g.ranks == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a view of %u nodes", count);
    memcpy(g.ranks, ranks, count * sizeof *ranks);
    int result = sl_topology_among(&among, &g.how, e->topology, ranks, count, error);
    if (result == 0)
        result = sl_algorithm_plan(&g.plan, &e->algorithm, among, dimension, error);
    if (result == 0)
        result = measure(&g, among, error);
    if (result == 0)
        result = sl_topology_in_ranks(&g.topology, among, ranks, sl_experiment_ranks(e), error);
    sl_topology_close(&among);
    if (result != 0)
        sl_grouping_close(&g);
    *out = g;
    return result;
}

void sl_grouping_close(sl_grouping *g) {
    sl_topology_close(&g->topology);
    free(g->ranks);
    *g = (sl_grouping){0};
}

void sl_grouping_describe(const sl_grouping *g, const sl_experiment *e, uint64_t round, char *out,
                          size_t bytes) {
    const uint32_t first = sl_topology_nodes(e->topology), last = g->ranks[g->count - 1];
    char joined[48] = "";
    if (g->how.bridges > 0)
        snprintf(joined, sizeof joined, ", %u joined anew", g->how.bridges);
    snprintf(out, bytes, "round %llu: %u of %u nodes go on, %s%s; spectral gap %.4g",
             (unsigned long long)round, g->count, last < first ? first : last + 1,
             g->how.is_family ? "as a family of so many" : "without the edges of the others",
             joined, g->gap);
}
