/* test_folding.c - nodes that lose others at any moment of an exchange, held against an account in
 * float64: who has lost whom from which part on says what each sum is made of.
 *
 * Frames come late, and in any order of senders. Some nodes die, and living ones lose sight of each
 * other; whom it concerns hears of it at some time, each for itself, when some parts have come. The
 * learning rate is 0. And a node that turns to other members gives back what it does not combine.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "starling/experiment.h"
#include "starling/node.h"
#include "starling/rng.h"

enum {
    NODES = 6,
    DIMENSION = 60,
    PART = 8,
    PARTS = 8,
    ROUNDS = 12,
    QUEUE = 64,
    SEEDS = 30,
    CUTS = 3
};
static uint64_t deaths, cuts; /* of all seeds, of edges that there are */
static double mass_tolerance; /* weights are floats, and those of a ring are no dyadic numbers */
static const double kappa = 0.3, mu = 0.5;

typedef struct frame {
    sl_event event;
    float payload[PART];
    bool used;
} frame;

typedef struct queue {
    frame frames[QUEUE];
    uint32_t first, count;
} queue;

/* From where on a peer is folded. */
typedef struct place {
    bool lost;
    sl_reach at;
} place;

typedef struct peer {
    sl_node *node;
    bool started, computing, dead;
    bool cut[NODES]; /* from whom, though both live */
    sl_outbound message;
    uint32_t encoded, sent;
    sl_payload payloads[PARTS];
    uint64_t rounds; /* ended */
    place of[NODES];
    float x[ROUNDS + 1][DIMENSION];
    double weights[ROUNDS + 1][PARTS];
} peer;

static peer peers[NODES];
static queue queues[NODES][NODES]; /* [from][to] */
static sl_experiment *experiment;
static sl_plan plan;
static sl_rng rng;
static sl_error error;

static uint32_t below(uint32_t limit) {
    return sl_rng_u32(&rng) % limit;
}

/* ---- a node ---- */

static void note_round(peer *p, uint64_t round) {
    sl_piece piece;
    memcpy(p->x[round], sl_node_model(p->node), sizeof p->x[round]);
    for (int k = 0; k < PARTS; k++)
        p->weights[round][k] = sl_node_push_sum_weight(p->node);
    for (size_t i = 0; sl_node_piece(p->node, i, &piece); i++) {
        unsigned part;
        if (sscanf(piece.name, "push_sum_weight.%u", &part) == 1)
            p->weights[round][part] = *piece.real;
    }
    p->rounds = round;
}

static void step(peer *p, const sl_event *event) {
    sl_update update;
    ck_assert_msg(sl_node_step(p->node, event, &update, &error) == 0, "%s", error.text);
    for (size_t i = 0; i < update.released_count; i++)
        ((frame *)update.released[i])->used = false;
    if (update.round_done)
        note_round(p, update.finished_round.round);
    p->computing = update.compute || (p->computing && event->type != SL_EVENT_GRADIENT);
    if (update.publish) {
        p->message = update.message;
        p->encoded = p->sent = 0;
    }
}

static void compute(peer *p) {
    if (!p->started) {
        p->started = true;
        step(p, &(sl_event){.type = SL_EVENT_START});
    } else if (p->computing) {
        step(p, &(sl_event){.type = SL_EVENT_GRADIENT, .loss = 1});
    }
}

static void encode(peer *p) {
    if (p->encoded < p->message.parts) {
        ck_assert_int_eq(sl_node_payload(p->node, p->encoded, &p->payloads[p->encoded], &error), 0);
        p->encoded++;
    }
}

/* To all at once; who has lost this node drops it. */
static void send(uint32_t rank) {
    peer *p = &peers[rank];
    if (p->sent == p->encoded)
        return;
    const sl_row to = p->message.to;
    const sl_payload payload = p->payloads[p->sent];
    for (uint32_t i = 0; i < to.count; i++) {
        queue *q = &queues[rank][to.peers[i]];
        frame *f = &q->frames[(q->first + q->count++) % QUEUE];
        ck_assert(q->count <= QUEUE && !f->used);
        memcpy(f->payload, payload.data, payload.bytes);
        f->used = true;
        f->event = (sl_event){.type = SL_EVENT_RECEIVED,
                              .peer = rank,
                              .exchange = p->message.exchange,
                              .step = p->message.step,
                              .part = p->sent,
                              .scalar = sl_node_scalar(p->node, p->sent),
                              .payload = {f->payload, payload.bytes},
                              .token = f};
    }
    step(p, &(sl_event){.type = SL_EVENT_SENT, .part = p->sent++});
}

