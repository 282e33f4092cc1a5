/* test_cutting.c - nodes whose exchanges are cut at any moment, held against an account in float64:
 * what each had combined says what each sum is made of. test_nodes.c cuts every algorithm.
 *
 * Now and then all hear of a loss, each for itself, when some parts have come. They end the rounds
 * that others have begun, alone, and go on under a view of the same members.
 */
#include "node_network.h"

enum { SEEDS = 10 };
static const double kappa = 0.3, mu = 0.5;
static const uint32_t all[NODES] = {0, 1, 2, 3, 4, 5};
static uint64_t lasts[LOSSES]; /* rounds before views */
static uint32_t losses;        /* that all have heard of */
static bool is_cutting;

/* ---- losses ---- */

/* A node begins no later round then. What is twice as good as once. */
static void cut(peer *p) {
    if (p->is_cut || !p->started || losses == LOSSES)
        return;
    sl_node_hold(p->node, sl_node_round(p->node));
    sl_node_reach(p->node, &p->cuts[losses]);
    p->is_cut = true;
    p->message = (sl_outbound){0};
    p->encoded = p->sent = 0;
    step(p, &(sl_event){.type = SL_EVENT_CUT});
    if (below(2) == 0)
        step(p, &(sl_event){.type = SL_EVENT_CUT});
}

static bool all_are_cut(void) {
    for (int i = 0; i < NODES; i++)
        if (!peers[i].is_cut)
            return false;
    return true;
}

/* Rounds that some have begun are ended by all, alone. */
static uint64_t end_rounds(void) {
    uint64_t last = 0;
    for (int i = 0; i < NODES; i++)
        last = sl_node_round(peers[i].node) > last ? sl_node_round(peers[i].node) : last;
    for (int i = 0; i < NODES; i++) {
        peer *p = &peers[i];
        if (p->rounds == sl_node_round(p->node) && p->rounds < last)
            step(p, &(sl_event){.type = SL_EVENT_RELEASED});
        sl_node_hold(p->node, last);
        while (p->rounds < last) {
            ck_assert_msg(p->computing, "node %d waits in round %d", i,
                          (int)sl_node_round(p->node));
            compute(p);
        }
    }
    return last;
}

/* Frames that a node has not given back. */
static uint32_t held(int to) {
    uint32_t count = 0;
    for (int from = 0; from < NODES; from++)
        for (int k = 0; k < QUEUE; k++)
            count += queues[from][to].frames[k].used;
    return count;
}

/* What is on its way does not come any more. */
static void turn(void) {
    lasts[losses++] = end_rounds();
    const sl_node_view view = {.round = lasts[losses - 1] + 1,
                               .exchange = sl_node_exchange(peers[0].node),
                               .members = {all, NODES},
                               .topology = topology,
                               .plan = &plan};
    for (int from = 0; from < NODES; from++)
        for (int to = 0; to < NODES; to++)
            while (queues[from][to].count > 0 && below(4) > 0)
                arrive((uint32_t)from, (uint32_t)to); /* and is dropped */
    for (int from = 0; from < NODES; from++)
        for (int to = 0; to < NODES; to++) {
            queue *q = &queues[from][to];
            for (; q->count > 0; q->count--, q->first = (q->first + 1) % QUEUE)
                drop(&q->frames[q->first]);
        }
    for (int i = 0; i < NODES; i++) {
        ck_assert_uint_eq(held(i), 0);
        peers[i].is_cut = false;
        if (peers[i].rounds < ROUNDS)
            step(&peers[i], &(sl_event){.type = SL_EVENT_VIEW, .view = &view});
    }
    is_cutting = false;
}

/* ---- a run ---- */

