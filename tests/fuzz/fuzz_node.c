/* fuzz_node.c - all nodes of a small topology, with every algorithm, and a network between them.
 * The first bytes choose algorithm, compressor and topology; each further byte is something that
 * happens: a gradient is ready, a part is encoded, leaves or arrives, arrives twice or never, is
 * forged, a neighbour is gone, time is over, its exchanges are cut. A node goes on or ends in an
 * error; what it sends does not change before it has left, and each token comes back at most once.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/usual_compressor.h"
#include "starling/node.h"
#include "wire/checksum.h"

enum { NODES_MAX = 4, DIMENSION = 13, ROWS = 3, COLUMNS = 4, ROUNDS = 4, PARTS_MAX = 32, HEAD = 4 };
enum { PLAIN_PART_BYTES = 16, PART_BYTES = 4096 };
enum { QUEUE_MAX = 64, FORGED_MAX = 64, SETUPS_MAX = 4096 };

static const char *const topologies[] = {
    "{\"nodes\": 4, \"family\": \"ring\"}",
    "{\"nodes\": 3, \"family\": \"path\"}",
    "{\"nodes\": 2, \"family\": \"complete\"}",
    "{\"nodes\": 4, \"family\": \"star\"}",
    "{\"nodes\": 4, \"family\": \"static-exponential\"}",
    "{\"nodes\": 4, \"family\": \"one-peer-exponential\"}",
    "{\"nodes\": 3, \"family\": \"directed-ring\"}",
};
enum { TOPOLOGIES = sizeof topologies / sizeof *topologies };

/* What can be trained: an algorithm's plan on a topology. */
typedef struct setup {
    sl_plan plan;
    sl_topology *topology;
} setup;

static setup *setups; /* (setup_count) */
static size_t setup_count;

static void add_setup(const sl_algorithm_config *config, sl_topology *topology) {
    setup *s = &setups[setup_count];
    const sl_algorithm *algorithm = sl_algorithm_of(config, NULL);
    sl_error error;
    if (algorithm == NULL || algorithm->async != NULL) /* it has a machine of its own */
        return;
    s->topology = topology;
    if (setup_count < SETUPS_MAX &&
        sl_algorithm_check(config, topology, &(sl_optimizer_config){0}, &error) == 0 &&
        sl_algorithm_plan(&s->plan, config, topology, DIMENSION, &error) == 0)
        setup_count++;
}

/* And where sums of its messages may go by a form, that as well. */
static void add_setups(const sl_algorithm_config *config, sl_topology *topology) {
    sl_algorithm_config by_form = *config;
    by_form.all_reduce = SL_ALL_REDUCE_RECURSIVE_DOUBLING;
    add_setup(config, topology);
    if (sl_algorithm_sums_sparse(sl_algorithm_of(&by_form, NULL)))
        add_setup(&by_form, topology);
}