static void arrive(uint32_t from, uint32_t to) {
    queue *q = &queues[from][to];
    if (q->count == 0)
        return;
    frame *f = &q->frames[q->first];
    q->first = (q->first + 1) % QUEUE;
    q->count--;
    step(&peers[to], &f->event);
}

static void lose(uint32_t rank, uint32_t dead) {
    place *of = &peers[rank].of[dead];
    if (of->lost || peers[rank].dead || !peers[rank].started)
        return;
    of->lost = sl_node_reach(peers[rank].node, dead, &of->at);
    step(&peers[rank], &(sl_event){.type = SL_EVENT_LOST, .peer = dead});
}

/* ---- a run ---- */

static void open_run(const char *algorithm, const char *topology, uint64_t seed) {
    char text[512];
    snprintf(text, sizeof text,
             "{\"rounds\": %d, \"topology\": {\"nodes\": %d, %s}, \"algorithm\": {%s},"
             " \"optimizer\": {\"learning_rate\": 0}, \"membership\": {\"on_loss\": \"continue\"}}",
             ROUNDS, NODES, topology, algorithm);
    const sl_task task = {.dimension = DIMENSION, .rounds = ROUNDS};
    ck_assert_msg(sl_experiment_parse(&experiment, text, "test", "/", NULL, 0, &error) == 0, "%s",
                  error.text);
    ck_assert_int_eq(sl_experiment_plan(&plan, experiment, &task, &error), 0);
    sl_node_settings settings = sl_experiment_node(experiment, &plan, DIMENSION, ROUNDS);
    settings.part_bytes = PART * sizeof(float);
    settings.turns = true;
    rng = sl_rng_open(seed, 0, 0, SL_PURPOSE_FAULT);
    memset(peers, 0, sizeof peers);
    memset(queues, 0, sizeof queues);
    for (uint32_t i = 0; i < NODES; i++) {
        settings.rank = i;
        ck_assert_msg(sl_node_open(&peers[i].node, &settings, &error) == 0, "%s", error.text);
        for (int k = 0; k < PARTS; k++)
            peers[i].weights[0][k] = 1;
        for (int e = 0; e < DIMENSION; e++)
            sl_node_model(peers[i].node)[e] = peers[i].x[0][e] =
                (float)(2 * sl_rng_uniform(&rng) - 1);
    }
}

static bool all_have_ended(void) {
    for (int i = 0; i < NODES; i++)
        if (!peers[i].dead && peers[i].rounds < ROUNDS)
            return false;
    return true;
}

/* Both live, and lose sight of each other. */
static void cut(uint32_t i, uint32_t other) {
    const uint32_t *ranks, count = sl_node_peers(peers[i].node, &ranks);
    for (uint32_t k = 0; k < count; k++)
        cuts += ranks[k] == other && !peers[other].dead && !peers[i].cut[other];
    peers[i].cut[other] = peers[other].cut[i] = i != other;
}

static void run(void) {
    const uint32_t first = below(NODES), second = (first + 1 + below(NODES - 1)) % NODES;
    const uint32_t when[2] = {below(2500), below(2500)};
    uint32_t cut_at[CUTS];
    for (int k = 0; k < CUTS; k++)
        cut_at[k] = below(2500);
    for (uint32_t now = 0; !all_have_ended(); now++) {
        ck_assert_uint_lt(now, 1000000);
        peers[first].dead = now >= when[0];
        peers[second].dead = now >= when[1];
        const uint32_t i = below(NODES), other = below(NODES);
        if ((peers[i].dead || peers[i].cut[other]) && below(8) == 0)
            lose(other, i);
        if (peers[i].dead)
            continue;
        for (int k = 0; k < CUTS; k++)
            if (now == cut_at[k])
                cut(i, other);
        compute(&peers[i]);
        encode(&peers[i]);
        if (below(2) == 0)
            send(i);
        for (int k = 0; k < 3; k++)
            arrive(below(NODES), i);
    }
}

static void close_run(void) {
    for (int i = 0; i < NODES; i++)
        deaths += peers[i].dead;
    for (int i = 0; i < NODES; i++)
        sl_node_close(&peers[i].node);
    sl_experiment_close(&experiment);
}

/* ---- the account ---- */

typedef double account[NODES][DIMENSION];

