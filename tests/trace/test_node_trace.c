/* test_node_trace.c - the node as a protocol transcript; see node_transcript.h. */
#include "node_transcript.h"

static void forget(void) {
    turns = false;
    leaves = NULL;
}

FIXTURES(forget, close_node);

START_TEST(a_round_in_order) {
    begin_rounds(1);
    ck_assert(!update.publish);
    gradient(0);
    ck_assert(update.publish && !update.compute);
    publish(0);
    publish(1);
    receive(0, 1, 0, 0);
    expect_released(0);
    receive(2, 1, 0, 6);
    expect_released(0); /* part 0 is complete, but has not left: x still holds what is being sent */
    sent(0);
    expect_released(2);
    expect_model(3, 3);
    receive(2, 1, 1, 9);
    sent(1);
    expect_released(0);
    receive(0, 1, 1, 0);
    expect_released(2);
    expect_model(3, 4);
    ck_assert(update.round_done && update.finished && !update.compute);
    ck_assert_uint_eq(update.finished_round.payload_bytes_sent, 2 * D * sizeof(float));
    ck_assert_uint_eq(update.finished_round.payload_bytes_received, 2 * D * sizeof(float));
    /* sqrt(1/3 (2 x 9 + 2 x 9) + 1/3 (2 x 9 + 2 x 36)) */
    ck_assert_double_eq_tol(update.finished_round.neighbour_distance, sqrt(42), 1e-12);
}

START_TEST(combine_while_adapt_publishes_before_the_gradient_and_does_not_wait_for_sent) {
    open_node(SL_VARIANT_COMBINE_WHILE_ADAPT, 0.5, 2);
    start();
    ck_assert(update.publish); /* together with compute */
    publish(0);
    receive(0, 1, 0, 0);
    receive(2, 1, 0, 6);
    expect_released(2); /* into the accumulator: the old x may still be on its way */
    expect_model(3, 3);
    publish(1);
    sent(0);
    sent(1);
    receive(0, 1, 1, 0);
    receive(2, 1, 1, 0);
    ck_assert(!update.round_done);
    gradient(2);
    ck_assert(update.round_done && update.compute && update.publish && update.round == 2);
    expect_model(2, 0); /* 3 - 0.5 * 2, and 1 - 0.5 * 2 */
}

START_TEST(who_has_everything_but_word_of_its_own_part_says_so) {
    for (int in_place = 0; in_place < 2; in_place++) {
        open_node(in_place ? SL_VARIANT_ADAPT_THEN_COMBINE : SL_VARIANT_COMBINE_WHILE_ADAPT, 0, 1);
        start();
        if (in_place)
            gradient(0);
        receive(0, 1, 0, 0);
        receive(2, 1, 0, 6);
        ck_assert(!sl_node_awaits_sent(node)); /* but for its own part to be encoded */
        publish(0);
        ck_assert(sl_node_awaits_sent(node));
        sent(0);
        expect_released(2);
        ck_assert(!sl_node_awaits_sent(node));
        close_node();
    }
}

START_TEST(parts_may_come_before_start) {
    open_node(SL_VARIANT_ADAPT_THEN_COMBINE, 0, 1);
    receive(0, 1, 0, 9);
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_RENEWED, .peer = 0}), 0);
    expect_released(1);
    receive(2, 1, 0, 6);
    receive(0, 1, 0, 0);
    start();
    gradient(0);
    publish(0);
    sent(0);
    expect_released(2);
    ck_assert_float_eq(sl_node_model(node)[0], 3);
}

START_TEST(what_is_not_wanted_is_counted_and_given_back) {
    begin_rounds(3);
    receive(0, 1, 0, 0);
    receive(0, 1, 0, 0); /* duplicate */
    expect_released(1);
    receive(7, 1, 0, 0); /* a stranger */
    expect_released(1);
    receive(0, 3, 0, 0); /* beyond the window of an undirected edge */
    expect_released(1);
    receive(2, 4, 0, 0); /* beyond the last round */
    expect_released(1);
    receive(2, 1, 0, 0);
    gradient(0);
    publish(0);
    sent(0);
    receive(2, 1, 0, 0); /* late: combined already */
    expect_released(1);
    ck_assert_uint_eq(sl_node_dropped(node), 5);
}

START_TEST(more_than_the_credit_is_dropped) {
    begin_rounds(3);
    receive(0, 1, 0, 0);
    receive(0, 1, 1, 0);
    receive(0, 2, 0, 0);
    receive(0, 2, 1, 0);
    expect_released(0);
    receive(0, 2, 1, 0);
    expect_released(1);
    ck_assert_uint_eq(sl_node_dropped(node), 1);
}