static void add_algorithm(const char *name, sl_topology *topology) {
    for (int kind = 0; kind < SL_COMPRESSOR_COUNT; kind++) {
        sl_algorithm_config config = usual_algorithm(name, (sl_compressor_kind)kind);
        config.directions = kind % 3 ? SL_DIRECTIONS_UP : SL_DIRECTIONS_BOTH;
        for (int variant = SL_VARIANT_DEFAULT; variant <= SL_VARIANT_TRIMMED_MEAN; variant++) {
            config.variant = (sl_variant)variant;
            if (sl_algorithm_find(name, config.variant, NULL) != NULL)
                add_setups(&config, topology);
        }
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    setups = calloc(SETUPS_MAX + 1, sizeof *setups);
    assert(setups != NULL);
    for (size_t t = 0; t < TOPOLOGIES; t++) {
        sl_topology *topology;
        sl_error error;
        if (sl_topology_parse(&topology, topologies[t], "topology", &error) != 0) {
            fprintf(stderr, "%s\n", error.text);
            abort();
        }
        const char *name;
        for (size_t i = 0; (name = sl_algorithm_name(i)) != NULL; i++)
            add_algorithm(name, topology);
    }
    assert(setup_count > 100 && setup_count < SETUPS_MAX);
    return 0;
}

/* ---- the network ---- */

/* A frame on its way or in a receive buffer, which is its token there. */
typedef struct frame {
    struct frame *next, *before;
    sl_event event;
    float payload[];
} frame;

typedef struct queue {
    frame *entries[QUEUE_MAX];
    uint32_t count;
} queue;

typedef struct peer {
    sl_node *node; /* NULL: it has ended in an error */
    bool started, computing, finished;
    sl_outbound message;
    uint32_t encoded, sent;
    sl_payload payloads[PARTS_MAX];
    uint64_t sums[PARTS_MAX];
    frame tokens; /* head of a ring: those that it holds */
} peer;

typedef struct network {
    peer peers[NODES_MAX];
    uint32_t nodes;
    queue queues[NODES_MAX][NODES_MAX]; /* [from][to] */
} network;

static frame *make_frame(const sl_event *event) {
    frame *f = malloc(sizeof *f + event->payload.bytes);
    assert(f != NULL);
    f->event = *event;
    memcpy(f->payload, event->payload.data, event->payload.bytes);
    f->event.payload.data = f->payload;
    f->event.token = f;
    return f;
}

static void release(frame *f) {
    f->next->before = f->before;
    f->before->next = f->next;
    free(f);
}

static void push(queue *q, const sl_event *event) {
    if (q->count < QUEUE_MAX)
        q->entries[q->count++] = make_frame(event);
}

static frame *pop(queue *q) {
    frame *first = q->entries[0];
    memmove(q->entries, q->entries + 1, --q->count * sizeof first);
    return first;
}

/* ---- what happens ---- */

static void end(peer *p) {
    sl_node_close(&p->node);
    while (p->tokens.next != &p->tokens)
        release(p->tokens.next);
}

static void take_message(peer *p, const sl_outbound *message) {
    assert(p->sent == p->message.parts && message->parts <= PARTS_MAX);
    p->message = *message;
    p->encoded = p->sent = 0;
}

static void step(peer *p, const sl_event *event) {
    sl_update update;
    sl_error error;
    const int result = sl_node_step(p->node, event, &update, &error);
    for (size_t i = 0; i < update.released_count; i++)
        release(update.released[i]);
    if (result != 0) {
        assert(memchr(error.text, '\0', sizeof error.text) != NULL && error.text[0] != '\0');
        end(p);
        return;
    }
    if (update.publish)
        take_message(p, &update.message);
    p->computing = p->computing || update.compute;
    p->finished = update.finished;
}

static void compute(peer *p, uint8_t how) {
    if (!p->started) {
        p->started = true;
        step(p, &(sl_event){.type = SL_EVENT_START});
    } else if (p->computing) {
        p->computing = false;
        float *g = sl_node_gradient_buffer(p->node);
        for (int i = 0; i < DIMENSION; i++)
            g[i] = (float)(how + i) / 64 - 1;
        if (how == 255)
            g[0] = INFINITY;
        step(p, &(sl_event){.type = SL_EVENT_GRADIENT, .loss = how == 254 ? NAN : how});
    }
}

static void encode(peer *p) {
    sl_error error;
    if (p->encoded == p->message.parts || !sl_node_ready(p->node))
        return;
    sl_payload *payload = &p->payloads[p->encoded];
    if (sl_node_payload(p->node, p->encoded, payload, &error) != 0) {
        end(p);
        return;
    }
    p->sums[p->encoded++] = sl_checksum(payload->data, payload->bytes);
}

static void send(network *n, uint32_t rank) {
    peer *p = &n->peers[rank];
    if (p->sent == p->encoded)
        return;
    const sl_event event = {.type = SL_EVENT_RECEIVED,
                            .peer = rank,
                            .exchange = p->message.exchange,
                            .step = p->message.step,
                            .part = p->sent,
                            .scalar = sl_node_scalar(p->node, p->sent),
                            .silent = p->message.silent,
                            .payload = p->payloads[p->sent]};
    assert(sl_checksum(event.payload.data, event.payload.bytes) == p->sums[p->sent]);
    for (uint32_t i = 0; i < p->message.to.count; i++)
        push(&n->queues[rank][p->message.to.peers[i]], &event);
    p->sent++;
    step(p, &(sl_event){.type = SL_EVENT_SENT, .part = event.part});
}

/* The peer holds the frame until it gives its token back. */
static void receive(peer *p, frame *f) {
    f->next = &p->tokens;
    f->before = p->tokens.before;
    f->before->next = p->tokens.before = f;
    step(p, &f->event);
}

static void arrive(network *n, uint32_t from, uint32_t to) {
    queue *q = &n->queues[from][to];
    if (q->count > 0)
        receive(&n->peers[to], pop(q));
}

/* Everybody does what it can, once. */
static void go_on(network *n) {
    for (uint32_t i = 0; i < n->nodes; i++)
        for (uint32_t from = 0; from < n->nodes; from++) {
            if (n->peers[i].node != NULL && from == 0)
                compute(&n->peers[i], 64);
            if (n->peers[i].node != NULL)
                encode(&n->peers[i]);
            if (n->peers[i].node != NULL)
                send(n, i);
            if (n->peers[i].node != NULL)
                arrive(n, from, i);
        }
}

/* ---- the input ---- */

typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

static uint8_t next(input *in) {
    return in->left > 0 ? (in->left--, *in->at++) : 0;
}

static void forge(peer *p, uint32_t from, input *in) {
    uint64_t payload[FORGED_MAX / sizeof(uint64_t)] = {0};
    const uint64_t round = sl_node_round(p->node);
    sl_event event = {.type = SL_EVENT_RECEIVED, .peer = from};
    event.exchange = round + (uint64_t)(int64_t)(int8_t)next(in);
    event.step = next(in);
    event.part = next(in);
    event.scalar = (int8_t)next(in);
    event.silent = next(in) % 2;
    event.payload = (sl_payload){payload, next(in) % (FORGED_MAX + 1)};
    for (size_t i = 0; i < event.payload.bytes; i++)
        ((uint8_t *)payload)[i] = next(in);
    receive(p, make_frame(&event));
}

/* It exchanges nothing any more. */
static void cut(peer *p) {
    p->message = (sl_outbound){0};
    p->encoded = p->sent = 0;
    step(p, &(sl_event){.type = SL_EVENT_CUT});
}

static void act(network *n, input *in) {
    const uint8_t what = next(in), who = next(in);
    const uint32_t rank = who % n->nodes, from = who / 16 % (n->nodes + 1);
    peer *p = &n->peers[rank];
    queue *q = &n->queues[from % n->nodes][rank];
    if (p->node == NULL)
        return;
    switch (what % 13) {
    case 0:
        compute(p, next(in));
        break;
    case 1:
        encode(p);
        break;
    case 2:
        send(n, rank);
        break;
    case 3:
        arrive(n, from % n->nodes, rank);
        break;
    case 4: /* twice */
        if (q->count > 0)
            push(q, &q->entries[0]->event);
        break;
    case 5: /* never */
        if (q->count > 0)
            free(pop(q));
        break;
    case 6:
        forge(p, from, in);
        break;
    case 7:
        step(p, &(sl_event){.type = SL_EVENT_PEER_DOWN, .peer = from});
        break;
    case 8:
        step(p, &(sl_event){.type = SL_EVENT_DEADLINE});
        break;
    case 9:
        step(p, &(sl_event){.type = SL_EVENT_NOTIFIED});
        break;
    case 10:
        cut(p);
        break;
    default:
        for (uint32_t i = 0; i < 1 + who / 16u; i++)
            go_on(n);
    }
}

static void open_peers(network *n, const setup *s, uint32_t credit, bool direct) {
    static const sl_optimizer_config optimizer = {.learning_rate = 0.1};
    static const size_t ends[] = {ROWS * COLUMNS, DIMENSION}, rows[] = {ROWS, 1};
    const bool plain = sl_algorithm_compressor(&s->plan.config) == SL_COMPRESSOR_IDENTITY;
    n->nodes = sl_topology_nodes(s->topology);
    for (uint32_t i = 0; i < n->nodes; i++) {
        const sl_node_settings settings = {
            .rank = i,
            .rounds = ROUNDS,
            .dimension = DIMENSION,
            .tensor_ends = ends,
            .tensor_rows = rows,
            .tensor_count = 2,
            .part_bytes = plain ? PLAIN_PART_BYTES : PART_BYTES,
            .inbox_parts = credit,
            .seed = 1,
            .topology = s->topology,
            .plan = &s->plan,
            .vec = sl_vec_cpu(),
            .direct = direct && plain,
            .optimizer = &optimizer,
            .measure_every = 2,
        };
        peer *p = &n->peers[i];
        sl_error error;
        p->tokens.next = p->tokens.before = &p->tokens;
        assert(sl_node_open(&p->node, &settings, &error) == 0);
        assert(sl_node_parts_max(p->node) <= PARTS_MAX);
        for (int k = 0; k < DIMENSION; k++)
            sl_node_model(p->node)[k] = (float)(i * k) / 8;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static network n;
    if (size < HEAD)
        return 0;
    memset(&n, 0, sizeof n);
    open_peers(&n, &setups[(data[0] | (size_t)data[1] << 8) % setup_count], data[2] % 8,
               data[3] & 1);
    for (input in = {data + HEAD, size - HEAD}; in.left > 0;)
        act(&n, &in);
    for (uint32_t i = 0; i < n.nodes; i++) {
        end(&n.peers[i]);
        for (uint32_t to = 0; to < n.nodes; to++)
            while (n.queues[i][to].count > 0)
                free(pop(&n.queues[i][to]));
    }
    return 0;
}
