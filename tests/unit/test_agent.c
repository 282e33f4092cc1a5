/* test_agent.c - one real agent against a peer that does not behave, over real connections. A
 * broken connection is not connected anew here: see test_reconnect.c.
 */
#include "agent/collectives/collective.h"
#include "agent/peers/neighbour.h"
#include "frame_peer.h"

/* ---- a peer that behaves ---- */

static void trust_the_link(peer *p) {
    peer_begin(p);
    static const float values[D] = {3, 3, 3, 3, 3, 3, 3, 3};
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        peer_take_data(p, round);
        ck_assert_int_eq(unsummed_come, !checksums);
        const sl_frame data = {.type = SL_FRAME_DATA,
                               .unsummed = true, /* its sum is wrong, and says nothing */
                               .exchange = round,
                               .payload_bytes = sizeof values,
                               .payload_sum = 1};
        peer_send_as(p, data, values);
    }
    peer_say_bye(p);
}

/* What comes is taken as its sender says; what goes out, as the agent's own experiment says. */
START_TEST(each_agent_says_whether_what_it_sends_has_checksums) {
    for (int i = 0; i < 2; i++) {
        checksums = i == 0;
        meet(trust_the_link);
        expect_well_ended(2.75f); /* 1 of the agent and 3 of the peer are 2, 2.5 and 2.75 */
    }
    checksums = true;
}

/* ---- data that stays in memory: parity.py has agents that read each other's ---- */

static sl_arena *arena; /* of the peer; NULL: it offers none */
static sl_arena_map *agents;
static sl_reference referred;
static sl_frame_type refers = SL_FRAME_DATA;
static char why[SL_ARENA_WHY_MAX];

/* Both hand their memory to the other. */
static void hand_over(peer *p) {
    sl_mailbox *mailbox = sl_mailbox_open(NULL);
    uint8_t bytes[SL_OFFER_BYTES];
    sl_memory_offer mine;
    sl_hello hello = own_hello(false);
    greet_properly(p);
    hello.standing.mailbox = sl_mailbox_name_of(mailbox);
    peer_say(p, &hello);
    ck_assert(poll_until(p, NULL, 2)); /* HELLO, OFFER */
    const sl_memory_offer theirs = sl_offer_decode(p->last + SL_FRAME_HEADER_BYTES);
    ck_assert_msg(sl_arena_map_open(&agents, mailbox, &theirs, why), "%s", why);
    sl_mailbox_close(&mailbox);
    if (arena == NULL)
        return;
    ck_assert(sl_arena_post(arena, &agent_stands.mailbox, &mine, why));
    sl_offer_encode(&mine, bytes);
    peer_send_frame(p, SL_FRAME_OFFER, 0, bytes, sizeof bytes);
    ck_assert(poll_until(p, NULL, 3)); /* MEMORY */
}

static void refer_wrongly(peer *p) {
    uint8_t bytes[SL_REFERENCE_BYTES];
    hand_over(p);
    sl_reference_encode(&referred, bytes);
    peer_send_as(
        p,
        (sl_frame){.type = refers,
                   .refers = true,
                   .exchange = 1,
                   .payload_bytes = sizeof bytes,
                   .payload_sum = refers == SL_FRAME_DATA ? 0 : sl_checksum(bytes, sizeof bytes)},
        bytes);
}