START_TEST(a_skipped_part_is_an_error_that_names_edge_and_round) {
    begin_rounds(2);
    receive(2, 1, 0, 0);
    receive(0, 1, 1, 0);
    gradient(0);
    publish(0);
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_SENT, .part = 0}), SL_EPROTO);
    ck_assert_str_eq(
        error.text,
        "edge 0->1, round 1: part 0 of step 0 never came, part 1 of step 0 of exchange 1 did");
}

START_TEST(a_payload_of_the_wrong_size_is_never_mixed) {
    begin_rounds(1);
    ck_assert_int_eq(receive_elements(0, 1, 0, 5, PART + 1), SL_EPROTO);
    ck_assert_ptr_nonnull(strstr(
        error.text, "edge 0->1, round 1: part 0 of step 0 with 12 bytes is no identity payload"));
    expect_released(1);
}

START_TEST(divergence_is_an_error_that_names_node_round_and_remedy) {
    open_node(SL_VARIANT_ADAPT_THEN_COMBINE, 0.5, 1);
    start();
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_GRADIENT, .loss = INFINITY}), SL_EDIVERGED);
    ck_assert_ptr_nonnull(strstr(error.text, "node 1, round 1: the loss is inf"));
    ck_assert_ptr_nonnull(strstr(error.text, "lower optimizer.learning_rate"));
}

/* In the very part, whatever the round records. */
START_TEST(a_neighbour_that_sends_nan_is_named) {
    begin_rounds(1);
    gradient(0);
    receive(0, 1, 0, 0);
    receive(2, 1, 0, NAN);
    publish(0);
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_SENT, .part = 0}), SL_EDIVERGED);
    ck_assert_str_eq(error.text,
                     "edge 2->1, round 1: part 0 of the neighbour's message holds a number that is "
                     "not finite: node 2 diverged first, or is faulty");
    expect_released(2);
}

START_TEST(an_own_step_that_overflows_is_divergence) {
    open_node(SL_VARIANT_ADAPT_THEN_COMBINE, 1, 1);
    start();
    gradient(-INFINITY);
    receive(0, 1, 0, 0);
    receive(2, 1, 0, 0);
    publish(0);
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_SENT, .part = 0}), SL_EDIVERGED);
    ck_assert_ptr_nonnull(strstr(error.text, "node 1, round 1: the own step or the mixing made"));
    ck_assert_ptr_nonnull(strstr(error.text, "lower optimizer.learning_rate"));
}

START_TEST(a_part_that_is_not_finite_leaves_nobody) {
    turns = true;
    open_node(SL_VARIANT_ADAPT_THEN_COMBINE, 10, 1);
    start();
    gradient(-3e38f);
    receive(0, 1, 0, 0);
    ck_assert_int_eq(sl_node_payload(node, 0, &(sl_payload){0}, &error), SL_EDIVERGED);
    ck_assert(sl_node_is_spoiled(node, 1) && !sl_node_rests(node));
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_ASIDE}), 0);
    expect_released(1);
    sl_node_forget(node);
    ck_assert(!sl_node_is_spoiled(node, 1));
    close_node();
}

/* Found in the sum kept aside, and in the model, which the gradient's step made infinite. */
START_TEST(a_model_that_is_not_finite_ends_no_run_well) {
    open_node(SL_VARIANT_COMBINE_WHILE_ADAPT, 1, 1);
    start();
    for (uint32_t part = 0; part < 2; part++) {
        publish(part);
        receive(0, 1, part, 0);
        receive(2, 1, part, 0);
        sent(part);
    }
    for (int i = 0; i < D; i++)
        sl_node_gradient_buffer(node)[i] = NAN;
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_GRADIENT, .loss = 1}), SL_EDIVERGED);
    ck_assert_ptr_nonnull(strstr(error.text, "the model holds a number that is not finite"));
    ck_assert(!update.finished);
}

START_TEST(a_lost_peer_and_a_passed_deadline_name_the_edge) {
    begin_rounds(1);
    gradient(0);
    receive(0, 1, 0, 0);
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_DEADLINE}), SL_EPEER);
    ck_assert_str_eq(error.text, "edge 2->1, round 1: part 0 of 2 has not come in time");
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_PEER_DOWN, .peer = 2}), SL_EPEER);
    ck_assert_str_eq(error.text, "edge 2->1, round 1: the neighbour is gone");
}

