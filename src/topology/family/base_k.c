/* base_k.c - the Base-(k+1) graph: exact agreement of any number of nodes in O(log_(k+1) n) rounds
 * with at most k peers a round.
 *
 * Takezawa, Sato, Bao, Niwa, Yamada, "Beyond exponential graph: communication-efficient topologies
 * for decentralized learning via finite-time convergence", NeurIPS 2023. Three constructions, each
 * on top of the one before:
 *
 *   cuboid (their hyper-hypercube)  n = product of factors <= k + 1: round d averages over the
 *                                   nodes that differ in digit d alone.
 *   simple  n written in base k + 1, n = s_1 + ... + s_L with s_l = a_l (k+1)^p_l, part l being s_l
 *           nodes in a_l blocks. First every part agrees
 *           by a cuboid. Then in round l = 1 .. L-1 each node of the parts after l meets one node
 *             of each block of part l, with weights so that
 *           its value becomes s_l/S_l of theirs and the rest of its own, S_l = s_l + ... + s_L. The
 *             blocks of part l then have the mean of all
 *           nodes, and agree by cuboids of their own; what part L holds in the end is the mean.
 *   base    n = p q, q without factors <= k + 1: p groups of q nodes agree by the simple one, then
 *           across groups by a cuboid; or the simple one
 *           on all nodes, where that takes fewer rounds.
 */
#include "topology/family/family.h"

enum { DIGITS_MAX = 32, CLIQUE_MAX = 32 };

typedef struct cuboid {
    uint32_t sides[DIGITS_MAX], count;
} cuboid;

/* Node i of a set is node first + i stride of the graph. */
typedef struct node_set {
    uint32_t first, stride;
} node_set;

static uint32_t node_of(node_set s, uint32_t i) {
    return s.first + i * s.stride;
}

/* n = product of `depth` factors, none above `most`, largest first. */
static bool factorise(uint32_t n, uint32_t most, uint32_t depth, uint32_t *factors) {
    if (depth == 0)
        return n == 1;
    for (uint32_t f = most < n ? most : n; f > 1; f--)
        if (n % f == 0 && factorise(n / f, f, depth - 1, factors + 1)) {
            factors[0] = f;
            return true;
        }
    return false;
}

/* With as few rounds as possible; false where n has a prime factor above `most`. */
static bool find_cuboid(cuboid *out, uint32_t n, uint32_t most) {
    for (out->count = 0; out->count < DIGITS_MAX; out->count++)
        if (factorise(n, most, out->count, out->sides))
            return true;
    return false;
}

static void average(edge_list *list, node_set s, const uint32_t *members, uint32_t count) {
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = 0; b < count; b++)
            if (a != b)
                sl_edge_list_push_weighted(list, node_of(s, members[a]), node_of(s, members[b]),
                                           1.0 / count);
}

/* Round d (modulo their number) of a cuboid on nodes from .. from + size - 1 of the set. */
static void cuboid_round(edge_list *list, const cuboid *c, node_set s, uint32_t from, uint32_t size,
                         uint32_t d) {
    if (c->count == 0)
        return;
    uint32_t place = 1;
    for (uint32_t k = 0; k < d % c->count; k++)
        place *= c->sides[k];
    sl_average_digit(list, node_of(s, from), s.stride, size, place, c->sides[d % c->count]);
}

typedef struct part {
    uint32_t first, size, block; /* block: nodes of one */
    uint32_t rest;               /* nodes of this part and all after it */
    cuboid whole, inner;         /* of the part, of a block */
} part;

typedef struct simple_base {
    uint32_t n, peers, count;
    part parts[DIGITS_MAX];
    uint32_t gather, rounds; /* until parts agree; in all */
} simple_base;

static void find_simple(simple_base *b, uint32_t n, uint32_t peers) {
    *b = (simple_base){.n = n, .peers = peers};
    uint32_t block = 1;
    while (block <= n / (peers + 1))
        block *= peers + 1;
    for (uint32_t first = 0; first < n; block /= peers + 1) {
        uint32_t size = (n - first) / block * block;
        if (size == 0)
            continue;
        part *p = &b->parts[b->count++];
        *p = (part){.first = first, .size = size, .block = block, .rest = n - first};
        find_cuboid(&p->whole, size, peers + 1);
        find_cuboid(&p->inner, block, peers + 1);
        first += size;
    }
    b->gather = b->parts[0].whole.count;
    b->rounds = b->gather + (b->count > 1 ? 1 + b->parts[0].inner.count : 0);
}

/* Nodes of part p that no later node met hold equal values: averages among them do no harm to
 * exactness, and mix what is not equal yet. */
