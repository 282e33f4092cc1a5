/* directed.c - families of one directed graph. */
#include "topology/family.h"

#define DIRECTED(label, text) .info = {.name = label, .meaning = text, .directed = true, .weighting = SL_WEIGHTING_UNIFORM}

static void send_around(edge_list *list, uint32_t n, uint32_t offset) {
    for (uint32_t i = 0; i < n; i++)
        edge_list_push(list, i, (i + offset) % n);
}

static int generate_ring(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out, sl_error *error) {
    (void)attempt, (void)error;
    send_around(edge_lists_add(out), spec->nodes, 1);
    return 0;
}

static int generate_exponential(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out, sl_error *error) {
    (void)attempt, (void)error;
    edge_list *list = edge_lists_add(out);
    for (uint32_t offset = 1; offset < spec->nodes; offset <<= 1)
        send_around(list, spec->nodes, offset);
    return 0;
}

const family directed_ring_family = {DIRECTED("directed-ring", "i sends to i + 1"), .nodes_min = 1, .generate = generate_ring};
const family static_exponential_family = {DIRECTED("static-exponential", "i sends to i + 1, i + 2, i + 4, ..."), .nodes_min = 1,
                                          .generate = generate_exponential};
