/* undirected.c - families of one undirected graph that leave nothing to chance. */
#include <stdlib.h>

#include "topology/family/family.h"

#define STATIC(label, text)                                                                        \
    .info = {.name = label, .meaning = text, .weighting = SL_WEIGHTING_METROPOLIS}

static void join_path(edge_list *list, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i + 1 < count; i++)
        sl_edge_list_push_both(list, first + i, first + i + 1);
}

static void join_ring(edge_list *list, uint32_t first, uint32_t count) {
    join_path(list, first, count);
    if (count > 2)
        sl_edge_list_push_both(list, first + count - 1, first);
}

static void join_all(edge_list *list, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = i + 1; j < count; j++)
            sl_edge_list_push_both(list, first + i, first + j);
}

static int generate_ring(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                         sl_error *error) {
    (void)attempt, (void)error;
    join_ring(sl_edge_lists_add(out), 0, spec->nodes);
    return 0;
}

static int generate_path(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                         sl_error *error) {
    (void)attempt, (void)error;
    join_path(sl_edge_lists_add(out), 0, spec->nodes);
    return 0;
}

static int generate_star(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                         sl_error *error) {
    (void)attempt, (void)error;
    edge_list *list = sl_edge_lists_add(out);
    for (uint32_t i = 1; i < spec->nodes; i++)
        sl_edge_list_push_both(list, 0, i);
    return 0;
}

static int generate_wheel(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                          sl_error *error) {
    int result = generate_star(spec, attempt, out, error);
    join_ring(&out->lists[0], 1, spec->nodes - 1);
    return result;
}

static int generate_complete(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                             sl_error *error) {
    (void)attempt;
    int result = sl_family_check_edges(&sl_complete_family, spec,
                                       (uint64_t)spec->nodes * (spec->nodes - 1), error);
    if (result == 0)
        join_all(sl_edge_lists_add(out), 0, spec->nodes);
    return result;
}

const family sl_ring_family = {
    STATIC("ring", "a cycle"), .nodes_min = 1,
    .generate = generate_ring, .info.examples = EXAMPLES("{\"nodes\": 8}", "{\"nodes\": 13}"),
    .info.transitive = true,   .ranked = RANKED_PLAIN,
};
const family sl_path_family = {
    STATIC("path", "a line"),
    .nodes_min = 1,
    .generate = generate_path,
    .info.examples = EXAMPLES("{\"nodes\": 2}", "{\"nodes\": 9}"),
};
const family sl_star_family = {
    STATIC("star", "node 0 and its neighbours"), .nodes_min = 1,         .generate = generate_star,
    .info.examples = EXAMPLES("{\"nodes\": 9}"), .ranked = RANKED_PLAIN,
};
const family sl_wheel_family = {
    STATIC("wheel", "node 0 joined to a cycle of the others"),
    .nodes_min = 4,
    .generate = generate_wheel,
    .info.examples = EXAMPLES("{\"nodes\": 4}", "{\"nodes\": 9}"),
};
const family sl_complete_family = {
    STATIC("complete", "all pairs"), .nodes_min = 1,
    .generate = generate_complete,   .info.examples = EXAMPLES("{\"nodes\": 5}", "{\"nodes\": 13}"),
    .info.transitive = true,         .ranked = RANKED_PLAIN,
};

/* ---- products of lines and cycles ---- */

/* A side of 2 is one edge, not two between the same nodes; one of 1 is none. */
static int generate_mesh(const sl_topology_spec *spec, bool wraps, edge_lists *out) {
    edge_list *list = sl_edge_lists_add(out);
    for (uint32_t i = 0; i < spec->nodes; i++) {
        uint32_t stride = 1;
        for (uint32_t d = spec->side_count; d-- > 0; stride *= spec->sides[d]) {
            uint32_t at = i / stride % spec->sides[d];
            if (at + 1 < spec->sides[d])
                sl_edge_list_push_both(list, i, i + stride);
            else if (wraps && spec->sides[d] > 2)
                sl_edge_list_push_both(list, i, i - at * stride);
        }
    }
    return 0;
}

