/* pair_world.c - averages of two (src/async/averager.h) under random schedules: nodes of different
 * speeds, connections that break and come back, a node that dies, an edge that stays broken, views.
 *
 * A small model of the streams carries the messages: numbered, in order, so many on their way, sent
 * again after a break, acknowledged some time later. Models are numbers of a prime field, in which
 * there is an exact half: so the sum of all models is exact, too, and is compared whenever nothing
 * is under way. Held as well: each node comes to its last gradient, whatever the order of events.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "async/averager.h"
#include "seeds.h"
#include "starling/rng.h"
#include "virtual.h"

enum { NODES_MAX = 6, PARTS = 4, WINDOW = 2, QUEUE = 64, GRADIENTS = 6, STEPS_MAX = 200000 };
static const uint64_t prime = ((uint64_t)1 << 61) - 1;

typedef struct letter {
    sl_averager_message message; /* peer: the sender */
    uint64_t payload;
    uint32_t view;
} letter;

/* From one node to another. */
typedef struct channel {
    letter letters[QUEUE]; /* (sent - acknowledged) those that are not acknowledged */
    uint32_t sent, received, acknowledged;
} channel;

typedef struct node {
    bool lives, asks, computes, holds, resting; /* holds: a gradient that is not applied yet */
    uint32_t gradients, known;                  /* known: the latest cause it has heard of */
    uint64_t event;
    uint64_t x[PARTS], before[PARTS];                       /* before: of what it has answered */
    uint64_t kept[NODES_MAX][PARTS], kept_count[NODES_MAX]; /* asks, not averaged */
    sl_averager averager;
} node;

static node nodes[NODES_MAX];
static channel channels[NODES_MAX][NODES_MAX];
/* What there is, what the view knows of it, and which connections stand. */
static bool edge[NODES_MAX][NODES_MAX], seen[NODES_MAX][NODES_MAX], up[NODES_MAX][NODES_MAX];
static uint32_t count, view, causes;
static bool crosses, verbose, lost; /* crosses: everybody asks; lost: somebody died in the midst of
                                       an average */
static uint64_t expected, trace;
static sl_rng dice;

static uint64_t sum_of(uint64_t a, uint64_t b) {
    return (a + b) % prime;
}

static uint64_t half(uint64_t a) {
    return a % 2 == 0 ? a / 2 : (a + prime) / 2;
}

static uint32_t below(uint32_t n) {
    return sl_rng_below(&dice, n);
}

static void note(const char *what, uint32_t i, uint32_t j, uint64_t number) {
    trace = trace * 1099511628211u + (i * 64 + j) * 131 + number + (unsigned char)what[0];
    if (verbose)
        printf("%s %u %u %" PRIu64 "\n", what, i, j, number);
}

/* ---- the stream ---- */

static bool has_room(uint32_t i, uint32_t j) {
    const channel *c = &channels[i][j];
    return up[i][j] && c->sent - c->received < WINDOW && c->sent - c->acknowledged < QUEUE;
}

static void put(uint32_t i, const sl_averager_message *m, uint64_t payload) {
    channel *c = &channels[i][m->peer];
    letter *l = &c->letters[c->sent++ % QUEUE];
    *l = (letter){*m, payload, view};
    l->message.peer = i;
}

/* ---- a node ---- */

static void average(node *n, uint32_t part, uint64_t other) {
    n->x[part] = half(sum_of(n->x[part], other));
}

/* A gradient that waits is applied once the average is over, and the next one begins. */
static void go_on(uint32_t i) {
    node *n = &nodes[i];
    sl_averager_turn(&n->averager);
    if (!n->holds || !sl_averager_is_free(&n->averager))
        return;
    const uint64_t step = sl_rng_u64(&dice) % prime;
    for (uint32_t p = 0; p < PARTS; p++) {
        const uint64_t was = n->x[p];
        n->x[p] = sum_of(was, step + p);
        expected = sum_of(expected, sum_of(n->x[p], prime - was));
    }
    n->holds = false;
    n->computes = ++n->gradients < GRADIENTS;
    note("step", i, 0, n->gradients);
}

static uint32_t neighbour_of(uint32_t i) {
    uint32_t all[NODES_MAX], k = 0;
    for (uint32_t j = 0; j < count; j++)
        if (seen[i][j])
            all[k++] = j;
    return k > 0 ? all[below(k)] : NODES_MAX;
}

static void end_gradient(uint32_t i) {
    node *n = &nodes[i];
    const uint32_t partner = neighbour_of(i);
    n->computes = false;
    n->holds = true;
    if (n->asks && partner < NODES_MAX && sl_averager_may_ask(&n->averager)) {
        sl_averager_ask_for(&n->averager, partner, ++n->event);
        note("ask", i, partner, n->event);
    }
    go_on(i);
}

