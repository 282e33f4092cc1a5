/* fuzz_agent.c - an agent and whoever connects to it, over a network that is the input: HELLO, the
 * neighbour's protocol, visitors, DIRECT frames, memory of one host, and what they do to the run.
 * The fabric, the event loop, the worker and the clock are replaced by those below; all else is the
 * agent's own code.
 *
 * Agent 1 of a path 0 - 1 - 2: it dials 0, and 2 dials it. Each byte is something that happens:
 * somebody asks to connect, a frame comes - true, altered or raw -, a send ends, a connection goes
 * down, the gradient is there, time passes. The agent ends well or with an error; a payload does
 * not change before it has left, and a buffer is released once. */
#include "agent_world.h"

/* ---- what the others do ---- */

static sl_experiment *experiments[2]; /* payloads through the host; in DIRECT frames */
static sl_roster *roster;
static sl_hello true_hellos[2];
static sl_agent *the_agent;

enum { PER_PART = 1024, PARTS = (DIMENSION - 1) / PER_PART + 1 };

static void take_down(sl_connection *c) {
    if (c->down)
        return;
    c->down = true;
    c->handlers->down(the_fabric.settings.context, c->owner, c->established, "it was the input");
}

static buffer *free_buffer(sl_connection *c) {
    if (!c->first_used)
        return &c->first;
    for (uint32_t i = 0; c->pool != NULL && i < c->pool->count; i++)
        if (!c->pool->buffers[i].held)
            return &c->pool->buffers[i];
    return NULL;
}

static void deliver(sl_connection *c, const uint8_t *message, size_t bytes) {
    buffer *b = free_buffer(c);
    if (c->down || b == NULL)
        return;
    const size_t room = b == &c->first ? (size_t)SL_FIRST_MESSAGE_MAX : c->pool->bytes,
                 rest = b == &c->first ? 0 : c->pool->rest_bytes,
                 head = bytes < room ? bytes : room;
    if (bytes > room + rest) {
        take_down(c);
        return;
    }
    memcpy(b->base.data, message, head);
    if (bytes > head)
        memcpy(b->base.rest, message + head, bytes - head);
    c->first_used = b->held = true;
    c->handlers->received(the_fabric.settings.context, c->owner, &b->base, bytes);
}

/* A frame with right checksums. Where the payload goes to a device, its place is further back. */
static void deliver_frame(sl_connection *c, sl_frame frame, const void *payload, size_t bytes) {
    static _Alignas(64) uint8_t message[MESSAGE_MAX];
    const size_t at = frame.type == SL_FRAME_DIRECT ? SL_FRAME_DIRECT_AT : SL_FRAME_HEADER_BYTES;
    if (frame.received == 0)
        frame.received = (uint32_t)got[c->peer].frames;
    frame.view += the_agent->side.now.view;
    frame.payload_bytes = (uint32_t)bytes;
    frame.payload_sum = bytes > 0 ? sl_checksum(payload, bytes) : 0;
    memset(message, 0, at);
    sl_frame_encode(&frame, message);
    if (bytes > 0)
        memcpy(message + at, payload, bytes);
    deliver(c, message, at + bytes);
}

static sl_neighbour *neighbour_of(const sl_connection *c) {
    return sl_agent_neighbour(the_agent, c->peer);
}

/* ---- memory of one host ---- */

static sl_arena *arenas[NODES + 1];      /* of each of the others */
static sl_mailbox *mailboxes[NODES + 1]; /* for the agent's */

static void open_memory(void) {
    sl_error error;
    for (uint32_t rank = 0; shares && rank <= NODES; rank++) {
        mailboxes[rank] = sl_mailbox_open(NULL);
        assert(mailboxes[rank] != NULL &&
               sl_arena_open(&arenas[rank], PARTS * PER_PART * sizeof(float), &error) == 0);
    }
}

static void close_memory(void) {
    for (uint32_t rank = 0; rank <= NODES; rank++) {
        sl_mailbox_close(&mailboxes[rank]);
        sl_arena_close(&arenas[rank]);
    }
}