/* Did this node hear that part of the other one, before it folded it? */
static bool heard(uint32_t i, uint32_t j, uint64_t exchange, uint32_t part) {
    const place *of = &peers[i].of[j];
    if (!of->lost || exchange != of->at.exchange)
        return !of->lost || exchange < of->at.exchange;
    return of->at.step > 0 || part < of->at.part;
}

/* sum_j W_ij v_j of an element, as it is folded; *own: what of it is the node's own weight. */
static double mixed(uint32_t i, uint64_t exchange, int e, account v, double *own) {
    const sl_row in = sl_topology_in(experiment->topology, exchange, i),
                 out = sl_topology_out(experiment->topology, exchange, i);
    const bool by_column = strcmp(experiment->algorithm.name, "sgp") == 0;
    double sum = 0;
    *own = in.self;
    for (uint32_t k = 0; k < in.count; k++)
        if (heard(i, in.peers[k], exchange, (uint32_t)e / PART))
            sum += in.weights[k] * v[in.peers[k]][e];
        else if (!by_column)
            *own += in.weights[k];
    for (uint32_t k = 0; k < out.count && by_column; k++)
        if (!heard(i, out.peers[k], exchange, (uint32_t)e / PART))
            *own += out.weights[k];
    return sum + *own * v[i][e];
}

static void check(uint64_t round, uint32_t i, int e, double x) {
    if (peers[i].rounds >= round)
        ck_assert_msg(fabs(peers[i].x[round][e] - x) < 1e-6,
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
                double own;
                next[i][e] = x[i][e] + by * (mixed(i, r, e, x, &own) - x[i][e]);
                check(r, i, e, next[i][e]);
            }
        memcpy(x, next, sizeof x);
    }
}

/* b <- mu b + kappa (sum_j W_ij phi_j - phi_i); phi <- phi + b */
static void check_noloco(void) {
    static account phi, b;
    begin_account(phi);
    memset(b, 0, sizeof b);
    for (uint64_t r = 1; r <= ROUNDS; r++) {
        for (uint32_t i = 0; i < NODES; i++)
            for (int e = 0; e < DIMENSION; e++) {
                double own;
                b[i][e] = mu * b[i][e] + kappa * (mixed(i, r, e, phi, &own) - phi[i][e]);
            }
        for (uint32_t i = 0; i < NODES; i++)
            for (int e = 0; e < DIMENSION; e++)
                check(r, i, e, phi[i][e] += b[i][e]);
    }
}

static double mass(uint64_t round, int part) {
    double sum = 0;
    for (int i = 0; i < NODES; i++)
        sum += peers[i].dead ? 0 : peers[i].weights[round][part];
    return sum;
}

/* The last exchange in which somebody has folded part of a message; of a cut, both have. */
static uint64_t all_know_since(void) {
    uint64_t known = 0;
    for (int i = 0; i < NODES; i++) {
        const uint32_t *ranks, count = sl_node_peers(peers[i].node, &ranks);
        for (uint32_t k = 0; k < count && !peers[i].dead; k++) {
            const place *of = &peers[i].of[ranks[k]];
            const bool gone = peers[ranks[k]].dead || peers[i].cut[ranks[k]];
            const uint64_t since = of->lost ? of->at.exchange : gone ? ROUNDS : 0;
            known = since > known ? since : known;
        }
    }
    return known;
}

/* Once all know of the dead, nothing is given away any more. */
static void check_mass(void) {
    const uint64_t known = all_know_since();
    for (uint64_t r = known + 1; r <= ROUNDS; r++)
        for (int part = 0; part < PARTS; part++)
            ck_assert_double_eq_tol(mass(r, part), mass(known, part), mass_tolerance);
}

static void check_push_sum(void) {
    static account n, w, next_n, next_w;
    begin_account(n);
    for (int i = 0; i < NODES; i++)
        for (int e = 0; e < DIMENSION; e++)
            w[i][e] = 1;
    for (uint64_t r = 1; r <= ROUNDS; r++) {
        for (uint32_t i = 0; i < NODES; i++)
            for (int e = 0; e < DIMENSION; e++) {
                double own;
                next_n[i][e] = mixed(i, r, e, n, &own);
                next_w[i][e] = mixed(i, r, e, w, &own);
                check(r, i, e, next_n[i][e] / next_w[i][e]);
                if (peers[i].rounds >= r)
                    ck_assert_double_eq_tol(peers[i].weights[r][e / PART], next_w[i][e], 1e-6);
            }
        memcpy(n, next_n, sizeof n);
        memcpy(w, next_w, sizeof w);
    }
    check_mass();
}