static void send_next(uint32_t i) {
    node *n = &nodes[i];
    sl_averager_message m;
    if (!sl_averager_next(&n->averager, &m) || !has_room(i, m.peer))
        return;
    seeds_count("refusals", m.step == SL_AVERAGER_BUSY);
    put(i, &m, m.step == SL_AVERAGER_BUSY ? 0 : n->x[m.part]);
    if (m.step == SL_AVERAGER_ANSWER)
        n->before[m.part] = n->x[m.part];
    note("send", i, m.peer, m.part);
    if (sl_averager_left(&n->averager, &m))
        average(n, m.part, n->kept[m.peer][m.part]);
    go_on(i);
}

static void take(uint32_t i, const letter *l) {
    node *n = &nodes[i];
    sl_averager_use use;
    sl_error error = {0};
    const uint32_t part = l->message.part;
    if (l->view != view)
        return;
    if (sl_averager_take(&n->averager, &l->message, &use, &error) != 0)
        world_fail("node %u refuses an honest message: %s", i, error.text);
    if (use == SL_AVERAGER_KEEP)
        n->kept[l->message.peer][part] = l->payload;
    else if (use == SL_AVERAGER_AVERAGE) {
        average(n, part, l->payload);
        seeds_count("averages", n->averager.phase == SL_AVERAGER_FREE);
    }
    go_on(i);
}

static void receive(uint32_t from, uint32_t i) {
    channel *c = &channels[from][i];
    if (up[from][i] && c->received < c->sent) {
        note("take", i, from, c->received);
        take(i, &c->letters[c->received++ % QUEUE]);
    }
}

static void acknowledge(uint32_t i, uint32_t to) {
    channel *c = &channels[i][to];
    if (!up[i][to] || c->acknowledged == c->received)
        return;
    c->acknowledged = c->received;
    note("acknowledge", i, to, c->acknowledged);
    if (c->acknowledged == c->sent)
        sl_averager_acknowledge(&nodes[i].averager, to);
    go_on(i);
}

/* ---- what goes wrong ---- */

/* A connection breaks, or is back: what was on its way comes then. */
static void turn_link(uint32_t i, uint32_t j) {
    up[i][j] = up[j][i] = !up[i][j] && nodes[i].lives && nodes[j].lives;
    note("link", i, j, up[i][j]);
}

static void cut_edge(uint32_t i, uint32_t j) {
    edge[i][j] = edge[j][i] = up[i][j] = up[j][i] = false;
    causes++;
    note("cut", i, j, causes);
}

static void kill_one(uint32_t i) {
    nodes[i].lives = false;
    causes++;
    for (uint32_t p = 0; p < PARTS; p++)
        expected = sum_of(expected, prime - nodes[i].x[p]);
    for (uint32_t j = 0; j < count; j++) {
        const sl_averager *other = &nodes[j].averager;
        lost = lost || (j != i && other->phase != SL_AVERAGER_FREE && other->partner == i) ||
               (other->is_cut && other->account.partner == i);
        up[i][j] = up[j][i] = false;
    }
    note("dies", i, 0, causes);
}

/* A node hears of the latest cause: a loss, a broken edge, or a cut for a checkpoint. */
static void hear(uint32_t i) {
    node *n = &nodes[i];
    if (n->known == causes)
        return;
    n->known = causes;
    n->resting = true;
    note("hears", i, 0, causes);
    sl_averager_rest(&n->averager);
    for (uint32_t j = 0; j < count; j++)
        if (j != i && (!nodes[j].lives || !edge[i][j]))
            sl_averager_cut(&n->averager, j);
    go_on(i);
}

/* ---- views ---- */

static bool all_rest(void) {
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i].lives && (!nodes[i].resting || nodes[i].known != causes ||
                               !sl_averager_is_still(&nodes[i].averager)))
            return false;
    return true;
}

/* What the partner has of an average that was cut: UINT32_MAX without a partner, or one that has
 * ended it. */
static uint32_t verdict_of(uint32_t i) {
    const sl_averager *p = &nodes[i].averager, *other = &nodes[p->account.partner].averager;
    if (!p->is_cut || !nodes[p->account.partner].lives)
        return UINT32_MAX;
    const bool same = other->is_cut && other->account.partner == i &&
                      other->account.event == p->account.event && !other->account.served;
    return same ? other->account.parts : UINT32_MAX;
}