START_TEST(what_is_not_in_the_memory_that_was_offered_is_refused) {
    const sl_reference rows[] = {
        {0, PART_BYTES + 4, 0}, /* longer than some parts */
        {2 * PART_BYTES, D * sizeof(float), 0},
        {4, D * sizeof(float), 0}, /* between two numbers' places */
        {UINT64_MAX - 63, 64, 0},
        {0, UINT64_MAX, 0},
    };
    static const sl_frame_type others[] = {SL_FRAME_SUM, SL_FRAME_MODEL};
    const size_t count = sizeof rows / sizeof *rows;
    memory = "auto";
    EXPECT_WELL(sl_arena_open(&arena, 2 * PART_BYTES, &error));
    for (size_t i = 0; i < 2; i++) {
        refers = others[i];
        referred = (sl_reference){0, D * sizeof(float), 1}; /* it has another sum */
        meet(refer_wrongly);
        sl_arena_map_close(&agents);
        ck_assert_int_eq(agent_result, SL_EPROTO);
        ck_assert_msg(strstr(agent_text, "not in its memory, or not any more") != NULL, "%s",
                      agent_text);
    }
    refers = SL_FRAME_DATA;
    for (size_t i = 0; i <= count; i++) {
        referred = rows[i % count];
        if (i == count)
            sl_arena_close(&arena); /* there was no offer */
        meet(refer_wrongly);
        sl_arena_map_close(&agents);
        ck_assert_int_eq(agent_result, SL_EPROTO);
        ck_assert_msg(strstr(agent_text, "a reference to what is not in its memory") != NULL,
                      "row %zu: %s", i, agent_text);
    }
}

/* ---- frames that cannot be ---- */

static void corrupt_a_payload(peer *p) {
    static const float values[D] = {3};
    const sl_frame data = {
        .type = SL_FRAME_DATA, .exchange = 1, .payload_bytes = sizeof values, .payload_sum = 1};
    peer_begin(p);
    peer_send_as(p, data, values);
}

START_TEST(a_corrupted_frame_is_counted_dropped_with_its_connection_and_never_mixed) {
    meet(corrupt_a_payload);
    ck_assert_int_eq(agent_result, SL_EPROTO);
    ck_assert_str_eq(agent_text,
                     "edge 1->0, round 1: agent 1 sent a malformed frame: payload checksum "
                     "differs; its numbers were written while they were sent, or a link or a "
                     "memory is faulty");
    ck_assert_int_eq(agent_error.rank, 0);
    ck_assert_int_eq(agent_error.peer, 1);
    ck_assert_int_eq(agent_error.round, 1);
    ck_assert_uint_eq(counters.frames_corrupted, 1);
    ck_assert_float_eq(last_model[0], 1);
}

static void send_too_much(peer *p) {
    peer_begin(p);
    peer_send_frame(p, SL_FRAME_DATA, 1, (const float[2 * D]){0}, 2 * D * sizeof(float));
}

/* The agent keeps what comes before it can be mixed, and drops the rest: only what it keeps uses
 * the credit up. Its gradient takes until the last frame has come. */
static void send_beyond_credit(peer *p) {
    atomic_store(&gradient_waits, true);
    peer_begin(p);
    const size_t before = p->frames;
    for (uint64_t exchange = 1; exchange <= WINDOW + 1; exchange++)
        peer_send_value(p, exchange, 0);
    ck_assert(poll_until(p, NULL, before + 1)); /* ABORT */
    atomic_store(&gradient_waits, false);
}

static void send_direct_to_the_host(peer *p) {
    peer_begin(p);
    send_direct(p, 1, (const float[D]){0});
}

static void send_through_the_host(peer *p) {
    peer_begin(p);
    peer_send_value(p, 1, 0);
}

static void give_up_before_a_gpu(peer *p) {
    static char longest[SL_FRAME_TEXT_MAX]; /* fills the host's piece of a buffer to its end */
    memset(longest, 'x', sizeof longest);
    peer_begin(p);
    peer_send_frame(p, SL_FRAME_ABORT, 1, longest, sizeof longest);
}

/* ---- who differs, or is no peer ---- */

static void differ_in_way(peer *p) {
    greet_properly(p);
    sl_hello hello = own_hello(strcmp(experiment->device, "cpu") == 0);
    peer_say(p, &hello);
}

static void differ_in_topology(peer *p) {
    greet_properly(p);
    sl_hello hello = own_hello(false);
    hello.topology_hash++;
    peer_say(p, &hello);
}

/* ---- who ends ---- */

static void give_up(peer *p) {
    static const char cause[] = "edge 5->6, round 9: agent 5 is gone";
    peer_begin(p);
    peer_send_frame(p, SL_FRAME_ABORT, 1, cause, sizeof cause - 1);
}

