/* test_nodes.c - nodes of every algorithm and compressor to which anything happens: frames are
 * forged, come twice or never, gradients are no numbers, exchanges are cut, time is over. A node
 * goes on or ends in an error. */
#include "node_network.h"
#include "usual_compressor.h"

enum { ACTS = 250 };

static const char *const topologies[] = {
    "{'nodes': 4, 'family': 'ring'}",
    "{'nodes': 3, 'family': 'path'}",
    "{'nodes': 2, 'family': 'complete'}",
    "{'nodes': 4, 'family': 'star'}",
    "{'nodes': 4, 'family': 'static-exponential'}",
    "{'nodes': 4, 'family': 'one-peer-exponential'}",
    "{'nodes': 3, 'family': 'directed-ring'}",
};

static void forge(uint32_t to) {
    uint8_t bytes[64];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)below(256);
    const uint32_t from = below(nodes + 1);
    push(&queues[from % nodes][to],
         (sl_event){.type = SL_EVENT_RECEIVED,
                    .peer = from,
                    .exchange = sl_node_round(peers[to].node) + below(7) - 3,
                    .step = below(4) == 0 ? below(256) : 0,
                    .part = below(4) == 0 ? below(256) : below(4),
                    .scalar = (double)below(256) - 128,
                    .silent = below(4) == 0,
                    .payload = {bytes, below(2) == 0 ? PART * sizeof(float) : below(65)}});
}

/* Of its next frame from that neighbour a field is another one, or its payload. */
static void alter(frame *f) {
    uint8_t bytes[64];
    sl_event e = f->event;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)below(256);
    const uint32_t what = below(6);
    e.exchange += what == 0 ? below(3) - 1 : 0;
    e.step += what == 1;
    e.part += what == 2;
    e.silent = e.silent != (what == 3);
    const size_t length =
        what == 4 && e.payload.bytes <= sizeof bytes ? e.payload.bytes : below(65);
    drop(f);
    *f = (frame){.event = e, .payload = malloc(length), .used = true};
    memcpy(f->payload, bytes, length);
    f->event.payload = (sl_payload){f->payload, length};
    f->event.token = f;
}

/* Or it comes twice, or never. */
static void disturb(uint32_t from, uint32_t to) {
    queue *q = &queues[from][to];
    frame *f = &q->frames[q->first];
    const uint32_t what = below(4);
    if (q->count == 0)
        return;
    if (what < 2) {
        alter(f);
    } else if (what == 2) {
        push(q, f->event);
    } else {
        drop(f);
        q->first = (q->first + 1) % QUEUE;
        q->count--;
    }
}

static void happen(uint32_t i) {
    peer *p = &peers[i];
    static const sl_event_type calls[] = {SL_EVENT_PEER_DOWN, SL_EVENT_DEADLINE, SL_EVENT_NOTIFIED};
    const uint32_t what = below(64);
    if (what == 0)
        forge(i);
    else if (what < 4)
        disturb(below(nodes), i);
    else if (what == 4 && below(4) == 0)
        step(p, &(sl_event){.type = calls[below(3)], .peer = below(nodes)});
    else if (what == 5 && p->started) {
        p->message = (sl_outbound){0};
        p->encoded = p->sent = 0;
        step(p, &(sl_event){.type = SL_EVENT_CUT});
    }
}

/* What it can do, it does, or not yet. */
static void go_on(uint32_t i) {
    peer *p = &peers[i];
    for (int k = 0; k < 6 && p->node != NULL; k++) {
        const uint32_t what = below(5);
        if (what == 0)
            compute(p);
        else if (what == 1)
            encode(p);
        else if (what == 2)
            send(i);
        else
            arrive(below(nodes), i);
    }
}

static void run_wildly(const sl_algorithm_config *config, sl_topology *on) {
    static const sl_optimizer_config optimizer = {.learning_rate = 0.1};
    static const size_t ends[] = {48, DIMENSION}, rows[] = {6, 1};
    static uint64_t seed;
    const sl_algorithm *algorithm = sl_algorithm_of(config, NULL);
    if (algorithm == NULL || algorithm->async != NULL || /* it has a machine of its own */
        sl_algorithm_check(config, on, &(sl_optimizer_config){0}, &error) != 0 ||
        sl_algorithm_plan(&plan, config, on, DIMENSION, &error) != 0 ||
        (++seed % 8 != 0 && getenv("STARLING_QUICK") != NULL))
        return;
    const bool plain = sl_algorithm_compressor(&plan.config) == SL_COMPRESSOR_IDENTITY;
    open_nodes((sl_node_settings){.rounds = ROUNDS,
                                  .dimension = DIMENSION,
                                  .tensor_ends = ends,
                                  .tensor_rows = rows,
                                  .tensor_count = 2,
                                  .part_bytes = plain ? PART * sizeof(float) : FRAME_BYTES,
                                  .inbox_parts = (uint32_t)(seed % 32),
                                  .seed = seed,
                                  .topology = on,
                                  .plan = &plan,
                                  .vec = sl_vec_cpu(),
                                  .direct = plain && seed % 3 == 0,
                                  .turns = seed % 2 == 0,
                                  .optimizer = &optimizer,
                                  .measure_every = 2},
               seed);
    for (int k = 0; k < ACTS; k++) {
        const uint32_t i = below(nodes);
        if (peers[i].node != NULL)
            happen(i);
        go_on(i);
    }
    close_run();
}

/* And where sums of its messages may go by a form, that as well. */
START_LOOP_TEST(a_node_goes_on_or_says_why_not, sizeof topologies / sizeof *topologies) {
    sl_topology *on;
    EXPECT_WELL(sl_topology_parse(&on, quoted(topologies[_i]), "topology", &error));
    is_wild = true;
    for (size_t a = 0; sl_algorithm_name(a) != NULL; a++)
        for (int kind = 0; kind < SL_COMPRESSOR_COUNT; kind++)
            for (int variant = SL_VARIANT_DEFAULT; variant <= SL_VARIANT_TRIMMED_MEAN; variant++) {
                sl_algorithm_config config =
                    usual_algorithm(sl_algorithm_name(a), (sl_compressor_kind)kind);
                config.directions = kind % 3 ? SL_DIRECTIONS_UP : SL_DIRECTIONS_BOTH;
                config.variant = (sl_variant)variant;
                run_wildly(&config, on);
                config.all_reduce = SL_ALL_REDUCE_RECURSIVE_DOUBLING;
                const sl_algorithm *by_form = sl_algorithm_of(&config, NULL);
                if (by_form != NULL && sl_algorithm_sums_sparse(by_form))
                    run_wildly(&config, on);
            }
    is_wild = false;
    sl_topology_close(&on);
}