static int generate_grid(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                         sl_error *error) {
    (void)attempt, (void)error;
    return generate_mesh(spec, false, out);
}

static int generate_torus(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                          sl_error *error) {
    (void)attempt, (void)error;
    return generate_mesh(spec, true, out);
}

static int generate_hypercube(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                              sl_error *error) {
    (void)attempt, (void)error;
    edge_list *list = sl_edge_lists_add(out);
    for (uint32_t i = 0; i < spec->nodes; i++)
        for (uint32_t bit = 1; bit < spec->nodes; bit <<= 1)
            if (!(i & bit))
                sl_edge_list_push_both(list, i, i | bit);
    return 0;
}

static int settle_hypercube(sl_topology_spec *spec, sl_error *error) {
    return sl_family_check_power_of_two(&sl_hypercube_family, spec, error);
}

const family sl_grid_family = {
    STATIC("grid", "a mesh of any dimension without wrap-around"),
    .takes = TAKES(SIDES),
    .nodes_min = 1,
    .settle = sl_family_settle_sides,
    .generate = generate_grid,
    .info.examples =
        EXAMPLES("{\"nodes\": 12, \"sides\": [3, 4]}", "{\"nodes\": 24, \"sides\": [2, 3, 4]}"),
};
const family sl_torus_family = {
    STATIC("torus", "a mesh of any dimension with wrap-around"),
    .takes = TAKES(SIDES),
    .nodes_min = 1,
    .settle = sl_family_settle_sides,
    .generate = generate_torus,
    .info.examples =
        EXAMPLES("{\"nodes\": 12, \"sides\": [3, 4]}", "{\"nodes\": 16, \"sides\": [2, 2, 2, 2]}"),
    .info.transitive = true,
};
const family sl_hypercube_family = {
    STATIC("hypercube", "numbers that differ in one bit; a power of two"),
    .nodes_min = 1,
    .settle = settle_hypercube,
    .generate = generate_hypercube,
    .info.examples = EXAMPLES("{\"nodes\": 16}"),
    .info.transitive = true,
    .ranked = RANKED_PLAIN,
};

/* ---- parts ---- */

static int settle_bipartite(sl_topology_spec *spec, sl_error *error) {
    if (spec->part == 0)
        spec->part = spec->nodes / 2;
    if (spec->part < spec->nodes)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "part: %u of %u nodes leaves no other part; it must be from 1 to %u", spec->part,
                   spec->nodes, spec->nodes - 1);
}

static int generate_bipartite(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                              sl_error *error) {
    (void)attempt;
    int result =
        sl_family_check_edges(&sl_complete_bipartite_family, spec,
                              2 * (uint64_t)spec->part * (spec->nodes - spec->part), error);
    if (result != 0)
        return result;
    edge_list *list = sl_edge_lists_add(out);
    for (uint32_t i = 0; i < spec->part; i++)
        for (uint32_t j = spec->part; j < spec->nodes; j++)
            sl_edge_list_push_both(list, i, j);
    return 0;
}

/* `count` cliques must fit in, and be more than an edge's end. */
static int settle_cliques(const family *f, sl_topology_spec *spec, uint32_t count,
                          sl_error *error) {
    uint32_t most = spec->nodes / count;
    if (spec->clique == 0)
        spec->clique = spec->nodes / 2;
    if (spec->clique >= 2 && spec->clique <= most)
        return 0;
    return sl_fail(
        error, SL_EINVAL,
        "clique: %u is not allowed for family \"%s\" of %u nodes; it must be from 2 to %u",
        spec->clique, f->info.name, spec->nodes, most);
}