static void lend(sl_connection *c, bool altered) {
    uint8_t payload[SL_OFFER_BYTES];
    char why[SL_ARENA_WHY_MAX];
    sl_memory_offer offer;
    if (!sl_arena_post(arenas[c->peer], &c->mailbox, &offer, why))
        offer = (sl_memory_offer){0};
    sl_offer_encode(&offer, payload);
    if (altered)
        payload[next() % sizeof payload] ^= next();
    deliver_frame(c, (sl_frame){.type = SL_FRAME_OFFER}, payload, sizeof payload);
}

/* The part is in its sender's memory. */
static void deliver_reference(sl_connection *c, sl_frame frame, const void *payload, size_t bytes,
                              bool altered) {
    uint8_t text[SL_REFERENCE_BYTES];
    const sl_reference r = {frame.part % PARTS * PER_PART * sizeof(float), bytes};
    memcpy(sl_arena_memory(arenas[c->peer]) + r.offset, payload, bytes);
    sl_reference_encode(&r, text);
    if (altered)
        text[next() % sizeof text] ^= next();
    frame.type = SL_FRAME_REF;
    deliver_frame(c, frame, text, sizeof text);
}

static void lend_and_answer(sl_connection *c) {
    c->lent = true;
    lend(c, false);
    deliver_frame(c, (sl_frame){.type = SL_FRAME_MEMORY, .step = 8}, NULL, 0);
}

static void act_on_memory(sl_connection *c, uint8_t what) {
    const bool altered = what & 4;
    if (!shares)
        return;
    if (what & 1)
        lend(c, altered);
    else
        deliver_frame(c, (sl_frame){.type = SL_FRAME_MEMORY, .step = altered ? next() : 8}, NULL,
                      0);
}

/* An honest one goes on where the agent stands. */
static void say_hello(sl_connection *c, bool altered) {
    uint8_t bytes[SL_HELLO_BYTES + UINT8_MAX];
    size_t size = SL_HELLO_BYTES;
    sl_hello hello = true_hellos[direct];
    const sl_neighbour *n = neighbour_of(c);
    hello.standing = (sl_standing){.incarnation = 1 + c->peer,
                                   .knows = the_agent->side.incarnation,
                                   .attempt = n != NULL ? n->process.attempt + 1 : 1,
                                   .credit = got[c->peer].data + 16,
                                   .received = got[c->peer].frames,
                                   .received_data = got[c->peer].data};
    if (shares)
        hello.standing.mailbox = sl_mailbox_name_of(mailboxes[c->peer]);
    if (n != NULL && n->process.incarnation == hello.standing.incarnation) {
        c->exchange = n->stream.received.data / PARTS;
        c->part = n->stream.received.data % PARTS;
    }
    sl_hello_encode(&hello, bytes);
    if (altered) {
        bytes[next() % SL_HELLO_BYTES] ^= next();
        for (size_t text = next() % 2 * next(); text > 0; text--)
            bytes[size++] = next();
    }
    deliver_frame(c, (sl_frame){.type = SL_FRAME_HELLO, .sender = c->peer}, bytes, size);
}

static void send_part(sl_connection *c, bool altered) {
    static float payload[DIMENSION];
    size_t count = c->part + 1 < PARTS ? PER_PART : DIMENSION - PER_PART * (PARTS - 1);
    sl_frame frame = {.type = direct ? SL_FRAME_DIRECT : SL_FRAME_DATA};
    frame.exchange = 1 + c->exchange;
    frame.part = c->part++;
    frame.credit = 1000;
    if (c->part == PARTS) {
        c->part = 0;
        c->exchange++;
    }
    if (altered) {
        frame.exchange += (uint64_t)(int64_t)(int8_t)next();
        frame.part ^= next();
        frame.step = next();
        frame.scalar = next();
        frame.credit = (uint32_t)next() << next() % 32;
        frame.received = next();
        frame.asks = next() & 1;
        frame.is_void = next() % 16 == 0;
        frame.view = next() % 8 == 0;
        count = count * next() / 255;
        payload[next()] = (int8_t)next() / 4.0f;
        count = frame.is_void ? 0 : count;
    }
    const sl_neighbour *n = neighbour_of(c);
    if (shares && !frame.is_void && n != NULL && n->link.borrows)
        deliver_reference(c, frame, payload, count * sizeof(float), altered);
    else
        deliver_frame(c, frame, payload, count * sizeof(float));
}

