/* settle.c - checks and defaults of parameters that several families share. */
#include "topology/family/family.h"

static const uint64_t edges_max = 200000000;

int sl_family_check_edges(const family *f, const sl_topology_spec *spec, uint64_t edges,
                          sl_error *error) {
    if (edges <= edges_max)
        return 0;
    return sl_fail(
        error, SL_EINVAL,
        "nodes: family \"%s\" of %u nodes would have %llu directed edges; at most %llu are kept",
        f->info.name, spec->nodes, (unsigned long long)edges, (unsigned long long)edges_max);
}

int sl_family_settle_even_degree(sl_topology_spec *spec, sl_error *error) {
    uint32_t most = (spec->nodes - 1) / 2 * 2;
    if (spec->degree % 2 == 0 && spec->degree <= most)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "degree: %u is not allowed for %u nodes; it must be even and from 2 to %u",
                   spec->degree, spec->nodes, most);
}

int sl_family_settle_period(sl_topology_spec *spec, sl_error *error) {
    enum { PERIOD = 32, PERIOD_MAX = 4096 };
    if (spec->period == 0)
        spec->period = PERIOD;
    if (spec->period <= PERIOD_MAX)
        return 0;
    return sl_fail(error, SL_EINVAL, "period: %u is not allowed; it must be from 1 to %d",
                   spec->period, PERIOD_MAX);
}

int sl_family_check_power_of_two(const family *f, const sl_topology_spec *spec, sl_error *error) {
    if ((spec->nodes & (spec->nodes - 1)) == 0)
        return 0;
    return sl_fail(error, SL_EINVAL, "nodes: %u is not a power of two, which family \"%s\" needs",
                   spec->nodes, f->info.name);
}

void sl_family_squarest(sl_topology_spec *spec) {
    uint32_t shorter = 1;
    for (uint32_t s = 1; (uint64_t)s * s <= spec->nodes; s++)
        if (spec->nodes % s == 0)
            shorter = s;
    spec->sides[0] = shorter;
    spec->sides[1] = spec->nodes / shorter;
    spec->side_count = 2;
}

int sl_family_settle_sides(sl_topology_spec *spec, sl_error *error) {
    if (spec->side_count == 0)
        sl_family_squarest(spec);
    if (spec->side_count > SL_SIDES_MAX)
        return sl_fail(error, SL_EINVAL, "sides: %u dimensions are too many; at most %d",
                       spec->side_count, SL_SIDES_MAX);
    uint64_t product = 1;
    for (uint32_t d = 0; d < spec->side_count && product <= SL_NODES_DESCRIBED_MAX; d++)
        product *= spec->sides[d];
    if (product != spec->nodes)
        return sl_fail(error, SL_EINVAL,
                       "sides: their product is %s%llu, but nodes is %u; they must be equal",
                       product > SL_NODES_DESCRIBED_MAX ? "at least " : "",
                       (unsigned long long)product, spec->nodes);
    return 0;
}