static int settle_barbell(sl_topology_spec *spec, sl_error *error) {
    return settle_cliques(&sl_barbell_family, spec, 2, error);
}

static int settle_lollipop(sl_topology_spec *spec, sl_error *error) {
    return settle_cliques(&sl_lollipop_family, spec, 1, error);
}

/* A clique, a path, and another clique if `count` is 2. */
static int generate_cliques(const family *f, const sl_topology_spec *spec, uint32_t count,
                            edge_lists *out, sl_error *error) {
    const uint32_t clique = spec->clique;
    int result = sl_family_check_edges(f, spec, count * (uint64_t)clique * (clique - 1), error);
    if (result != 0)
        return result;
    edge_list *list = sl_edge_lists_add(out);
    join_all(list, 0, clique);
    join_path(list, clique - 1, spec->nodes - count * clique + count);
    if (count == 2)
        join_all(list, spec->nodes - clique, clique);
    return 0;
}

static int generate_lollipop(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                             sl_error *error) {
    (void)attempt;
    return generate_cliques(&sl_lollipop_family, spec, 1, out, error);
}

static int generate_barbell(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                            sl_error *error) {
    (void)attempt;
    return generate_cliques(&sl_barbell_family, spec, 2, out, error);
}

static int settle_tree(sl_topology_spec *spec, sl_error *error) {
    (void)error;
    if (spec->arity == 0)
        spec->arity = 2;
    return 0;
}

static int generate_tree(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                         sl_error *error) {
    (void)attempt, (void)error;
    edge_list *list = sl_edge_lists_add(out);
    for (uint32_t i = 1; i < spec->nodes; i++)
        sl_edge_list_push_both(list, (i - 1) / spec->arity, i);
    return 0;
}

const family sl_complete_bipartite_family = {
    STATIC("complete-bipartite", "all pairs between two parts"),
    .takes = TAKES(PART),
    .nodes_min = 2,
    .settle = settle_bipartite,
    .generate = generate_bipartite,
    .info.examples = EXAMPLES("{\"nodes\": 9}", "{\"nodes\": 11, \"part\": 3}"),
};
const family sl_k_ary_tree_family = {
    STATIC("k-ary-tree", "the children of i are arity i + 1 and following; node 0 is the root"),
    .takes = TAKES(ARITY),
    .nodes_min = 1,
    .settle = settle_tree,
    .generate = generate_tree,
    .info.examples = EXAMPLES("{\"nodes\": 9}", "{\"nodes\": 20, \"arity\": 3}"),
    .ranked = RANKED_PLAIN,
};
const family sl_barbell_family = {
    STATIC("barbell", "two cliques at the ends of a path"),
    .takes = TAKES(CLIQUE),
    .nodes_min = 4,
    .settle = settle_barbell,
    .generate = generate_barbell,
    .info.examples = EXAMPLES("{\"nodes\": 9}", "{\"nodes\": 11, \"clique\": 3}"),
};
const family sl_lollipop_family = {
    STATIC("lollipop", "a clique at the end of a path"),
    .takes = TAKES(CLIQUE),
    .nodes_min = 4,
    .settle = settle_lollipop,
    .generate = generate_lollipop,
    .info.examples = EXAMPLES("{\"nodes\": 9}", "{\"nodes\": 11, \"clique\": 10}"),
};

/* ---- circulants ---- */

