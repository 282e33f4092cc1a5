/* parameters.c - the table of the parameters that families take: reader, writer and command line
 * take names and meanings from here. */
#include "topology/family/family.h"

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