static int receive_silent(uint32_t peer, uint64_t exchange, uint32_t part, size_t bytes) {
    float *v = vectors[next_vector++ % 16];
    return step((sl_event){.type = SL_EVENT_RECEIVED,
                           .peer = peer,
                           .exchange = exchange,
                           .part = part,
                           .silent = true,
                           .token = v,
                           .payload = {v, bytes}});
}

static void gather(uint64_t exchange, uint32_t part) {
    publish(part);
    sent(part);
    ck_assert(update.round_done == (part == 1) && update.finished_round.round == exchange * part);
}

/* Node 1 serves. A message that says nothing is one frame; nobody waits, and nothing is mixed. */
START_TEST(a_silent_message_ends_the_phase_and_is_not_mixed) {
    open_algorithm(&(sl_algorithm_config){.name = "lag-3pc", .trigger = 2, .server = 1}, 1, 2);
    start();
    receive(0, 1, 0, 3);
    receive(0, 1, 1, 3);
    receive(2, 1, 0, 6);
    receive(2, 1, 1, 6);
    gradient(3);
    publish(0); /* of its own message, to nobody */
    sent(0);
    publish(1);
    sent(1);
    gather(1, 0);
    gather(1, 1);
    expect_model(-1, -1); /* 3 - (3 + 3 + 6)/3 */
    ck_assert_uint_eq(update.finished_round.messages_sent, 2);
    ck_assert_uint_eq(update.finished_round.frames_received, 4);

    ck_assert_int_eq(receive_silent(0, 2, 0, 0), 0);
    receive(0, 2, 0, 9); /* after it nothing of that message counts */
    receive(0, 2, 1, 9);
    ck_assert_int_eq(receive_silent(0, 2, 0, 0), 0);
    ck_assert_uint_eq(sl_node_dropped(node), 3);
    receive(2, 2, 0, 3);
    gradient(4); /* what it would tell is not above twice the step */
    ck_assert(update.publish && update.message.silent && update.message.parts == 1);
    sl_payload payload;
    ck_assert_int_eq(sl_node_payload(node, 0, &payload, &error), 0);
    ck_assert(payload.bytes == 0 && payload.data != NULL);
    sent(0);
    ck_assert(!sl_node_awaits(node, 0) && sl_node_awaits(node, 2));
    receive(2, 2, 1, 3);
    expect_released(2);
    gather(2, 0);
    gather(2, 1);
    expect_model(-6, -6);                                        /* 4 + 3/3 */
    ck_assert_uint_eq(update.finished_round.messages_silent, 0); /* it went to nobody */
    ck_assert_uint_eq(update.finished_round.frames_received, 3);
}

START_TEST(who_may_not_be_silent_is_refused) {
    begin_rounds(1);
    ck_assert_int_eq(receive_silent(0, 1, 0, 0), SL_EPROTO);
    ck_assert_ptr_nonnull(strstr(error.text, "edge 0->1, round 1: part 0 of step 0 with 0 bytes, "
                                             "marked as silent, is no identity payload"));
    close_node();
    for (uint32_t part = 0; part < 2; part++) {
        open_algorithm(&(sl_algorithm_config){.name = "lag-3pc", .server = 1}, 1, 2);
        start();
        ck_assert_int_eq(receive_silent(0, 1, part, part ? 0 : sizeof(float)), SL_EPROTO);
        close_node();
    }
}

/* How many rounds node 1 ends while node 0 is in its first one, and how many it may. */
static void check_alone(const sl_algorithm_config *config, uint64_t expected) {
    uint64_t ended = 0, spread;
    open_on("{\"nodes\": 2, \"family\": \"ring\"}", config, 0, 100);
    ck_assert_int_eq(sl_algorithm_spread(&spread, config, topology, &error), 0);
    start();
    for (gradient(0); update.round_done; gradient(0))
        ended++;
    ck_assert_uint_eq(ended, expected);
    ck_assert_uint_le(ended, spread);
    close_node();
}

/* Who begins without a message comes further, and checkpoints reach as far back. */
START_TEST(nobody_is_further_ahead_than_checkpoints_reach) {
    sl_algorithm_config config = {.name = "d-psgd", .local_steps = 3};
    check_alone(&config, 2);
    config = (sl_algorithm_config){.name = "choco-sgd", .local_steps = 3};
    config.variant = SL_VARIANT_COMPRESS_THEN_MIX;
    check_alone(&config, 2);
    config.variant = SL_VARIANT_MIX_THEN_COMPRESS;
    check_alone(&config, 5);
    config = (sl_algorithm_config){.name = "lead"};
    check_alone(&config, 1);
}

/* ---- views: what a cut leaves is in tests/unit/test_cutting.c's account ---- */

