/* family.c - the table of graph families and of the parameters that they take.
 *
 * A family is a constant beside the code that draws it (undirected.c, random_graphs.c, directed.c,
 * schedules.c). The file reader, the writer and the command line all read names, parameters and
 * defaults from here.
 */
#include "topology/family/family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t edges_max = 200000000;

#define AT(field) offsetof(sl_topology_spec, field)
const parameter sl_parameters[PARAMETERS] = {
    [PARAMETER_SIDES] = {"sides",
                         "lengths along each dimension; their product is the number of nodes",
                         WHOLES, AT(sides), AT(side_count), SL_SIDES_MAX},
    [PARAMETER_OFFSETS] = {"offsets", "i is joined to i + offset and i - offset", WHOLES,
                           AT(offsets), AT(offset_count), SL_OFFSETS_MAX},
    [PARAMETER_DEGREE] = {"degree", "neighbours of a node", WHOLE, AT(degree), 0, 0},
    [PARAMETER_ARITY] = {"arity", "children of a node, or nodes that it sends to (2)", WHOLE,
                         AT(arity), 0, 0},
    [PARAMETER_PART] = {"part", "nodes of the first part (half of them)", WHOLE, AT(part), 0, 0},
    [PARAMETER_CLIQUE] = {"clique", "nodes of a complete part (half of them)", WHOLE, AT(clique), 0,
                          0},
    [PARAMETER_CLUSTERS] = {"clusters", "how many clusters, of equal size", WHOLE, AT(clusters), 0,
                            0},
    [PARAMETER_JOINED] = {"joined", "the family of the graph whose nodes are the clusters (ring)",
                          FAMILY, AT(joined), 0, 0},
    [PARAMETER_BRIDGES] = {"bridges", "edges between two clusters that are joined (1)", WHOLE,
                           AT(bridges), 0, 0},
    [PARAMETER_BRIDGE_EVERY] = {"bridge_every",
                                "rounds from one use of the bridges to the next (1)", WHOLE,
                                AT(bridge_every), 0, 0},
    [PARAMETER_PROBABILITY] = {"probability", "above 0 and at most 1", FRACTION, AT(probability), 0,
                               0},
    [PARAMETER_RADIUS] = {"radius",
                          "of the neighbourhood, above 0 and at most 1, in a square of side 1",
                          FRACTION, AT(radius), 0, 0},
    [PARAMETER_PEERS] = {"peers", "most peers of a node in a round (1)", WHOLE, AT(peers), 0, 0},
    [PARAMETER_BASE] = {"base",
                        "the family of the base graph, whose parameters are given beside it",
                        FAMILY, AT(base), 0, 0},
    [PARAMETER_BUDGET] = {"budget",
                          "the fraction of the matchings that is active, on average (0.5)",
                          FRACTION, AT(budget), 0, 0},
    [PARAMETER_PERIOD] = {"period",
                          "how many rounds are drawn before the schedule begins again (32)", WHOLE,
                          AT(period), 0, 0},
    [PARAMETER_SEED] = {"seed", "another seed, another graph (1)", SEED, AT(seed), 0, 0},
};

static const family *const families[SL_FAMILIES] = {
    [SL_FAMILY_RING] = &sl_ring_family,
    [SL_FAMILY_PATH] = &sl_path_family,
    [SL_FAMILY_GRID] = &sl_grid_family,
    [SL_FAMILY_TORUS] = &sl_torus_family,
    [SL_FAMILY_HYPERCUBE] = &sl_hypercube_family,
    [SL_FAMILY_STAR] = &sl_star_family,
    [SL_FAMILY_WHEEL] = &sl_wheel_family,
    [SL_FAMILY_COMPLETE] = &sl_complete_family,
    [SL_FAMILY_COMPLETE_BIPARTITE] = &sl_complete_bipartite_family,
    [SL_FAMILY_K_ARY_TREE] = &sl_k_ary_tree_family,
    [SL_FAMILY_BARBELL] = &sl_barbell_family,
    [SL_FAMILY_LOLLIPOP] = &sl_lollipop_family,
    [SL_FAMILY_CIRCULANT] = &sl_circulant_family,
    [SL_FAMILY_SYMMETRIC_EXPONENTIAL] = &sl_symmetric_exponential_family,
    [SL_FAMILY_CLUSTERS] = &sl_clusters_family,
    [SL_FAMILY_RANDOM_REGULAR] = &sl_random_regular_family,
    [SL_FAMILY_ERDOS_RENYI] = &sl_erdos_renyi_family,
    [SL_FAMILY_WATTS_STROGATZ] = &sl_watts_strogatz_family,
    [SL_FAMILY_RANDOM_GEOMETRIC] = &sl_random_geometric_family,
    [SL_FAMILY_DIRECTED_RING] = &sl_directed_ring_family,
    [SL_FAMILY_STATIC_EXPONENTIAL] = &sl_static_exponential_family,
    [SL_FAMILY_DE_BRUIJN] = &sl_de_bruijn_family,
    [SL_FAMILY_D_EQUISTATIC] = &sl_d_equistatic_family,
    [SL_FAMILY_U_EQUISTATIC] = &sl_u_equistatic_family,
    [SL_FAMILY_ONE_PEER_EXPONENTIAL] = &sl_one_peer_exponential_family,
    [SL_FAMILY_ONE_PEER_HYPERCUBE] = &sl_one_peer_hypercube_family,
    [SL_FAMILY_HYPER_CUBOID] = &sl_hyper_cuboid_family,
    [SL_FAMILY_ALTERNATING_MATCHINGS] = &sl_alternating_matchings_family,
    [SL_FAMILY_BASE_K] = &sl_base_k_family,
    [SL_FAMILY_OD_EQUIDYN] = &sl_od_equidyn_family,
    [SL_FAMILY_OU_EQUIDYN] = &sl_ou_equidyn_family,
    [SL_FAMILY_MATCHA] = &sl_matcha_family,
};