static void open_run(const char *algorithm, const char *edges, uint64_t seed) {
    const sl_task task = {.dimension = DIMENSION, .rounds = ROUNDS};
    sl_experiment *experiment =
        experiment_of("{'rounds': %d, 'topology': {'nodes': %d, %s}, 'algorithm': {%s}, "
                      "'optimizer': {'learning_rate': 0}}",
                      ROUNDS, NODES, edges, algorithm);
    EXPECT_WELL(sl_experiment_plan(&plan, experiment, &task, &error));
    sl_node_settings settings = sl_experiment_node(experiment, &plan, NULL, DIMENSION, ROUNDS);
    settings.turns = true;
    settings.part_bytes =
        plan.config.compressor.kind == SL_COMPRESSOR_IDENTITY ? PART * sizeof(float) : FRAME_BYTES;
    losses = 0;
    is_cutting = false;
    open_nodes(settings, seed);
}

static bool all_have_ended(void) {
    for (int i = 0; i < NODES; i++)
        if (peers[i].rounds < ROUNDS)
            return false;
    return true;
}

static void act(uint32_t i) {
    compute(&peers[i]);
    encode(&peers[i]);
    if (below(2) == 0)
        send(i);
    for (int k = 0; k < 3; k++)
        arrive(below(NODES), i);
}

/* One loss follows another as soon as all are through with it. */
static void run(uint32_t span) {
    uint32_t when = below(span);
    for (uint32_t now = 0; !all_have_ended() || is_cutting; now++) {
        ck_assert_uint_lt(now, 1000000);
        const uint32_t i = below(NODES);
        is_cutting = is_cutting || (now >= when && losses < LOSSES);
        if (is_cutting && below(4) == 0)
            cut(&peers[i]);
        act(i);
        if (is_cutting && all_are_cut()) {
            turn();
            when = now + below(span);
        }
    }
}

/* ---- the account ---- */

typedef double account[NODES][DIMENSION];

/* The loss by which a round may be cut; LOSSES: none. */
static uint32_t loss_of(uint64_t round) {
    uint32_t k = 0;
    while (k < losses && round > lasts[k])
        k++;
    return k < losses ? k : LOSSES;
}

/* Has the node combined that part of what others sent? */
static bool heard(uint32_t i, uint64_t exchange, uint32_t part) {
    const uint32_t k = loss_of(exchange);
    const sl_reach *at = &peers[i].cuts[k < LOSSES ? k : 0];
    if (k == LOSSES || exchange != at->exchange)
        return k == LOSSES || exchange < at->exchange;
    return at->step > 0 || part < at->part;
}

/* sum_j W_ij v_j of an element, or the own one. */
static double mixed(uint32_t i, uint64_t exchange, int e, account v) {
    const sl_row in = sl_topology_in(topology, exchange, i);
    double sum = in.self * v[i][e];
    if (!heard(i, exchange, (uint32_t)e / PART))
        return v[i][e];
    for (uint32_t k = 0; k < in.count; k++)
        sum += in.weights[k] * v[in.peers[k]][e];
    return sum;
}

static void check(uint64_t round, uint32_t i, int e, double x) {
    ck_assert_msg(fabs((double)peers[i].x[round][e] - x) < 2e-6,
                  "node %u, round %d, element %d: %g, %g", i, (int)round, e,
                  (double)peers[i].x[round][e], x);
}

static void begin_account(account v) {
    for (int i = 0; i < NODES; i++)
        for (int e = 0; e < DIMENSION; e++)
            v[i][e] = (double)peers[i].x[0][e];
}

/* Of those that average, with the form x + step (sum - x). */
static void check_averages(double by) {
    static account x, next;
    begin_account(x);
    for (uint64_t r = 1; r <= ROUNDS; r++) {
        for (uint32_t i = 0; i < NODES; i++)
            for (int e = 0; e < DIMENSION; e++) {
                next[i][e] = x[i][e] + by * (mixed(i, r, e, x) - x[i][e]);
                check(r, i, e, next[i][e]);
            }
        memcpy(x, next, sizeof x);
    }
}