static void hang_up(peer *p) {
    peer_begin(p);
    peer_close(p);
}

/* ---- what agents do together ---- */

static void say_that_it_came(peer *p) {
    peer_send_as(
        p, (sl_frame){.type = SL_FRAME_BARRIER, .exchange = 1, .part = 1, .step = SL_MEET_SUM},
        NULL);
}

static void come_alone(peer *p) {
    peer_begin(p);
    say_that_it_came(p);
}

static void meet_and_add_up(uint64_t round) {
    float x[D] = {0};
    sl_error ignored;
    if (sl_agent_meet(agent, round, SL_MEET_SUM, &ignored) == SL_MEET_SUM)
        sl_agent_sum(agent, &(sl_share){.x = x, .count = D, .divisor = 2}, &ignored);
}

/* Before the agent comes. */
static void come_twice(peer *p) {
    atomic_store(&gradient_waits, true);
    come_alone(p);
    const size_t before = p->frames;
    say_that_it_came(p);
    ck_assert(poll_until(p, NULL, before + 1)); /* ABORT */
    atomic_store(&gradient_waits, false);
}

/* Comes to add up, and says that, of a part with so many bytes, when it is asked. */
static void answer(peer *p, sl_frame_type type, uint32_t part, uint32_t step, uint32_t bytes) {
    static const double zeros[2 * D];
    sl_frame asks = {0};
    come_alone(p);
    do
        ck_assert_ptr_null(sl_frame_decode(&asks, p->last, p->last_bytes, sizeof p->last, false));
    while (asks.type != SL_FRAME_SUM_CREDIT && poll_until(p, NULL, p->frames + 1));
    ck_assert_int_eq(asks.type, SL_FRAME_SUM_CREDIT);
    peer_send_as(p,
                 (sl_frame){.type = type,
                            .exchange = asks.exchange,
                            .part = part,
                            .step = step,
                            .payload_bytes = bytes},
                 zeros);
}

static void give_another_size(peer *p) {
    answer(p, SL_FRAME_SUM, 0, 0, (D - 1) * sizeof(double));
}

static void give_another_part(peer *p) {
    answer(p, SL_FRAME_SUM, 1, 0, D * sizeof(double));
}

static void say_that_too_much_came(peer *p) {
    answer(p, SL_FRAME_SUM_CREDIT, 1, 9, 0);
}

/* ---- what ends the run, and what is said of it ---- */

static const char other_way[] = "refused: the way of payloads (transport.gpu_direct; \"off\" for "
                                "all suits any pair) of agents 1 and 0 differs";

/* The agent's vectors are on the host or on a GPU; or its task comes together with the others'. */
typedef enum kind { HOST, GPU, MEETS } kind;

static const struct {
    kind kind;
    meeting behave;
    int code;
    const char *text;
} ends[] = {
    {HOST, send_too_much, SL_EPROTO, "payload longer than its type allows"},
    {HOST, send_beyond_credit, SL_EPROTO, "data frames, more than the"},
    {HOST, send_direct_to_the_host, SL_EPROTO,
     "agent 1 sent a malformed frame: data between GPUs, where it goes through the host's memory"},
    {GPU, send_through_the_host, SL_EPROTO,
     "agent 1 sent a malformed frame: data through the host's memory, where GPUs exchange theirs"},
    {GPU, give_up_before_a_gpu, SL_EPEER, "edge 1->0, round 1: agent 1 ended: xxxx"},
    {HOST, differ_in_way, SL_EPEER, other_way},
    {GPU, differ_in_way, SL_EPEER, other_way},
    {HOST, differ_in_topology, SL_EPEER,
     "edge 1->0, round 0: refused: the topology of agents 1 and 0 differs"},
    {HOST, give_up, SL_EPEER,
     "edge 1->0, round 1: agent 1 ended: edge 5->6, round 9: agent 5 is gone"},
    {HOST, hang_up, SL_EPEER, "edge 1->0, round 1: agent 1 is gone"},
    {HOST, come_alone, SL_EPROTO, "agent 1 runs in a session, and this agent does not"},
    {MEETS, come_twice, SL_EPROTO, "said that agent 1 has come to a meeting, which cannot be"},
    {MEETS, give_another_size, SL_EPROTO, "where this agent's share has another size"},
    {MEETS, give_another_part, SL_EPROTO, "which was not asked for"},
    {MEETS, say_that_too_much_came, SL_EPROTO, "of which it has not got so many"},
};