const family *sl_family_of(sl_family which) {
    return (unsigned)which < SL_FAMILIES ? families[which] : NULL;
}

const sl_family_info *sl_family_describe(sl_family which) {
    static const sl_family_info edges = {
        .name = "edges", .meaning = "edges as listed", .weighting = SL_WEIGHTING_METROPOLIS};
    const family *f = sl_family_of(which);
    return f ? &f->info : &edges;
}

/* ---- checking a description ---- */

bool sl_parameter_is_given(const sl_topology_spec *spec, const parameter *p) {
    const char *at = (const char *)spec + p->at;
    switch (p->kind) {
    case WHOLE:
        return *(const uint32_t *)at != 0;
    case WHOLES:
        return *(const uint32_t *)((const char *)spec + p->count_at) != 0;
    case FRACTION:
        return *(const double *)at != 0;
    case FAMILY:
        return *(const sl_family *)at != SL_FAMILY_EDGES;
    case SEED:
        return true;
    }
    return false;
}

static int check_given(const sl_topology_spec *spec, const family *f, sl_error *error) {
    for (int i = 0; i < PARAMETERS; i++) {
        const parameter *p = &sl_parameters[i];
        bool given = sl_parameter_is_given(spec, p);
        if ((f->needs & 1u << i) && !given)
            return sl_fail(error, SL_EINVAL, "%s: missing; family \"%s\" needs it: %s", p->name,
                           f->info.name, p->meaning);
        if ((f->takes & 1u << i) == 0 || p->kind != FRACTION || !given)
            continue;
        double value = *(const double *)((const char *)spec + p->at);
        if (!(value > 0 && value <= 1))
            return sl_fail(error, SL_EINVAL,
                           "%s: %g is not allowed; it must be above 0 and at most 1", p->name,
                           value);
    }
    return 0;
}

int sl_family_settle(sl_topology_spec *spec, sl_error *error) {
    const family *f = sl_family_of(spec->family);
    if (f == NULL)
        return sl_fail(error, SL_EINVAL, "family: %d is no family that can be drawn",
                       (int)spec->family);
    const sl_family_info *info = &f->info;
    if ((info->weighting == SL_WEIGHTING_EXPLICIT) != (spec->weighting == SL_WEIGHTING_EXPLICIT))
        return sl_fail(error, SL_EINVAL,
                       info->weighting == SL_WEIGHTING_EXPLICIT
                           ? "weights: family \"%s\" brings its own; leave them out"
                           : "weights: family \"%s\" needs a scheme",
                       info->name);
    if (spec->nodes < f->nodes_min)
        return sl_fail(error, SL_EINVAL, "nodes: %u is too few for family \"%s\"; at least %u",
                       spec->nodes, info->name, f->nodes_min);
    int result = check_given(spec, f, error);
    return result == 0 && f->settle != NULL ? f->settle(spec, error) : result;
}

int sl_family_check_edges(const sl_topology_spec *spec, uint64_t edges, sl_error *error) {
    if (edges <= edges_max)
        return 0;
    return sl_fail(
        error, SL_EINVAL,
        "nodes: family \"%s\" of %u nodes would have %llu directed edges; at most %llu are kept",
        sl_family_of(spec->family)->info.name, spec->nodes, (unsigned long long)edges,
        (unsigned long long)edges_max);
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

int sl_family_check_power_of_two(const sl_topology_spec *spec, sl_error *error) {
    if ((spec->nodes & (spec->nodes - 1)) == 0)
        return 0;
    return sl_fail(error, SL_EINVAL, "nodes: %u is not a power of two, which family \"%s\" needs",
                   spec->nodes, sl_family_of(spec->family)->info.name);
}

static void squarest(sl_topology_spec *spec) {
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
        squarest(spec);
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

/* ---- help ---- */

static void write_family(FILE *to, const family *f) {
    fprintf(to, "  %-22s %s", f->info.name, f->info.meaning);
    for (int i = 0; i < PARAMETERS; i++)
        if (f->takes & 1u << i)
            fprintf(to, "%s%s%s", (f->takes & ((1u << i) - 1)) ? ", " : "; takes ",
                    sl_parameters[i].name, (f->needs & 1u << i) ? " (needed)" : "");
    fputc('\n', to);
}

char *sl_families_help(void) {
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (to == NULL)
        return NULL;
    for (int i = SL_FAMILY_EDGES + 1; i < SL_FAMILIES; i++)
        write_family(to, families[i]);
    fputs("\nparameters:\n", to);
    for (int i = 0; i < PARAMETERS; i++)
        fprintf(to, "  %-22s %s\n", sl_parameters[i].name, sl_parameters[i].meaning);
    if (fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
