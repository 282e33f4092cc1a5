/* frame_peer.h - one real agent, and a peer that speaks frames by hand, over real connections.
 *
 * The agent is rank 0 of two; the peer, rank 1, is the test. It says the HELLO that the agent
 * expects, so that what it does afterwards comes from somebody whom the agent has accepted.
 * Included once by each program.
 */
#ifndef FRAME_PEER_H
#define FRAME_PEER_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/peers/heartbeat.h"
#include "experiments.h"
#include "loopback.h"
#include "starling/starling.h"
#include "stream/stream.h"
#include "wire/checksum.h"
#include "wire/frame.h"
#include "world/fabric.h"

#ifndef FRAME_PEER_DIMENSION
#define FRAME_PEER_DIMENSION 8 /* of the model; 1,024 numbers are a part */
#endif
enum { D = FRAME_PEER_DIMENSION, ROUNDS = 3, WINDOW = 2, VALUES = 16, PART_BYTES = 4096 };

static sl_error error;
static sl_experiment *experiment;
static sl_agent *agent;
static sl_agent_counters counters;
static int agent_result;
static char agent_text[SL_ERROR_TEXT_MAX];
static sl_error agent_error; /* only if agent_result is not 0 */
static float last_model[D];
static atomic_bool gradient_waits;
static uint32_t data_come;        /* to the peer */
static uint32_t frames_come;      /* with numbers */
static float values_come[VALUES]; /* the first number of each */
static bool unsummed_come;        /* is the last one without a checksum? */
static uint64_t opened;           /* as its last READY says */
static char notices[8192];        /* of the agent */
static pthread_mutex_t noticing = PTHREAD_MUTEX_INITIALIZER;
static sl_standing agent_stands; /* as its last HELLO says */
static sl_heartbeat agent_says;  /* as its last HEARTBEAT says */
static double reconnect_s, timeout_s = 2, round_timeout_s = 600;
static uint32_t window_chunks = WINDOW, credit = 8; /* of the agent, beyond what came */
static sl_observer observer;                        /* beside its notices, which the test keeps */
static const sl_checkpoints *checkpoints; /* each 1,000 rounds, and when asked; NULL: none */
static bool checksums = true;             /* of what the agent sends */
static const char *memory = "off";        /* transport.memory */
static const char *on_loss = "stop";
static const sl_credentials *agents_key; /* NULL: it has none */
static double norm_limit;
static const char *more_of_algorithm = "";
static const char *topology = "{'nodes': 2, 'family': 'path'}";
static void (*comes_together)(
    uint64_t round); /* of the agent's task, in its gradient; NULL: none */

/* ---- the agent, on a thread of its own ---- */

static void initial(void *context, uint32_t rank, float *x) {
    for (int i = 0; i < D; i++)
        x[i] = 1;
}

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    while (atomic_load(&gradient_waits))
        usleep(1000);
    if (comes_together != NULL)
        comes_together(round);
    memcpy(last_model, x, sizeof last_model);
    return 0;
}

static sl_evaluation evaluate(void *context, const float *x) {
    memcpy(last_model, x, sizeof last_model);
    return (sl_evaluation){0};
}

static void on_notice(void *context, const char *text) {
    pthread_mutex_lock(&noticing);
    const size_t used = strlen(notices);
    snprintf(notices + used, sizeof notices - used, "%s\n", text);
    pthread_mutex_unlock(&noticing);
}

/* Has the agent said so? */
static inline bool is_noticed(const char *text) {
    pthread_mutex_lock(&noticing);
    const bool is = strstr(notices, text) != NULL;
    pthread_mutex_unlock(&noticing);
    return is;
}

static void *run(void *roster) {
    sl_error own;
    agent_result = sl_agent_run(agent, roster, &own);
    agent_error = own;
    snprintf(agent_text, sizeof agent_text, "%s", agent_result ? own.text : "");
    return NULL;
}

/* ---- the peer ---- */

typedef struct peer {
    sl_fabric *fabric;
    sl_connection *link;
    sl_pool *pool;
    bool connected, down, granted;
    uint8_t last[SL_FRAME_DIRECT_AT + PART_BYTES]; /* the last frame that came */
    size_t first_bytes, last_bytes, frames;
} peer;