static void send_control(sl_connection *c) {
    static const sl_frame_type types[] = {SL_FRAME_CREDIT, SL_FRAME_HEARTBEAT, SL_FRAME_BYE,
                                          SL_FRAME_ABORT};
    uint8_t text[256];
    sl_frame frame = {.type = types[next() % 4], .sender = c->peer, .credit = next()};
    const size_t bytes = frame.type == SL_FRAME_ABORT       ? next()
                         : frame.type == SL_FRAME_HEARTBEAT ? SL_HEARTBEAT_BYTES
                                                            : 0;
    for (size_t i = 0; i < bytes; i++)
        text[i] = next();
    deliver_frame(c, frame, text, bytes);
}

static void send_raw(sl_connection *c) {
    uint8_t message[SL_FIRST_MESSAGE_MAX + 64];
    const size_t bytes = (next() | (size_t)next() << 8) % sizeof message;
    for (size_t i = 0; i < bytes; i++)
        message[i] = next();
    deliver(c, message, bytes);
}

static void complete_send(sl_connection *c) {
    if (c->sending == 0)
        return;
    const sending oldest = c->sends[0];
    memmove(c->sends, c->sends + 1, --c->sending * sizeof oldest);
    if (c->down)
        return;
    got[c->peer].frames += oldest.numbered;
    got[c->peer].data += oldest.data;
    if (!oldest.data)
        return;
    assert(sl_checksum(oldest.payload, oldest.bytes) == oldest.sum);
    c->handlers->sent(the_fabric.settings.context, c->owner, oldest.cookie);
}

static void establish(sl_connection *c) {
    if (c->down || c->established)
        return;
    c->established = true;
    c->handlers->connected(the_fabric.settings.context, c->owner);
}

static void request(uint8_t how) {
    const sl_passage other = {.from = how % 4, /* 2, the neighbour, or another */
                              .to = how < 240 ? RANK : how % 4};
    uint8_t greeting[SL_GREETING_BYTES];
    sl_greeting_write(&other, NULL, greeting);
    if (how == 255)
        greeting[0] = 0;
    char why[SL_GREETING_WHY_MAX];
    sl_connection *c =
        the_fabric.settings.requested(the_fabric.settings.context, greeting, "somewhere", why);
    if (c != NULL) {
        c->peer = how % 4;
        c->known = true;
    }
}

/* ---- what the task does together with the others ---- */

typedef struct task {
    bool calls;
    int met; /* what it has met for: sums may follow */
    float x[DIMENSION];
    double numbers[2];
} task;
static task the_task;

static void call(void) {
    const uint8_t what = next();
    if (!meets || !the_worker.busy || the_task.calls)
        return;
    sl_call given = {.kind = SL_CALL_MEET,
                     .round = the_worker.job.compute ? the_worker.job.compute_round : 0,
                     .purpose = what & 2 ? SL_MEET_END : SL_MEET_SUM};
    if (the_task.met == SL_MEET_SUM && what & 1)
        given = (sl_call){
            .kind = SL_CALL_SUM,
            .share = {the_task.x, DIMENSION - (what & 4) * 100, the_task.numbers, what & 2, 3}};
    the_task.calls = true;
    sl_calls_give(&the_agent->calls, &given);
    the_loop.last(the_loop.context);
}

/* Is the task through with this job, as far as its call goes? */
static bool may_finish(void) {
    sl_calls *c = &the_agent->calls;
    if (!the_task.calls)
        return true;
    if (!c->desk.answered)
        return false;
    the_task.calls = false;
    if (c->desk.call.kind == SL_CALL_MEET)
        the_task.met = c->desk.answer;
    return c->desk.answer == 0 || c->desk.answer == SL_MEET_END;
}

static uint32_t link_of(const sl_connection *c) {
    const sl_tree_position *place = &the_agent->calls.place;
    uint32_t link = 0;
    while (link < place->link_count && place->links[link]->rank != c->peer)
        link++;
    return link;
}