static void average_unmet(edge_list *list, const simple_base *b, const part *p, uint32_t met,
                          node_set s) {
    uint32_t blocks = p->size / p->block, left = p->block - met, group[CLIQUE_MAX];
    uint32_t limit = b->peers + 1 < CLIQUE_MAX ? b->peers + 1 : CLIQUE_MAX, filled = 0;
    for (uint32_t u = 0; u < blocks * left; u++) {
        group[filled++] = p->first + u / left * p->block + met + u % left;
        if (filled == limit || u + 1 == blocks * left) {
            average(list, s, group, filled);
            filled = 0;
        }
    }
}

/* The round in which all nodes after part p meet one node of each of its blocks. */
static void meet(edge_list *list, const simple_base *b, const part *p, node_set s) {
    uint32_t met = p->rest - p->size;
    for (uint32_t t = 0; t < met; t++)
        for (uint32_t block = 0; block < p->size / p->block; block++) {
            uint32_t here = node_of(s, p->first + block * p->block + t),
                     there = node_of(s, p->first + p->size + t);
            sl_edge_list_push_weighted(list, here, there, (double)p->block / p->rest);
            sl_edge_list_push_weighted(list, there, here, (double)p->block / p->rest);
        }
    average_unmet(list, b, p, met, s);
}

static void simple_round(edge_list *list, const simple_base *b, node_set s, uint32_t round) {
    if (round < b->gather) {
        for (uint32_t l = 0; l < b->count; l++)
            cuboid_round(list, &b->parts[l].whole, s, b->parts[l].first, b->parts[l].size, round);
        return;
    }
    uint32_t meeting = round - b->gather;
    if (meeting + 1 < b->count)
        meet(list, b, &b->parts[meeting], s);
    for (uint32_t l = 0; l < b->count; l++) {
        const part *p = &b->parts[l];
        bool is_last = l + 1 == b->count;
        if (is_last ? meeting < l : meeting <= l)
            continue;
        for (uint32_t from = p->first; from < p->first + p->size; from += p->block)
            cuboid_round(list, &p->inner, s, from, p->block, meeting - l - !is_last);
    }
}

static int settle_base_k(sl_topology_spec *spec, sl_error *error) {
    if (spec->peers == 0)
        spec->peers = 1;
    if (spec->peers < spec->nodes || spec->nodes == 1)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "peers: %u is not allowed for %u nodes; it must be from 1 to %u", spec->peers,
                   spec->nodes, spec->nodes - 1);
}

/* The largest divisor of n that has no prime factor above `most`. */
static uint32_t smooth_part(uint32_t n, uint32_t most) {
    uint32_t smooth = 1;
    for (uint32_t f = 2; f <= most && f <= n; f++)
        for (; n % f == 0; n /= f)
            smooth *= f;
    return smooth;
}

static int generate_base_k(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                           sl_error *error) {
    (void)attempt;
    uint32_t n = spec->nodes, groups = smooth_part(n, spec->peers + 1), size = n / groups;
    simple_base all, group;
    cuboid across;
    find_simple(&all, n, spec->peers);
    find_simple(&group, size, spec->peers);
    find_cuboid(&across, groups, spec->peers + 1);
    bool is_simple = all.rounds < group.rounds + across.count;
    uint32_t rounds = is_simple ? all.rounds : group.rounds + across.count;
    int result =
        sl_family_check_edges(&sl_base_k_family, spec, (uint64_t)n * spec->peers * rounds, error);
    for (uint32_t k = 0; result == 0 && k < rounds; k++) {
        edge_list *list = sl_edge_lists_add(out);
        if (is_simple)
            simple_round(list, &all, (node_set){0, 1}, k);
        for (uint32_t g = 0; !is_simple && k < group.rounds && g < groups; g++)
            simple_round(list, &group, (node_set){g * size, 1}, k);
        for (uint32_t i = 0; !is_simple && k >= group.rounds && i < size; i++)
            cuboid_round(list, &across, (node_set){i, size}, 0, groups, k - group.rounds);
    }
    return result;
}

const family sl_base_k_family = {
    .info = {.name = "base-k",
             .meaning = "Base-(k+1): any number of nodes agree exactly, k peers a round",
             .schedule = true,
             .weighting = SL_WEIGHTING_EXPLICIT},
    .takes = TAKES(PEERS),
    .nodes_min = 1,
    .settle = settle_base_k,
    .generate = generate_base_k,
    .info.examples = EXAMPLES("{\"nodes\": 6}", "{\"nodes\": 25, \"peers\": 2}"),
};