/* ---- cases ---- */

static const struct {
    const char *algorithm, *topology;
    void (*check)(void);
    double by;
} cases[] = {
    {"\"name\": \"d-psgd\"", "\"family\": \"ring\"", NULL, 1},
    {"\"name\": \"d-psgd\"", "\"family\": \"torus\"", NULL, 1},
    {"\"name\": \"d-psgd\"", "\"family\": \"erdos-renyi\", \"probability\": 0.5", NULL, 1},
    {"\"name\": \"d-psgd\"", "\"family\": \"one-peer-exponential\"", NULL, 1},
    {"\"name\": \"d-psgd\", \"variant\": \"combine-while-adapt\"", "\"family\": \"star\"", NULL, 1},
    {"\"name\": \"deep-squeeze\", \"eta\": 0.4", "\"family\": \"ring\"", NULL, 0.4},
    {"\"name\": \"deep-squeeze\", \"eta\": 0.4", "\"family\": \"complete\"", NULL, 0.4},
    {"\"name\": \"naive-compression\"", "\"family\": \"ring\"", NULL, 1},
    {"\"name\": \"noloco\", \"period\": 1, \"consensus_step\": 0.3", "\"family\": \"ring\"",
     check_noloco, 0},
    {"\"name\": \"sgp\"", "\"family\": \"ring\"", check_push_sum, 0},
    {"\"name\": \"sgp\"", "\"family\": \"one-peer-exponential\"", check_push_sum, 0},
    {"\"name\": \"sgp\"", "\"family\": \"static-exponential\"", check_push_sum, 0},
};
enum { CASES = sizeof cases / sizeof *cases };

/* STARLING_SEEDS: so many, and what has happened in them. */
START_TEST(sums_are_as_accounted) {
    const char *many = getenv("STARLING_SEEDS");
    const uint64_t seeds = many != NULL ? strtoull(many, NULL, 10) : SEEDS;
    deaths = cuts = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        mass_tolerance = strstr(cases[_i].topology, "ring") != NULL ? 1e-5 : 1e-12;
        open_run(cases[_i].algorithm, cases[_i].topology, seed);
        run();
        if (cases[_i].check != NULL)
            cases[_i].check();
        else
            check_averages(cases[_i].by);
        close_run();
    }
    if (many != NULL)
        printf("%s, %s: %llu deaths, %llu cuts\n", cases[_i].algorithm, cases[_i].topology,
               (unsigned long long)deaths, (unsigned long long)cuts);
}
END_TEST

/* ---- views ---- */

/* Frames that have come to node 0, and that it has not given back. */
static uint32_t held(void) {
    uint32_t count = 0;
    for (int from = 0; from < NODES; from++)
        for (int k = 0; k < QUEUE; k++)
            count += queues[from][0].frames[k].used;
    return count;
}

/* Node 0 ends its epoch after round 1. In another part of the network others went on in it. */
START_TEST(a_view_gives_back_what_has_come) {
    static const uint32_t all[NODES] = {0, 1, 2, 3, 4, 5};
    open_run("\"name\": \"d-psgd\"", "\"family\": \"ring\"", 1);
    sl_node_hold(peers[0].node, 1);
    for (int now = 0; now < 10 * PARTS; now++)
        for (uint32_t i = 0; i < NODES; i++) {
            compute(&peers[i]);
            encode(&peers[i]);
            send(i);
            for (uint32_t from = 0; from < NODES; from++)
                arrive(from, i);
        }
    ck_assert_uint_eq(peers[0].rounds, 1);
    ck_assert_uint_eq(held(), 2 * PARTS);
    const sl_view view = {.round = 5,
                          .exchange = 4,
                          .members = {all, NODES},
                          .topology = experiment->topology,
                          .plan = &plan};
    step(&peers[0], &(sl_event){.type = SL_EVENT_VIEW, .view = &view});
    ck_assert_uint_eq(held(), 0);
    ck_assert_uint_eq(sl_node_round(peers[0].node), 5);
    close_run();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("folding");
    TCase *test = tcase_create("account");
    tcase_set_timeout(test, 120);
    tcase_add_loop_test(test, sums_are_as_accounted, 0, CASES);
    tcase_add_test(test, a_view_gives_back_what_has_come);
    suite_add_tcase(suite, test);
    return run_suite(suite);
}