/* The next part that this neighbour was asked for. */
static void send_asked(sl_connection *c) {
    static const double zeros[DIMENSION];
    const sl_reduce *r = &the_agent->calls.reduce;
    const uint32_t link = link_of(c);
    if (!r->active || link == r->place->link_count ||
        r->links[link].received >= r->links[link].asked)
        return;
    const uint32_t part = r->links[link].received;
    const bool numbers = part >= r->vector_parts;
    const size_t from = (part - (numbers ? r->vector_parts : 0)) * r->part_numbers,
                 rest = (numbers ? r->share.number_count : r->share.count) - from,
                 count = rest < r->part_numbers ? rest : r->part_numbers,
                 bytes = link < r->place->child_count || numbers ? 8 : 4;
    deliver_frame(
        c, (sl_frame){.type = SL_FRAME_SUM, .exchange = r->number, .part = part, .credit = 1000},
        zeros, count * bytes);
}

/* What an honest neighbour does: comes where the agent came, asks for all parts, sends what it was
 * asked for. */
static void do_together(sl_connection *c) {
    const sl_calls *calls = &the_agent->calls;
    sl_frame frame = {.type = SL_FRAME_BARRIER,
                      .exchange = calls->current.round,
                      .part = c->peer,
                      .step = SL_MEET_SUM + (next() & 1),
                      .credit = 1000};
    if (calls->attendance.coming && c->met <= calls->attendance.met) {
        c->met = calls->attendance.met + 1;
        deliver_frame(c, frame, NULL, 0);
    } else if (calls->reduce.active) {
        frame.type = SL_FRAME_SUM_CREDIT;
        frame.exchange = calls->reduce.number;
        frame.part = calls->reduce.parts;
        const uint32_t link = link_of(c);
        frame.step = link < calls->place.link_count ? calls->reduce.links[link].sent : 0;
        deliver_frame(c, frame, NULL, 0);
        send_asked(c);
    }
}

/* Anything. */
static void send_call(sl_connection *c) {
    static const sl_frame_type types[] = {SL_FRAME_BARRIER, SL_FRAME_SUM_CREDIT, SL_FRAME_SUM,
                                          SL_FRAME_CHECKPOINT, SL_FRAME_READY};
    static double payload[256];
    sl_frame frame = {.type = types[next() % 5], .credit = 1000};
    frame.exchange = next();
    frame.part = next() - 1u;
    frame.step = next() % 4;
    payload[0] = next();
    deliver_frame(c, frame, payload, frame.type == SL_FRAME_SUM ? next() * sizeof *payload : 0);
}

static void act_together(uint8_t how) {
    sl_connection *c = the_fabric.list[how % CONNECTIONS_MAX];
    const bool is_open = c != NULL && c->known && !c->closed;
    if (how < 128)
        call();
    else if (how < 224 && is_open && meets && the_agent->calls.open)
        do_together(c);
    else if (how >= 224 && is_open)
        send_call(c);
}

static void finish_job(void) {
    if (!the_worker.busy || !may_finish())
        return;
    the_worker.done = true;
    the_loop.worker(the_loop.context);
}

/* Everybody does what an honest one would. */
static void go_on(void) {
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        sl_connection *c = the_fabric.list[i];
        if (c == NULL || c->down)
            continue;
        if (!c->established)
            establish(c);
        else if (!c->first_used)
            say_hello(c, false);
        else if (shares && !c->lent)
            lend_and_answer(c);
        else if (c->exchange < ROUNDS)
            send_part(c, false);
        else
            deliver_frame(c, (sl_frame){.type = SL_FRAME_BYE}, NULL, 0);
        while (c->sending > 0)
            complete_send(c);
        if (meets)
            do_together(c);
    }
    finish_job();
}

static void act_on(sl_connection *c, uint8_t what) {
    switch (what % 10) {
    case 0:
        establish(c);
        break;
    case 1:
        say_hello(c, false);
        break;
    case 2:
        say_hello(c, true);
        break;
    case 3:
        send_part(c, false);
        break;
    case 4:
        send_part(c, true);
        break;
    case 5:
        send_control(c);
        break;
    case 6:
        send_raw(c);
        break;
    case 7:
        take_down(c);
        break;
    case 8:
        complete_send(c);
        break;
    case 9:
        c->peer = next() % NODES;
        break;
    }
}

