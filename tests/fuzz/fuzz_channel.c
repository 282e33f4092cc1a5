/* fuzz_channel.c - somebody on the way between two agents that have the run's key: what they send
 * each other is the input's to repeat, alter, reorder, cut, send back, leave out or put in between,
 * from the first byte of their handshake on. What passes is what the other side has sent, whole and
 * in order; before the proof, nothing does.
 *
 * The first byte says whether all frames are sealed, and whether the two have proved themselves
 * already. Each byte after it is something that happens, and may take the bytes behind it. */
#include "../unit/channel_pair.h"

static const sl_passage passage = {.run_id = 1, .from = 1, .to = 0, .incarnation = 2};
static pair p;
static message held;                   /* one that came by */
static uint32_t sent[2], passed_on[2]; /* true frames of each side */

static uint8_t take_byte(const uint8_t **at, const uint8_t *end) {
    return *at < end ? *(*at)++ : 0;
}

/* Each frame says its number, in its length too. */
static void send_true(int from) {
    uint8_t payload[64];
    const size_t bytes = sent[from] % sizeof payload;
    memset(payload, (int)sent[from], sizeof payload);
    if (sl_channel_is_ready(p.ends[from].channel) &&
        send_frame(&p, from, SL_FRAME_ABORT, payload, bytes) == 0)
        sent[from]++;
    sl_sealed_buffers_give_all(&p.ends[from].guard.envelopes, p.ends[from].channel);
}

static void check_true(int to, const message *m, const sl_frame *frame) {
    const int from = 1 - to;
    if (!p.ends[to].guard.seals && passed_on[from] > 0)
        return; /* only HELLO is sealed */
    const uint32_t number = passed_on[from]++;
    assert(number < sent[from] && frame->type == SL_FRAME_ABORT);
    assert(frame->sender == (uint32_t)from && frame->payload_bytes == number % 64);
    for (uint32_t i = 0; i < frame->payload_bytes; i++)
        assert(m->data[SL_FRAME_HEADER_BYTES + i] == (uint8_t)number);
}

/* False: the connection is of no use any more. */
static bool deliver(int to, message m) {
    sl_frame frame;
    const bool ready = sl_channel_is_ready(p.ends[to].channel);
    const sl_passed passed = give(&p, to, &m, &frame);
    assert(ready ? passed != SL_PASSED_HANDSHAKE : passed != SL_PASSED);
    if (passed == SL_PASSED)
        check_true(to, &m, &frame);
    return passed == SL_PASSED || passed == SL_PASSED_HANDSHAKE;
}

static void alter(message *m, const uint8_t **at, const uint8_t *end) {
    const size_t place = take_byte(at, end) | (size_t)take_byte(at, end) << 8;
    if (m->bytes > 0)
        m->data[place % m->bytes] ^= (uint8_t)(1u << take_byte(at, end) % 8);
}

static message made_up(int to, uint8_t kind, const uint8_t **at, const uint8_t *end) {
    const size_t rest = (size_t)(end - *at), wanted = take_byte(at, end);
    const size_t bytes = wanted < rest ? wanted : 0;
    message m = plain_frame((sl_frame_type)(kind % SL_FRAME_TYPE_END), (uint32_t)(1 - to), *at,
                            kind % 3 == 0 ? 0 : bytes);
    if (kind % 2 == 1)
        sl_frame_seal(m.data, kind % 4 == 1);
    *at += bytes;
    return m;
}

/* The attacker's turn; false: a connection has ended. */
static bool act(uint8_t what, const uint8_t **at, const uint8_t *end) {
    const int from = what & 1, to = 1 - from;
    sl_connection *c = &p.ends[from].connection;
    switch (what >> 1 & 15) {
    case 0:
    case 1:
        send_true(from);
        return true;
    case 2:
        return c->count == 0 || deliver(to, pop_message(&p.ends[from]));
    case 3: /* altered */
        if (c->count > 0)
            alter(&c->queue[0], at, end);
        return true;
    case 4: /* to be sent later */
        if (c->count > 0)
            held = c->queue[0];
        return true;
    case 5:
        return deliver(to, held);
    case 6: /* left out */
        if (c->count > 0)
            pop_message(&p.ends[from]);
        return true;
    case 7: /* cut or longer */
        if (c->count > 0)
            c->queue[0].bytes = take_byte(at, end) | (what >> 5) << 8;
        return true;
    case 8: /* sent back */
        return c->count == 0 || deliver(from, pop_message(&p.ends[from]));
    case 9: /* reordered */
        if (c->count > 1)
            c->queue[c->count - 1] = c->queue[0];
        return true;
    case 10:
        return deliver(to, made_up(to, take_byte(at, end), at, end));
    case 11:
        p.now_s += 3600;
        return true;
    case 12:
        c->full = !c->full;
        return true;
    default:
        sl_channel_flush(p.ends[from].channel);
        return true;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static sl_credentials *key;
    if (key == NULL)
        key = make_run_key();
    if (size < 1)
        return 0;
    const uint8_t *end = data + size, first = *data++;
    memset(sent, 0, sizeof sent);
    memset(passed_on, 0, sizeof passed_on);
    held = (message){0};
    for (int i = 0; i < 2; i++)
        open_end(&p.ends[i], key, NULL, first % 2 == 0, &passage, i == 0);
    if (first & 2)
        assert(meet(&p));
    else
        sl_channel_begin(p.ends[0].channel);
    while (data < end && act(*data++, &data, end))
        ;
    close_pair(&p);
    return 0;
}