static sl_connection *on_requested(void *context, const uint8_t *greeting, const char *from,
                                   char why[SL_GREETING_WHY_MAX]) {
    return NULL;
}

static void on_connected(void *context, void *owner) {
    ((peer *)context)->connected = true;
}

static void note_frame(const sl_frame *frame, const uint8_t *data) {
    sl_hello hello;
    if (frame->type == SL_FRAME_HELLO &&
        sl_hello_decode(&hello, data + SL_FRAME_HEADER_BYTES, frame->payload_bytes) == NULL)
        agent_stands = hello.standing;
    if (frame->type == SL_FRAME_READY)
        opened = frame->exchange;
    frames_come += sl_stream_numbers(frame->type);
    if (!sl_frame_is_data(frame) || frame->is_void)
        return;
    memcpy(&values_come[data_come % VALUES],
           data + (frame->type == SL_FRAME_DATA ? SL_FRAME_HEADER_BYTES : SL_FRAME_DIRECT_AT),
           sizeof(float));
    data_come++;
    unsummed_come = frame->unsummed;
}

static void on_received(void *context, void *owner, sl_buffer *buffer, size_t bytes) {
    peer *p = context;
    sl_frame frame;
    const bool direct = strcmp(experiment->device, "cpu") != 0;
    ck_assert_ptr_null(sl_frame_decode(&frame, buffer->data, bytes, sizeof p->last, direct));
    if (frame.type == SL_FRAME_HEARTBEAT) {
        ck_assert_ptr_null(sl_heartbeat_decode(&agent_says, buffer->data + SL_FRAME_HEADER_BYTES,
                                               frame.payload_bytes, 0, 2));
    } else if (frame.type != SL_FRAME_CREDIT) {
        memcpy(p->last, buffer->data, bytes);
        if (p->frames == 0)
            p->first_bytes = bytes;
        p->last_bytes = bytes;
        p->frames++;
        note_frame(&frame, buffer->data);
    }
    sl_buffer_release(buffer);
    if (!p->granted) {
        p->granted = true;
        sl_connection_grant(p->link, p->pool);
    }
}

static void on_sent(void *context, void *owner, uint32_t cookie) {}

static void on_down(void *context, void *owner, bool established, const char *reason) {
    ((peer *)context)->down = true;
}

static sl_fabric_settings local_fabric(peer *p, uint16_t port) {
    return (sl_fabric_settings){.provider = "tcp",
                                .address = loopback_address(port),
                                .context = p,
                                .requested = on_requested};
}

static bool poll_until(peer *p, const bool *flag, size_t frames) {
    for (int i = 0; i < 30000; i++) { /* half a minute: the machine may be loaded */
        sl_fabric_poll(p->fabric);
        if ((flag != NULL && *flag) || (flag == NULL && p->frames >= frames))
            return true;
        usleep(1000);
    }
    return false;
}

/* Until so many data frames have come in all. */
static inline void peer_take_data(peer *p, uint32_t count) {
    while (data_come < count && poll_until(p, NULL, p->frames + 1))
        ;
    ck_assert_uint_eq(data_come, count);
}

static void greet_properly(peer *p) {
    static const sl_connection_handlers handlers = {on_connected, on_received, on_sent, on_down};
    sl_fabric_settings settings = local_fabric(p, 0);
    EXPECT_WELL(sl_fabric_open(&p->fabric, &settings, &error));
    EXPECT_WELL(sl_connection_open(&p->link, p->fabric, &handlers, p, 16, &error));
    const sl_buffers buffers = {.vec = sl_vec_cpu(), .count = 8, .bytes = sizeof p->last};
    EXPECT_WELL(sl_pool_open(&p->pool, p->fabric, &buffers, NULL, &error));
    struct sockaddr_storage address = loopback_address(sl_agent_port(agent));
    uint8_t greeting[SL_GREETING_BYTES] = {0};
    memcpy(greeting, "starling", 8);
    memcpy(greeting + 8, &(uint32_t){1}, sizeof(uint32_t));
    EXPECT_WELL(sl_connection_dial(p->link, &address, greeting, &error));
    ck_assert(poll_until(p, &p->connected, 0));
}