static void act(void) {
    const uint8_t what = next(), how = next();
    sl_connection *c = the_fabric.list[how % CONNECTIONS_MAX];
    if (what < 120) {
        if (c != NULL && c->known && !c->closed)
            act_on(c, what);
    } else if (what < 150) {
        request(how);
    } else if (what < 180) {
        now_s += how / 32.0;
        the_loop.tick(the_loop.context);
    } else if (what < 190) {
        finish_job();
    } else if (what < 200) {
        act_together(how);
    } else if (what < 250) {
        go_on();
    } else if (c != NULL && c->known && !c->closed) {
        act_on_memory(c, what);
    }
}

int sl_fabric_poll(sl_fabric *fabric) {
    free_closed();
    if (in.left > 0) {
        act();
        return 1;
    }
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (the_fabric.list[i] != NULL)
            take_down(the_fabric.list[i]);
    return 0;
}

/* ---- the run ---- */

static void initial(void *context, uint32_t rank, float *x) {
    for (int i = 0; i < DIMENSION; i++)
        x[i] = (float)rank;
}

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    return 0;
}

static sl_evaluation evaluate(void *context, const float *x) {
    return (sl_evaluation){0};
}

static void notice(void *context, const char *text) {
    assert(text[0] != '\0' && strlen(text) < SL_ERROR_TEXT_MAX + 512);
}

static sl_agent_settings settings = {
    .task = {.dimension = DIMENSION,
             .rounds = ROUNDS,
             .initial = initial,
             .gradient = gradient,
             .evaluate = evaluate},
    .rank = RANK,
    .host = "127.0.0.1",
    .observer = {.notice = notice},
};

static void prepare(bool to_device) {
    const char *set[] = {"device=cuda:0", "transport.gpu_direct=on"};
    static const char text[] =
        "{\"rounds\": 3, \"topology\": {\"nodes\": 3, \"family\": \"path\"},"
        " \"transport\": {\"chunk_bytes\": 4096, \"timeout_s\": 5, \"connect_timeout_s\": 5},"
        " \"membership\": {\"on_loss\": \"stop\"}}";
    sl_experiment **e = &experiments[to_device];
    sl_error error;
    if (sl_experiment_parse(e, text, "input", "/nowhere", set, to_device ? 2 : 0, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    sl_hello *hello = &true_hellos[to_device];
    *hello = (sl_hello){.topology_hash = sl_topology_hash((*e)->topology),
                        .dimension = DIMENSION,
                        .rounds = ROUNDS,
                        .seed = (*e)->seed,
                        .chunk_bytes = (*e)->transport.chunk_bytes,
                        .nodes = NODES,
                        .section_count = SL_SECTION_COUNT,
                        .direct = to_device,
                        .goes_on = (*e)->membership.on_loss == SL_ON_LOSS_CONTINUE};
    for (int i = 0; i < SL_SECTION_COUNT; i++)
        hello->sections[i] = sl_experiment_section_hash(*e, (sl_section)i);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    sl_error error;
    prepare(false);
    prepare(true);
    const char *text = "127.0.0.1:7000\n127.0.0.1:7001\n127.0.0.1:7002\n";
    assert(sl_roster_parse(&roster, text, "roster", &error) == 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    direct = data[0] & 1;
    settings.meets = meets = data[0] & 2;
    shares = data[0] & 4 && !direct;
    the_task = (task){0};
    settings.experiment = experiments[direct];
    in = (input){data + 1, size - 1};
    now_s = 1000;
    memset(got, 0, sizeof got);
    open_memory();
    sl_agent *agent;
    sl_error error;
    if (sl_agent_open(&agent, &settings, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    the_agent = agent;
    if (sl_agent_run(agent, roster, &error) != 0)
        assert(error.text[0] != '\0' && memchr(error.text, '\0', sizeof error.text) != NULL);
    in.left = 0;
    sl_agent_close(&agent);
    close_memory();
    return 0;
}