/* b <- mu b + kappa (sum_j W_ij phi_j - phi_i); phi <- phi + b */
static void check_noloco(double by) {
    static account phi, b;
    begin_account(phi);
    memset(b, 0, sizeof b);
    for (uint64_t r = 1; r <= ROUNDS; r++) {
        for (uint32_t i = 0; i < NODES; i++)
            for (int e = 0; e < DIMENSION; e++)
                b[i][e] = mu * b[i][e] + kappa * (mixed(i, r, e, phi) - phi[i][e]);
        for (uint32_t i = 0; i < NODES; i++)
            for (int e = 0; e < DIMENSION; e++)
                check(r, i, e, phi[i][e] += b[i][e]);
    }
}

/* Was the node's exchange cut before all of it was combined? */
static bool was_alone(uint32_t i, uint64_t round) {
    return !heard(i, round, PARTS - 1);
}

/* An exchange that is cut ends with n = z and w = 1, and so does a loss. */
static void check_push_sum(double by) {
    static account n, next;
    double w[NODES], next_w[NODES];
    begin_account(n);
    for (int i = 0; i < NODES; i++)
        w[i] = 1;
    for (uint64_t r = 1; r <= ROUNDS; r++) {
        for (uint32_t i = 0; i < NODES; i++) {
            const sl_row in = sl_topology_in(topology, r, i);
            const bool begins = was_alone(i, r) || (loss_of(r) < LOSSES && r == lasts[loss_of(r)]);
            next_w[i] = in.self * w[i];
            for (uint32_t k = 0; k < in.count; k++)
                next_w[i] += in.weights[k] * w[in.peers[k]];
            for (int e = 0; e < DIMENSION; e++) {
                const double here = heard(i, r, (uint32_t)e / PART) ? next_w[i] : w[i];
                next[i][e] = mixed(i, r, e, n);
                check(r, i, e, next[i][e] / here);
                next[i][e] /= begins ? here : 1;
            }
            next_w[i] = was_alone(i, r) ? 1 : next_w[i];
            ck_assert_double_eq_tol(peers[i].weights[r], next_w[i], 1e-6);
            next_w[i] = begins ? 1 : next_w[i];
        }
        memcpy(n, next, sizeof n);
        memcpy(w, next_w, sizeof w);
    }
}

static const struct {
    const char *algorithm, *topology;
    void (*check)(double by);
    double by;
} cases[] = {
    {"'name': 'd-psgd'", "'family': 'ring'", check_averages, 1},
    {"'name': 'd-psgd'", "'family': 'erdos-renyi', 'probability': 0.5", check_averages, 1},
    {"'name': 'd-psgd'", "'family': 'one-peer-exponential'", check_averages, 1},
    {"'name': 'd-psgd', 'variant': 'combine-while-adapt'", "'family': 'star'", check_averages, 1},
    {"'name': 'deep-squeeze', 'eta': 0.4", "'family': 'ring'", check_averages, 0.4},
    {"'name': 'deep-squeeze', 'eta': 0.4", "'family': 'complete'", check_averages, 0.4},
    {"'name': 'naive-compression'", "'family': 'ring'", check_averages, 1},
    {"'name': 'd-adam'", "'family': 'torus'", check_averages, 1},
    {"'name': 'noloco', 'period': 1, 'consensus_step': 0.3", "'family': 'ring'", check_noloco, 0},
    {"'name': 'sgp'", "'family': 'ring'", check_push_sum, 0},
    {"'name': 'sgp'", "'family': 'one-peer-exponential'", check_push_sum, 0},
    {"'name': 'sgp'", "'family': 'static-exponential'", check_push_sum, 0},
};
enum { CASES = sizeof cases / sizeof *cases };

START_LOOP_TEST(sums_are_as_accounted, CASES) {
    const uint64_t seeds = getenv("STARLING_QUICK") != NULL ? 3 : SEEDS;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        open_run(cases[_i].algorithm, cases[_i].topology, seed);
        run(1500);
        cases[_i].check(cases[_i].by);
        close_run();
    }
}
