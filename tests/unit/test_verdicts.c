/* test_verdicts.c - one real agent that goes on without a lost peer, against a peer that is
 * accepted, and sends what makes no sense: that costs the peer its place, and nobody the run. Or it
 * has the key, and makes no sense from its first frame on. */
#include "agent/peers/channel.h"
#include "frame_peer.h"
#include "secure_pairs.h"

static void expect_why(peer *p, const char *why) {
    ck_assert(poll_until(p, &p->down, 0));
    peer_expect_abort(p, why);
}

static void send_too_little(peer *p) {
    peer_begin(p);
    const float values[D - 1] = {3};
    peer_send_frame(p, SL_FRAME_DATA, 1, values, sizeof values);
    expect_why(p, "no identity payload");
}

/* Its process is not taken back. */
static void come_again(peer *p) {
    atomic_store(&gradient_waits, true);
    send_too_little(p);
    peer_close(p);
    *p = (peer){0};
    greet_properly(p);
    sl_hello hello = own_hello(false);
    hello.standing.attempt = 2;
    peer_say(p, &hello);
    expect_why(p, "makes no sense");
    atomic_store(&gradient_waits, false);
}

static void send_a_huge_part(peer *p) {
    peer_begin(p);
    const float values[D] = {1e6f};
    peer_send_frame(p, SL_FRAME_DATA, 1, values, sizeof values);
    expect_why(p, "has a norm of 1e+06, over 100 times the own part's (transport.norm_limit)");
}

/* It is needed still, and sends nothing more: it counts as lost, and its connection is whole. */
static void say_bye_early(peer *p) {
    sl_frame last = {0};
    peer_begin(p);
    peer_send_frame(p, SL_FRAME_BYE, 0, NULL, 0);
    do
        ck_assert_ptr_null(sl_frame_decode(&last, p->last, p->last_bytes, PART_BYTES, false));
    while (last.type != SL_FRAME_BYE && poll_until(p, NULL, p->frames + 1));
    ck_assert_int_eq(last.type, SL_FRAME_BYE);
}

static const struct {
    meeting behave;
    double norm_limit;
    const char *more; /* of the algorithm */
} peers[] = {{come_again, 0, ""},
             {send_a_huge_part, 100, ""},
             {send_a_huge_part, 100, ", 'staleness': 1"},
             {say_bye_early, 0, ""}};

START_LOOP_TEST(who_makes_no_sense_is_lost_and_the_run_goes_on, sizeof peers / sizeof *peers) {
    on_loss = "continue";
    norm_limit = peers[_i].norm_limit;
    more_of_algorithm = peers[_i].more;
    timeout_s = 30; /* none of them is silent */
    meet(peers[_i].behave);
    expect_well_ended(1);
}

/* ---- who has the key, and says something wrong first: fault_world has what it says later ---- */

static sl_guard guard;
static sl_channel *channel;
static const sl_passage passage = {.from = 1, .incarnation = 5};

static size_t prove(void *context, const uint8_t *greeting, const uint8_t *challenge, bool dials,
                    uint8_t *out) {
    const sl_exchange exchange = {greeting, challenge, passage.run_id};
    return sl_proof_make(&exchange, guard.credentials, dials, out);
}

static bool accepts(void *context, const uint8_t *greeting, const uint8_t *challenge, bool dialed,
                    const uint8_t *proof, size_t bytes, char *reason) {
    return true;
}

static void on_let_in(void *context, void *owner) {
    sl_channel_begin(channel);
}

static void on_handshake(void *context, void *owner, sl_buffer *buffer, size_t bytes) {
    peer *p = context;
    sl_frame frame;
    const char *wrong;
    if (!p->connected)
        sl_channel_take(channel, buffer->data, bytes, 0, false, 0, &frame, &wrong);
    sl_buffer_release(buffer);
    p->connected = sl_channel_is_ready(channel);
    sl_connection_receive_again(p->link);
}

/* Its first frame after the proof, which costs it its connection. */
static void begin_with(peer *p, sl_frame_type type, uint32_t sender, uint64_t incarnation) {
    static const sl_connection_handlers handlers = {on_let_in, on_handshake, on_sent, on_down};
    const sl_hello hello = {.standing = {.incarnation = incarnation}};
    const struct sockaddr_storage address = loopback_address(sl_agent_port(agent));
    uint8_t greeting[SL_GREETING_BYTES], said[SL_FRAME_HEADER_BYTES + SL_HELLO_BYTES];
    uint8_t *payload = said + SL_FRAME_HEADER_BYTES;
    sl_frame frame = {.type = type, .sender = sender, .payload_bytes = SL_HELLO_BYTES};
    p->connected = p->down = false;
    ck_assert(sl_greeting_write(&passage, guard.credentials, greeting));
    EXPECT_WELL(sl_connection_open(&p->link, p->fabric, &handlers, NULL, 4, &error));
    EXPECT_WELL(sl_channel_open(&channel, &guard, p->link, &passage, true, &error));
    EXPECT_WELL(sl_connection_dial(p->link, &address, greeting, &error));
    ck_assert(poll_until(p, &p->connected, 0));
    sl_hello_encode(&hello, payload);
    frame.payload_sum = sl_checksum(payload, SL_HELLO_BYTES);
    sl_frame_encode(&frame, said);
    ck_assert_int_eq(sl_channel_send(channel, p->link, 0, said, sizeof said, NULL, 0, false), 0);
    ck_assert(poll_until(p, &p->down, 0));
    sl_connection_close(&p->link);
    sl_channel_close(&channel);
}

static void begin_wrongly(peer *p) {
    sl_fabric_settings settings = local_fabric(p, 0);
    settings.gate = (sl_gate){.proves = true, .prove = prove, .accepts = accepts};
    EXPECT_WELL(sl_fabric_open(&p->fabric, &settings, &error));
    begin_with(p, SL_FRAME_HELLO, 0, passage.incarnation);
    begin_with(p, SL_FRAME_HELLO, 1, passage.incarnation + 1);
    begin_with(p, SL_FRAME_ABORT, 1, passage.incarnation);
    begin_with(p, SL_FRAME_BYE, 1, passage.incarnation);
}

START_TEST(who_has_the_key_begins_with_its_own_hello) {
    sl_credentials *key = make_run_key();
    agents_key = key;
    sl_guard_open(&guard, key, false);
    meet(begin_wrongly);
    ck_assert(is_noticed("calls itself agent 1 was refused: HELLO names another sender"));
    ck_assert(is_noticed("HELLO names another incarnation than its greeting"));
    ck_assert(is_noticed("it did not begin with HELLO"));
    ck_assert(strstr(agent_text, "did not come up") != NULL);
    sl_guard_close(&guard);
    sl_credentials_close(&key);
}