static const uint32_t all[] = {0, 1, 2, 3};

static void cut(void) {
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_CUT}), 0);
    ck_assert(!update.publish);
}

static void view(uint64_t round, const sl_pair *broken, uint32_t broken_count) {
    const sl_node_view next = {.round = round,
                               .exchange = round - 1,
                               .members = {all, sl_topology_nodes(topology)},
                               .topology = topology,
                               .plan = &plan,
                               .broken = broken,
                               .broken_count = broken_count};
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_VIEW, .view = &next}), 0);
    ck_assert(update.compute && update.round == round);
}

/* A broken edge's weight is the node's own, in each round of the view. */
START_TEST(a_view_does_without_broken_edges) {
    static const sl_pair broken[] = {{0, 1}, {0, 2}};
    turns = true;
    open_node(SL_VARIANT_ADAPT_THEN_COMBINE, 0, 3);
    sl_node_hold(node, 1);
    start();
    gradient(0);
    cut();
    view(2, broken, 2);
    for (uint64_t round = 2; round <= 3; round++) {
        gradient(0);
        ck_assert(update.publish && update.message.to.count == 1);
        ck_assert_uint_eq(update.message.to.peers[0], 2);
        receive(0, round, 0, 100);
        expect_released(1);
        for (uint32_t part = 0; part < 2; part++) {
            receive(2, round, part, round == 2 ? 6 : 4);
            publish(part);
            sent(part);
        }
        ck_assert(update.round_done);
        expect_model(4, 4);
    }
}

/* A ring of four: ranks 0 and 2 exchange nothing with each other. A new node begins with the view.
 */
START_TEST(an_all_reduce_goes_on_without_an_edge_that_it_does_not_use) {
    static const struct {
        sl_pair broken;
        bool goes_on;
    } rows[] = {{{0, 2}, true}, {{1, 3}, true}, {{0, 1}, false}, {{1, 2}, false}};
    turns = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        open_on("{\"nodes\": 4, \"family\": \"ring\"}",
                &(sl_algorithm_config){.name = "all-reduce"}, 0, 9);
        view(5, &rows[i].broken, 1);
        gradient(0);
        ck_assert(update.publish == rows[i].goes_on && update.round_done != rows[i].goes_on);
        close_node();
    }
}

static const sl_ranges last_first = {1, &(sl_range){0, D}};

/* Elements 2 and 3 are part 0. */
START_TEST(what_is_final_of_a_gradient_leaves_and_is_combined) {
    leaves = &last_first;
    open_node(SL_VARIANT_ADAPT_THEN_COMBINE, 1, 1);
    start();
    part_of_gradient(D, 0);
    ck_assert(update.publish && !sl_node_ready(node));
    part_of_gradient(3, 3);
    ck_assert(!update.publish && !sl_node_ready(node)); /* element 2 is still to come */
    receive(0, 1, 0, 0);
    receive(2, 1, 0, 6);
    expect_released(0);
    part_of_gradient(2, 3);
    ck_assert(sl_node_ready(node));
    publish(0);
    ck_assert(!sl_node_ready(node));
    sent(0);
    expect_released(2);
    expect_model(3, 2); /* (3 - 3 + 0 + 6) / 3 */
    gradient(3);
    ck_assert(!update.publish && sl_node_ready(node));
    publish(1);
    receive(0, 1, 1, 0);
    receive(2, 1, 1, 3);
    sent(1);
    expect_model(1, 2);
    ck_assert(update.round_done && update.finished);
}

START_TEST(a_diverged_loss_is_found_before_anything_leaves) {
    leaves = &last_first;
    turns = true;
    begin_rounds(1);
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_FINAL, .loss = NAN, .from = D}),
                     SL_EDIVERGED);
    ck_assert(!update.publish);
    ck_assert(sl_node_is_spoiled(node, NAN));
}

/* What was combined stays; the rest of its own step is taken once its gradient is there. */
START_TEST(an_exchange_that_is_cut_beside_the_gradient_ends_with_it) {
    leaves = &last_first;
    turns = true;
    open_node(SL_VARIANT_ADAPT_THEN_COMBINE, 1, 2);
    start();
    part_of_gradient(D, 0);
    part_of_gradient(2, 3);
    publish(0);
    receive(0, 1, 0, 0);
    receive(2, 1, 0, 6);
    sent(0);
    receive(0, 1, 1, 300);
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_CUT}), 0);
    expect_released(1);
    ck_assert(!update.round_done);
    expect_model(3, 2);
    gradient(3);
    ck_assert(update.round_done && update.compute);
    expect_model(0, 2);
}