static int settle_circulant(sl_topology_spec *spec, sl_error *error) {
    if (spec->offset_count > SL_OFFSETS_MAX)
        return sl_fail(error, SL_EINVAL, "offsets: %u are too many; at most %d", spec->offset_count,
                       SL_OFFSETS_MAX);
    uint32_t divisor = spec->nodes;
    for (uint32_t k = 0; k < spec->offset_count; k++) {
        uint32_t offset = spec->offsets[k];
        if (offset < 1 || offset > spec->nodes / 2)
            return sl_fail(error, SL_EINVAL,
                           "offsets[%u]: %u is not allowed for %u nodes; it must be from 1 to %u "
                           "(n - offset is the same)",
                           k, offset, spec->nodes, spec->nodes / 2);
        for (uint32_t j = 0; j < k; j++)
            if (spec->offsets[j] == offset)
                return sl_fail(error, SL_EINVAL, "offsets[%u]: %u stands twice", k, offset);
        divisor = sl_common_divisor(divisor, offset);
    }
    if (divisor > 1)
        return sl_fail(error, SL_EINVAL,
                       "offsets: all of them and nodes = %u are multiples of %u, so that the graph "
                       "falls into %u parts; add one that is not",
                       spec->nodes, divisor, divisor);
    return 0;
}

static void join_around(edge_list *list, uint32_t first, uint32_t count, uint32_t offset) {
    uint32_t edges = 2 * offset == count ? offset : count;
    for (uint32_t i = 0; i < edges; i++)
        sl_edge_list_push_both(list, first + i, first + (i + offset) % count);
}

static int generate_circulant(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                              sl_error *error) {
    (void)attempt, (void)error;
    edge_list *list = sl_edge_lists_add(out);
    for (uint32_t k = 0; k < spec->offset_count; k++)
        join_around(list, 0, spec->nodes, spec->offsets[k]);
    return 0;
}

static int generate_exponential(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                                sl_error *error) {
    (void)attempt, (void)error;
    edge_list *list = sl_edge_lists_add(out);
    for (uint32_t offset = 1; offset <= spec->nodes / 2; offset <<= 1)
        join_around(list, 0, spec->nodes, offset);
    return 0;
}

const family sl_circulant_family = {
    STATIC("circulant", "i is joined to i + offset and i - offset"),
    .takes = TAKES(OFFSETS),
    .needs = TAKES(OFFSETS),
    .nodes_min = 2,
    .settle = settle_circulant,
    .generate = generate_circulant,
    .info.examples =
        EXAMPLES("{\"nodes\": 13, \"offsets\": [1, 5]}", "{\"nodes\": 12, \"offsets\": [3, 4, 6]}"),
    .info.transitive = true,
};
const family sl_symmetric_exponential_family = {
    STATIC("symmetric-exponential", "circulant with the offsets 1, 2, 4, ... up to n/2"),
    .nodes_min = 1,
    .generate = generate_exponential,
    .info.examples = EXAMPLES("{\"nodes\": 8}", "{\"nodes\": 13}"),
    .info.transitive = true,
    .ranked = RANKED_PLAIN,
};

/* ---- clusters ---- */

/* The graph whose nodes are the clusters. */
static int describe_quotient(sl_topology_spec *quotient, const sl_topology_spec *spec,
                             const family *f, sl_error *error) {
    if (f == NULL || f->takes != 0 || f->info.directed || f->info.schedule)
        return sl_fail(error, SL_EINVAL,
                       "\"%s\" is not allowed; it must be an undirected family without parameters, "
                       "such as \"ring\", \"path\", \"star\" or \"complete\"",
                       f != NULL ? f->info.name : "edges");
    *quotient = (sl_topology_spec){
        .nodes = spec->clusters, .family = spec->joined, .weighting = f->info.weighting};
    return 0;
}

