/* test_cut_trace.c - a node whose exchanges are cut, and views, as transcripts; see
 * node_transcript.h. */
#include "node_transcript.h"

static const uint32_t all[] = {0, 1, 2};

static void cut(void) {
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_CUT}), 0);
    ck_assert(!update.publish);
}

static void expect_reach(uint64_t exchange, uint32_t at_step, uint32_t part) {
    sl_reach at;
    sl_node_reach(node, &at);
    ck_assert(at.exchange == exchange && at.step == at_step && at.part == part);
}

static void view(uint64_t round, const sl_pair *broken, uint32_t broken_count) {
    const sl_node_view next = {.round = round,
                               .exchange = round - 1,
                               .members = {all, 3},
                               .topology = topology,
                               .plan = &plan,
                               .broken = broken,
                               .broken_count = broken_count};
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_VIEW, .view = &next}), 0);
    ck_assert(update.compute && update.round == round);
}

/* Part 0 is combined. Of part 1 one neighbour's has come, and goes back. */
START_TEST(what_is_combined_stays) {
    open_node(SL_VARIANT_ADAPT_THEN_COMBINE, 1, 4);
    sl_node_hold(node, 1);
    start();
    expect_reach(0, 1, 0);
    gradient(3);
    publish(0);
    sent(0);
    receive(0, 1, 0, 3);
    receive(2, 1, 0, 6);
    expect_released(2);
    receive(2, 1, 1, 6);
    expect_reach(1, 0, 1);
    cut();
    expect_released(1);
    ck_assert(update.round_done && !update.compute);
    ck_assert_uint_eq(update.finished_round.payload_bytes_sent, 2 * PART * sizeof(float));
    expect_model(3, 0); /* (0 + 3 + 6)/3; and 3 - 3 alone */
    expect_reach(1, 1, 0);
    cut(); /* once is enough */
    receive(0, 1, 1, 3);
    expect_released(1);
    view(2, NULL, 0);
    gradient(0);
    ck_assert(update.publish);
}
END_TEST

/* Nothing of the exchange has begun: it does not. So do those of later rounds, until the view. */
START_TEST(rounds_until_the_view_are_the_nodes_own) {
    open_node(SL_VARIANT_ADAPT_THEN_COMBINE, 1, 4);
    start();
    receive(0, 1, 0, 9);
    sl_node_hold(node, 2);
    cut();
    expect_released(1);
    gradient(1);
    ck_assert(update.round_done && update.compute && update.round == 2 && !update.publish);
    expect_model(2, 2);
    gradient(1);
    ck_assert(update.round_done && !update.compute);
    expect_model(1, 1);
    ck_assert_uint_eq(sl_node_exchange(node), 2);
    view(3, NULL, 0);
}
END_TEST

/* An exchange beside its gradient is over at once; the round is when the gradient is there. */
START_TEST(a_cut_beside_the_gradient_leaves_the_round_open) {
    open_node(SL_VARIANT_COMBINE_WHILE_ADAPT, 1, 2);
    sl_node_hold(node, 1);
    ck_assert_int_eq(step((sl_event){.type = SL_EVENT_START}), 0);
    ck_assert(update.publish && update.compute);
    publish(0);
    sent(0);
    receive(0, 1, 0, 0);
    receive(2, 1, 0, 0);
    cut();
    ck_assert(!update.round_done);
    expect_reach(1, 1, 0);
    gradient(1);
    ck_assert(update.round_done && !update.publish);
    expect_model(0, 2);
}
END_TEST

/* A broken edge's weight is the node's own, in each round of the view. */
START_TEST(a_view_does_without_broken_edges) {
    static const sl_pair broken[] = {{0, 1}, {0, 2}};
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
END_TEST

/* Where all wait for all, an exchange that is cut is none, and none is under a broken edge. */
START_TEST(an_exchange_of_all_never_took_place) {
    static const sl_pair broken = {0, 2};
    open_algorithm(&(sl_algorithm_config){.name = "local-sgd", .period = 1}, 1, 3);
    sl_node_hold(node, 1);
    start();
    gradient(1);
    ck_assert(update.publish);
    cut();
    ck_assert(update.round_done);
    expect_model(2, 2);
    view(2, &broken, 1);
    gradient(1);
    ck_assert(update.round_done && !update.publish);
    expect_model(1, 1);
}
END_TEST

int main(void) {
    turns = true;
    Suite *suite = suite_create("cut trace");
    ADD_TESTS_WITH(suite, "cuts", NULL, close_node, what_is_combined_stays,
                   rounds_until_the_view_are_the_nodes_own,
                   a_cut_beside_the_gradient_leaves_the_round_open,
                   an_exchange_of_all_never_took_place);
    ADD_TESTS_WITH(suite, "views", NULL, close_node, a_view_does_without_broken_edges);
    return run_suite(suite);
}