static void peer_send_both(peer *p, const uint8_t *frame, size_t bytes, const void *payload,
                           size_t payload_bytes) {
    ck_assert_int_eq(sl_connection_send(p->link, frame, bytes, payload, payload_bytes, false, 0),
                     0);
    for (int i = 0; i < 20; i++) {
        sl_fabric_poll(p->fabric);
        usleep(1000);
    }
}

/* With what each frame says, and the sum of its payload, if none is given. */
static inline void peer_send_as(peer *p, sl_frame frame, const void *payload) {
    uint8_t header[SL_FRAME_DIRECT_AT] = {0};
    const bool is_direct = frame.type == SL_FRAME_DIRECT;
    frame.sender = 1;
    frame.view = 1;
    frame.credit = data_come + credit;
    frame.received = frames_come;
    if (!is_direct && frame.payload_sum == 0)
        frame.payload_sum = sl_checksum(payload, frame.payload_bytes);
    sl_frame_encode(&frame, header);
    peer_send_both(p, header, is_direct ? sizeof header : SL_FRAME_HEADER_BYTES, payload,
                   frame.payload_bytes);
}

static inline void peer_send_frame(peer *p, sl_frame_type type, uint64_t exchange,
                                   const void *payload, uint32_t bytes) {
    peer_send_as(p, (sl_frame){.type = type, .exchange = exchange, .payload_bytes = bytes},
                 payload);
}

/* A part whose numbers all are that. */
static inline void peer_send_value(peer *p, uint64_t exchange, float value) {
    float values[D];
    for (int i = 0; i < D; i++)
        values[i] = value;
    peer_send_frame(p, SL_FRAME_DATA, exchange, values, sizeof values);
}

static inline void send_direct(peer *p, uint64_t round, const float values[D]) {
    peer_send_as(
        p,
        (sl_frame){.type = SL_FRAME_DIRECT, .exchange = round, .payload_bytes = D * sizeof *values},
        values);
}

/* Says the HELLO that the agent wants to hear. */
static sl_hello own_hello(bool direct) {
    sl_hello hello = {.topology_hash = sl_topology_hash(experiment->topology),
                      .dimension = D,
                      .rounds = ROUNDS,
                      .seed = experiment->seed,
                      .chunk_bytes = experiment->transport.chunk_bytes,
                      .nodes = 2,
                      .section_count = SL_SECTION_COUNT,
                      .direct = direct,
                      .goes_on = experiment->membership.on_loss == SL_ON_LOSS_CONTINUE,
                      .standing = {.incarnation = 1, .credit = credit}};
    for (int i = 0; i < SL_SECTION_COUNT; i++)
        hello.sections[i] = sl_experiment_section_hash(experiment, (sl_section)i);
    return hello;
}

static void peer_say(peer *p, const sl_hello *hello) {
    uint8_t bytes[SL_HELLO_BYTES];
    sl_hello_encode(hello, bytes);
    peer_send_frame(p, SL_FRAME_HELLO, 0, bytes, sizeof bytes);
}

/* Any frame but HELLO says that it is in the agent's view: before, no data comes. */
static inline void peer_say_view(peer *p) {
    peer_send_frame(p, SL_FRAME_CREDIT, 0, NULL, 0);
}

/* Agrees with the agent. */
static inline void peer_agree(peer *p) {
    sl_hello hello = own_hello(strcmp(experiment->device, "cpu") != 0);
    peer_say(p, &hello);
    ck_assert(poll_until(p, NULL, 1));
    ck_assert_uint_ge(p->first_bytes, SL_FRAME_HEADER_BYTES + SL_HELLO_BYTES);
    peer_say_view(p);
}

/* Comes, and is accepted. */
static inline void peer_begin(peer *p) {
    greet_properly(p);
    peer_agree(p);
}

static uint64_t attempt; /* to connect */