static void check_sum(const char *when) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t p = 0; p < PARTS && nodes[i].lives; p++)
            sum = sum_of(sum, nodes[i].x[p]);
    if (!lost && sum != expected)
        world_fail("%s: the sum of all models is not what it was", when);
    expected = sum; /* what the dead had averaged with others is gone with them */
    lost = false;
}

static void see(void) {
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count; j++)
            seen[i][j] = edge[i][j] && nodes[i].lives && nodes[j].lives;
}

static void begin_view(void) {
    uint32_t verdicts[NODES_MAX];
    for (uint32_t i = 0; i < count; i++)
        verdicts[i] = verdict_of(i);
    for (uint32_t i = 0; i < count; i++) {
        node *n = &nodes[i];
        const sl_averager *p = &n->averager;
        n->resting = false;
        if (!n->lives)
            continue;
        for (uint32_t k = verdicts[i]; p->is_cut && p->account.served && k < p->account.parts;
             k++) {
            n->x[k] = n->before[k];
            seeds_count("parts undone", 1);
        }
        sl_averager_go_on(&n->averager);
    }
    see();
    view++;
    seeds_count("views", 1);
    note("view", 0, 0, view);
    check_sum("a view");
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i].lives)
            go_on(i);
}

/* ---- a seed ---- */

static void draw_edges(void) {
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = i + 1; j < count; j++) {
            const bool sides = i % 2 != j % 2, near = j == i + 1 || below(2) == 0;
            edge[i][j] = edge[j][i] = up[i][j] = up[j][i] = near && (crosses || sides);
        }
}

static void open_nodes(void) {
    sl_error error;
    for (uint32_t i = 0; i < count; i++) {
        nodes[i] = (node){.lives = true, .computes = true, .asks = crosses || i % 2 == 0};
        if (sl_averager_open(&nodes[i].averager, 7, i, PARTS, count, &error) != 0)
            world_fail("%s", error.text);
        for (uint32_t p = 0; p < PARTS; p++) {
            nodes[i].x[p] = sl_rng_u64(&dice) % prime;
            expected = sum_of(expected, nodes[i].x[p]);
        }
    }
}

static bool all_done(void) {
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i].lives &&
            (nodes[i].gradients < GRADIENTS || nodes[i].resting || nodes[i].known != causes ||
             !sl_averager_is_still(&nodes[i].averager)))
            return false;
    return true;
}

static void disturb(uint32_t *left) {
    const uint32_t i = below(count), j = below(count), what = below(8);
    if (i == j)
        return;
    if (what < 4 && edge[i][j] && up[i][j])
        turn_link(i, j);
    else if (what == 4 && edge[i][j] && *left > 0 && (*left)-- > 0)
        cut_edge(i, j);
    else if (what == 5 && nodes[i].lives && *left > 0 && (*left)-- > 0)
        kill_one(i);
    else if (what == 6 && *left > 0 && (*left)-- > 0)
        causes++; /* a checkpoint: a view with the same members */
}

/* One thing that can happen, chosen at random. */
static void step(uint32_t *left) {
    const uint32_t i = below(count), j = below(count), what = below(16);
    if (what == 15 && below(8) == 0)
        disturb(left);
    else if (!nodes[i].lives)
        return;
    else if (what < 5)
        send_next(i);
    else if (what < 10)
        receive(j, i);
    else if (what < 12)
        acknowledge(i, j);
    else if (what == 12 && nodes[i].computes)
        end_gradient(i);
    else if (what == 13)
        hear(i);
    else if (what == 14 && edge[i][j] && !up[i][j])
        turn_link(i, j);
}

static uint64_t run(uint64_t seed, bool is_verbose) {
    dice = sl_rng_open(seed, 0, 0, SL_PURPOSE_FAULT);
    verbose = is_verbose;
    count = 2 + below(NODES_MAX - 1);
    crosses = below(2) == 0;
    uint32_t left = below(4); /* that are not mended */
    view = causes = 0;
    expected = trace = 0;
    lost = false;
    memset(channels, 0, sizeof channels);
    memset(edge, 0, sizeof edge);
    memset(up, 0, sizeof up);
    memset(nodes, 0, sizeof nodes);
    draw_edges();
    open_nodes();
    see();
    uint32_t steps = 0;
    for (; !all_done() && steps < STEPS_MAX; steps++) {
        step(&left);
        if (all_rest())
            begin_view();
    }
    if (steps == STEPS_MAX)
        world_fail("the nodes wait for each other");
    check_sum("the end");
    for (uint32_t i = 0; i < count; i++)
        sl_averager_close(&nodes[i].averager);
    return trace;
}

int main(int argument_count, char **arguments) {
    return seeds_main(argument_count, arguments, 2000, run);
}
