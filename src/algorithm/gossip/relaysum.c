/* relaysum.c - RelaySGD: Vogels, He, Koloskova, Lin, Karimireddy, Stich, Jaggi, "RelaySum for
 * Decentralized Deep Learning on Heterogeneous Data", NeurIPS 2021, Algorithm 1, of models.
 *
 *   y_i = x_i - gamma mom(g_i(x_i))
 *   m_ij = y_i + sum_{k != j} m_ki(before), sent to j over the edge of a tree
 *   x_i = (y_i + sum_j m_ji + (n - h_i) x_i(0)) / n
 *
 * m_ij is the sum of one y of each node on i's side, each as old as it is far from i. h_i, the
 * nodes that have been heard of, are those at most as many edges away as exchanges were; all, after
 * as many as the tree is deep. (The paper sends their number; here both sides know the tree.) What
 * came from j goes to all but j, so that each y is counted once, and the average is exact: with
 * full gradients it ends at the optimum however uneven the data are. All x_i(0) should be the same.
 *
 * W's numbers do not matter. The gradient's place takes S_i = y_i + sum_k m_ki(before), of which a
 * message is S_i - m_ji(before). Memory beside x, g, momentum: x(0), and a message of each
 * neighbour. Wire: 32 d bits over each of the tree's edges, each way.
 */
#include "algorithm/algorithms.h"
#include "algorithm/gossip/relay_tree.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"
#include "vec/finite.h"

enum { FIRST = 0 };

static void start(sl_state *s, size_t dimension) {
    sl_copy(s, s->extra[FIRST], s->x, dimension);
}

/* x <- y, g <- S */
static void step(sl_state *s, size_t from, size_t count) {
    sl_local_step(s, from, count);
    sl_terms sum = sl_terms_begin(s, s->g + from, count);
    sl_terms_add(&sum, s->x + from, 1);
    for (size_t k = 0; k < s->replica_count; k++)
        sl_terms_add(&sum, s->replicas[k] + from, 1);
    sl_terms_end(&sum);
}

static void read_sum(void *state, size_t from, size_t count, float *out) {
    const sl_state *s = state;
    sl_subtract(s, out, s->g + from, s->replicas[s->slot] + from, count);
}

static void take(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    const float *theirs = mix->parts[0].payload.data;
    sl_copy(s, s->replicas[s->slot] + from, theirs, count);
    s->is_finite = s->is_finite && (!s->vec->on_host || sl_vec_is_finite(theirs, count));
}

static void average(sl_state *s, size_t from, size_t count) {
    const float share = 1 / (float)s->nodes;
    sl_terms sum = sl_terms_begin(s, s->x + from, count);
    sl_terms_add(&sum, s->x + from, share);
    for (size_t k = 0; k < s->replica_count; k++)
        sl_terms_add(&sum, s->replicas[k] + from, share);
    if (s->heard < s->nodes)
        sl_terms_add(&sum, s->extra[FIRST] + from, share * (float)(s->nodes - s->heard));
    sl_terms_end(&sum);
}

static int check(const sl_algorithm_config *config, const sl_topology *topology, sl_error *error) {
    sl_relay_tree tree;
    int result = sl_relay_tree_open(&tree, topology, config->tree, error);
    if (result == 0)
        sl_relay_tree_close(&tree);
    return result;
}

static const char *needs_all(const sl_algorithm_config *config) {
    return config->tree == SL_TREE_TOPOLOGY ? "has \"tree\": \"topology\", which others may not be"
                                            : NULL;
}

static const sl_stage stages[] = {{.prepare = step, .read = read_sum, .combine = take}};

static const char *const trees[] = {"spanning", "topology", NULL};
static const sl_key keys[] = {
    {SL_OWN_CHOICE(tree, trees), .fallback = "\"spanning\"",
     .help = "edges that span the topology (spanning), or all, which must be a tree (topology)"},
    SL_KEYS_END,
};

const sl_algorithm sl_relaysum = {
    .name = "relaysum",
    .stable_by = SL_STABLE_BY_NETWORK,
    .route = SL_ROUTE_TREE,
    .matrix = SL_MATRIX_SYMMETRIC,
    .keys = keys,
    .check = check,
    .needs_all = needs_all,
    .takes_momentum = true,
    .keeps_gradient = true,
    .keeps_received = true,
    .extra_vectors = 1,
    .stages = stages,
    .stage_count = 1,
    .start = start,
    .settle = average,
};