/* Connects, and says HELLO as who has got so many of the agent's frames, and so much data. */
static inline void peer_come(peer *p, uint64_t incarnation, uint32_t frames, uint32_t data) {
    *p = (peer){0};
    greet_properly(p);
    sl_hello hello = own_hello(strcmp(experiment->device, "cpu") != 0);
    hello.standing = (sl_standing){.incarnation = incarnation,
                                   .knows = agent_stands.incarnation,
                                   .trains = agent_stands.incarnation != 0,
                                   .attempt = ++attempt,
                                   .credit = data + credit,
                                   .received = frames,
                                   .received_data = data};
    frames_come = frames;
    data_come = data;
    peer_say(p, &hello);
}

static inline void peer_say_bye(peer *p) {
    peer_send_frame(p, SL_FRAME_BYE, ROUNDS, NULL, 0);
}

/* The last frame ends the run, or the connection, and says why. */
static inline void peer_expect_abort(const peer *p, const char *why) {
    sl_frame frame;
    char text[SL_FRAME_TEXT_MAX + 1] = "";
    ck_assert_ptr_null(sl_frame_decode(&frame, p->last, p->last_bytes, sizeof p->last, false));
    ck_assert_int_eq(frame.type, SL_FRAME_ABORT);
    memcpy(text, p->last + SL_FRAME_HEADER_BYTES, frame.payload_bytes);
    ck_assert_msg(strstr(text, why) != NULL, "%s", text);
}

static void peer_close(peer *p) {
    sl_connection_close(&p->link);
    sl_fabric_poll(p->fabric);
    sl_pool_close(&p->pool);
    sl_fabric_close(&p->fabric);
}

/* ---- a meeting ---- */

typedef void (*meeting)(peer *p);

/* With the agent's vectors on `device`, and payloads straight from its memory and to it if
 * `direct`. */
static void meet_on(const char *device, bool direct, meeting behave) {
    experiment = experiment_of(
        "{'rounds': 3, 'topology': %s, 'optimizer': {'learning_rate': 0}, 'device': '%s', "
        "'algorithm': {'name': 'd-psgd'%s}, "
        "'membership': {'on_loss': '%s'}, 'checkpoint': {'every': %d}, 'transport': {'timeout_s': "
        "%g, 'round_timeout_s': %g, 'connect_timeout_s': 3, 'reconnect_s': %g, 'norm_limit': %g, "
        "'chunk_bytes': %d, 'window_chunks': %u, 'gpu_direct': '%s', 'checksums': %s, "
        "'memory': '%s'}}",
        topology, device, more_of_algorithm, on_loss, checkpoints != NULL ? 1000 : 0, timeout_s,
        round_timeout_s, reconnect_s, norm_limit, PART_BYTES, window_chunks, direct ? "on" : "off",
        checksums ? "true" : "false", memory);
    sl_agent_settings settings = {.experiment = experiment, .rank = 0, .host = "127.0.0.1"};
    settings.checkpoints = checkpoints;
    settings.credentials = agents_key;
    settings.meets = comes_together != NULL;
    settings.observer = observer;
    settings.observer.notice = on_notice;
    settings.task = (sl_task){.dimension = D,
                              .rounds = ROUNDS,
                              .initial = initial,
                              .gradient = gradient,
                              .evaluate = evaluate};
    EXPECT_WELL(sl_agent_open(&agent, &settings, &error));
    sl_roster *roster;
    EXPECT_WELL(sl_roster_parse(&roster, "127.0.0.1:10\n127.0.0.1:9\n", "roster", &error));
    pthread_t thread;
    frames_come = data_come = 0;
    opened = 0;
    notices[0] = '\0';
    pthread_create(&thread, NULL, run, roster);
    peer p = {0};
    behave(&p);
    pthread_join(thread, NULL);
    if (p.fabric != NULL)
        peer_close(&p);
    counters = sl_agent_counters_read(agent);
    sl_agent_close(&agent);
    sl_roster_close(&roster);
}

static inline void meet(meeting behave) {
    meet_on("cpu", false, behave);
}

static inline void expect_well_ended(float model) {
    ck_assert_msg(agent_result == 0, "%s", agent_text);
    ck_assert_float_eq_tol(last_model[0], model, 1e-6f);
}

/* The network reads and writes the device's memory beside its operations, which its guard would not
 * let it do. */
static inline void meet_direct(meeting behave) {
    unsetenv("STARLING_GUARD");
    meet_on("cuda:0", true, behave);
}

#endif