START_LOOP_TEST(what_ends_a_run_is_said_with_edge_and_round, sizeof ends / sizeof *ends) {
    comes_together = ends[_i].kind == MEETS ? meet_and_add_up : NULL;
    if (ends[_i].kind == GPU)
        meet_direct(ends[_i].behave);
    else
        meet(ends[_i].behave);
    ck_assert_msg(strstr(agent_text, ends[_i].text) != NULL, "%s: %s", ends[_i].text, agent_text);
    ck_assert_int_eq(agent_result, ends[_i].code);
    comes_together = NULL;
}

/* Replicas, which are part of the algorithm, follow from it. */
START_TEST(what_a_loss_does_is_compared_and_named) {
    static const sl_side side = {.rank = 0, .hello = {.section_count = SL_SECTION_COUNT}};
    sl_hello theirs = side.hello;
    char text[SL_REFUSAL_MAX];
    ck_assert(!sl_hello_differs(&side, &theirs, 1, text));
    theirs.goes_on = true;
    ck_assert(sl_hello_differs(&side, &theirs, 1, text));
    ck_assert_ptr_nonnull(
        strstr(text, "membership.on_loss: \"stop\" here, \"continue\" at agent 1; \"auto\""));
    theirs.sections[SL_SECTION_algorithm]++;
    ck_assert(sl_hello_differs(&side, &theirs, 1, text));
    ck_assert_ptr_nonnull(strstr(text, "membership.on_loss: "));
    theirs.goes_on = false;
    ck_assert(sl_hello_differs(&side, &theirs, 1, text));
    ck_assert_ptr_nonnull(strstr(text, "the algorithm of agents 1 and 0 differs"));
}

/* By key, as far as both have said it; what may be default is not said. */
START_TEST(a_setting_that_differs_is_named_with_both_values) {
    static const char mine[] = "topology {\"nodes\":8}\noptimizer.learning_rate 0.125\n";
    static const char other[] = "optimizer.learning_rate 0.375\noptimizer.momentum 0.9\ntopology 1";
    sl_side side = {.rank = 0,
                    .hello = {.section_count = SL_SECTION_COUNT,
                              .settings = mine,
                              .settings_bytes = sizeof mine - 1}};
    sl_hello theirs = side.hello;
    char text[SL_REFUSAL_MAX];
    theirs.settings = other;
    theirs.settings_bytes = sizeof other - 1;
    theirs.sections[SL_SECTION_optimizer]++;
    ck_assert(sl_hello_differs(&side, &theirs, 3, text));
    ck_assert_str_eq(text, "optimizer.learning_rate: 0.125 here, 0.375 at agent 3");
    theirs.settings = "optimizer.learning_rate 0.125\noptimizer.momentum 0.9";
    theirs.settings_bytes = strlen(theirs.settings);
    ck_assert(sl_hello_differs(&side, &theirs, 3, text));
    ck_assert_str_eq(text, "optimizer.momentum: 0 here, 0.9 at agent 3");
    theirs.topology_hash++;
    theirs.settings = "topology \x01{\"nodes\":9}";
    theirs.settings_bytes = strlen(theirs.settings);
    ck_assert(sl_hello_differs(&side, &theirs, 3, text));
    ck_assert_str_eq(text, "topology: {\"nodes\":8} here, \\x01{\"nodes\":9} at agent 3");
    theirs.settings_bytes = 0;
    ck_assert(sl_hello_differs(&side, &theirs, 3, text));
    ck_assert_ptr_nonnull(strstr(text, "the topology of agents 3 and 0 differs"));
}
