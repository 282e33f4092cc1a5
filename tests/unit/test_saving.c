/* test_saving.c - transcripts of requests for a checkpoint, which neighbours pass on: who has left
 * takes no other round. */
#include "agent/saving.h"
#include "frame_peer.h"

static int requests; /* that the agent has taken */

static void count_requests(void *context, const sl_log_entry *entry) {
    requests += entry->kind == SL_LOG_REQUEST;
}

static void ask_to_leave(peer *p, uint64_t round) {
    peer_send_as(
        p, (sl_frame){.type = SL_FRAME_CHECKPOINT, .exchange = round, .step = SL_CUT_LEAVE}, NULL);
}

static void leave_after_the_first_round(peer *p) {
    peer_begin(p);
    peer_take_data(p, 1);
    const size_t before = p->frames;
    ask_to_leave(p, 1);
    peer_send_value(p, 1, 0);
    ck_assert(poll_until(p, NULL, before + 1)); /* its BYE: it has left */
}

static void say_bye(peer *p) {
    peer_send_frame(p, SL_FRAME_BYE, 1, NULL, 0);
}

static void leave(peer *p) {
    leave_after_the_first_round(p);
    say_bye(p);
}

static void leave_and_name_another_round(peer *p) {
    leave_after_the_first_round(p);
    ask_to_leave(p, 2);
    say_bye(p);
}

START_TEST(who_has_left_takes_no_other_round) {
    const meeting meetings[] = {leave, leave_and_name_another_round};
    for (int i = 0; i < 2; i++) {
        char folder[] = "/tmp/starling-saving-XXXXXX";
        ck_assert_ptr_nonnull(mkdtemp(folder));
        const sl_checkpoints files = {.folder = folder, .run_id = 1};
        checkpoints = &files;
        requests = 0;
        meet(meetings[i]);
        ck_assert_int_eq(system(printed("rm -r %s", folder)), 0);
        ck_assert_msg(agent_result == SL_ESAVED, "%d: %s", agent_result, agent_text);
        ck_assert_int_eq(requests, 1);
    }
}

int main(void) {
    timeout_s = 60;
    observer.log = count_requests;
    return run_tests("saving");
}