static int settle_clusters(sl_topology_spec *spec, sl_error *error) {
    spec->joined = spec->joined == SL_FAMILY_EDGES ? SL_FAMILY_RING : spec->joined;
    spec->bridges = spec->bridges == 0 ? 1 : spec->bridges;
    spec->bridge_every = spec->bridge_every == 0 ? 1 : spec->bridge_every;
    if (spec->clusters < 2 || spec->nodes % spec->clusters != 0)
        return sl_fail(
            error, SL_EINVAL,
            "clusters: %u is not allowed for %u nodes; it must be 2 or more, and divide them",
            spec->clusters, spec->nodes);
    uint32_t size = spec->nodes / spec->clusters, most = size - 1;
    if (spec->degree == 0)
        spec->degree = most;
    if (spec->degree > most || (spec->degree % 2 != 0 && size % 2 != 0))
        return sl_fail(error, SL_EINVAL,
                       "degree: %u is not allowed in clusters of %u nodes; it must be at most %u%s",
                       spec->degree, size, most, size % 2 != 0 ? ", and even" : "");
    if (spec->degree < 2 && size > 2)
        return sl_fail(error, SL_EINVAL,
                       "degree: %u leaves clusters of %u nodes in pieces; it must be at least 2",
                       spec->degree, size);
    if (spec->bridges > size)
        return sl_fail(error, SL_EINVAL, "bridges: %u are more than the %u nodes of a cluster",
                       spec->bridges, size);
    enum { ROUNDS_MAX = 4096 };
    if (spec->bridge_every > ROUNDS_MAX)
        return sl_fail(error, SL_EINVAL, "bridge_every: %u is too rare; at most %d",
                       spec->bridge_every, ROUNDS_MAX);
    return 0;
}

/* Nearest neighbours on a cycle within each cluster: all of them where degree = size - 1. */
static void join_within(const sl_topology_spec *spec, edge_list *list) {
    uint32_t size = spec->nodes / spec->clusters;
    for (uint32_t c = 0; c < spec->clusters; c++) {
        for (uint32_t offset = 1; offset <= spec->degree / 2; offset++)
            join_around(list, c * size, size, offset);
        if (spec->degree % 2 != 0)
            join_around(list, c * size, size, size / 2);
    }
}

/* Bridge b of a pair ends on node (t bridges + b) mod size of a cluster of which it is the t-th
 * pair, so that bridges spread over its nodes. */
static int join_clusters(const sl_topology_spec *spec, const edge_list *pairs, edge_list *list,
                         sl_error *error) {
    uint32_t size = spec->nodes / spec->clusters, *used = calloc(spec->clusters, sizeof *used);
    if (used == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u clusters", spec->clusters);
    for (size_t e = 0; e < pairs->count; e += 2) { /* both directions, one after the other */
        uint32_t a = pairs->edges[e].from, c = pairs->edges[e].to;
        for (uint32_t b = 0; b < spec->bridges; b++, used[a]++, used[c]++)
            sl_edge_list_push_both(list, a * size + used[a] % size, c * size + used[c] % size);
    }
    free(used);
    return 0;
}

static int generate_clusters(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                             sl_error *error) {
    (void)attempt;
    int result =
        sl_family_check_edges(&sl_clusters_family, spec,
                              (uint64_t)spec->nodes * spec->degree * spec->bridge_every, error);
    for (uint32_t k = 1; result == 0 && k <= spec->bridge_every; k++) {
        edge_list *list = sl_edge_lists_add(out);
        join_within(spec, list);
        if (k == spec->bridge_every)
            result = join_clusters(spec, &out->inner, list, error);
    }
    return result;
}

const family sl_clusters_family = {
    STATIC("clusters", "clusters of equal size, with few or seldom used bridges between them"),
    .takes = TAKES(CLUSTERS) | TAKES(DEGREE) | TAKES(JOINED) | TAKES(BRIDGES) | TAKES(BRIDGE_EVERY),
    .needs = TAKES(CLUSTERS),
    .nodes_min = 2,
    .inner_at = offsetof(sl_topology_spec, joined),
    .describe_inner = describe_quotient,
    .settle = settle_clusters,
    .generate = generate_clusters,
    .info.examples = EXAMPLES(
        "{\"nodes\": 12, \"clusters\": 3}",
        "{\"nodes\": 20, \"clusters\": 4, \"degree\": 2, \"joined\": \"complete\", \"bridges\": 2}",
        "{\"nodes\": 12, \"clusters\": 2, \"bridge_every\": 3}"),
};
