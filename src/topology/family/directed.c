/* directed.c - families of one directed graph. */
#include "topology/family/family.h"

#define DIRECTED(label, text)                                                                      \
    .info = {.name = label, .meaning = text, .directed = true, .weighting = SL_WEIGHTING_UNIFORM}

static void send_around(edge_list *list, uint32_t n, uint32_t offset) {
    for (uint32_t i = 0; i < n; i++)
        sl_edge_list_push(list, i, (i + offset) % n);
}

static int generate_ring(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                         sl_error *error) {
    (void)attempt, (void)error;
    send_around(sl_edge_lists_add(out), spec->nodes, 1);
    return 0;
}

static int generate_exponential(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                                sl_error *error) {
    (void)attempt, (void)error;
    edge_list *list = sl_edge_lists_add(out);
    for (uint32_t offset = 1; offset < spec->nodes; offset <<= 1)
        send_around(list, spec->nodes, offset);
    return 0;
}

const family sl_directed_ring_family = {
    DIRECTED("directed-ring", "i sends to i + 1"),
    .nodes_min = 1,
    .generate = generate_ring,
    .info.examples = EXAMPLES("{\"nodes\": 8}", "{\"nodes\": 13}"),
    .info.transitive = true,
    .ranked = RANKED_PLAIN,
};
const family sl_static_exponential_family = {
    DIRECTED("static-exponential", "i sends to i + 1, i + 2, i + 4, ..."),
    .nodes_min = 1,
    .generate = generate_exponential,
    .info.examples = EXAMPLES("{\"nodes\": 8}", "{\"nodes\": 13}"),
    .info.transitive = true,
    .ranked = RANKED_PLAIN,
};

/* ---- de-bruijn and kautz: the weight 1/arity on every edge ---- */

static int settle_arity(sl_topology_spec *spec, sl_error *error) {
    if (spec->arity == 0)
        spec->arity = 2;
    if (spec->arity >= 2 && spec->arity <= spec->nodes)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "arity: %u is not allowed for %u nodes; it must be from 2 to %u", spec->arity,
                   spec->nodes, spec->nodes);
}

/* i sends to first, first + 1, ..., first + arity - 1 mod n, and keeps only what it sends itself.
 */
static void send_to_block(edge_list *list, uint32_t i, uint64_t first,
                          const sl_topology_spec *spec) {
    bool is_own = false;
    for (uint32_t k = 0; k < spec->arity; k++) {
        uint32_t to = (uint32_t)((first + k) % spec->nodes);
        sl_edge_list_push_weighted(list, i, to, 1.0 / spec->arity);
        is_own = is_own || to == i;
    }
    if (!is_own)
        sl_edge_list_push_weighted(list, i, i, 0);
}

/* i sends to arity i, arity i + 1, ..., arity i + arity - 1 mod n: de Bruijn's graph where n is a
 * power of arity, Imase and Itoh's for any other n. Without weights of their own, 1/arity on every
 * edge, agreement is exact after log_arity n rounds, the fastest of all graphs of that degree:
 * Delvenne, Carli, Zampieri, "Optimal strategies in the average consensus problem", 2009. */
static int generate_de_bruijn(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                              sl_error *error) {
    (void)attempt;
    uint32_t n = spec->nodes, arity = spec->arity;
    int result = sl_family_check_edges(&sl_de_bruijn_family, spec, (uint64_t)n * arity, error);
    if (result != 0)
        return result;
    edge_list *list = sl_edge_lists_add(out);
    for (uint32_t i = 0; i < n; i++)
        send_to_block(list, i, (uint64_t)i * arity, spec);
    return 0;
}

const family sl_de_bruijn_family = {
    .info =
        {.name = "de-bruijn",
         .meaning =
             "i sends to arity i + 0, 1, ... mod n and keeps nothing; exact for powers of arity",
         .directed = true,
         .weighting = SL_WEIGHTING_EXPLICIT},
    .takes = TAKES(ARITY),
    .nodes_min = 2,
    .settle = settle_arity,
    .generate = generate_de_bruijn,
    .info.examples = EXAMPLES("{\"nodes\": 8}", "{\"nodes\": 27, \"arity\": 3}"),
    .ranked = RANKED_PLAIN,
};

/* i sends to -arity i - 1, ..., -arity i - arity mod n: Kautz' graph where n is arity^(d-1) times
 * arity + 1, which has the smallest diameter, d, of its degree and size; Imase and Itoh's, "A
 * design for directed graphs with minimum diameter", 1983, for any other n. Kautz' graph has no
 * eigenvalues but 1, 0 and -1/arity: rho does not grow with n. */
static int generate_kautz(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                          sl_error *error) {
    (void)attempt;
    uint64_t n = spec->nodes, arity = spec->arity;
    int result = sl_family_check_edges(&sl_kautz_family, spec, n * arity, error);
    if (result != 0)
        return result;
    edge_list *list = sl_edge_lists_add(out);
    for (uint32_t i = 0; i < n; i++)
        send_to_block(list, i, n * arity - arity * (i + 1ull), spec);
    return 0;
}

const family sl_kautz_family = {
    .info = {.name = "kautz",
             .meaning = "i sends to -arity i - 1, -2, ... mod n; rho 1/arity at "
                        "arity^d + arity^(d-1) nodes",
             .directed = true,
             .weighting = SL_WEIGHTING_EXPLICIT},
    .takes = TAKES(ARITY),
    .nodes_min = 2,
    .settle = settle_arity,
    .generate = generate_kautz,
    .info.examples = EXAMPLES("{\"nodes\": 12}", "{\"nodes\": 36, \"arity\": 3}",
                              "{\"nodes\": 7, \"arity\": 3}"),
    .ranked = RANKED_PLAIN,
};
