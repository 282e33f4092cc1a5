/* fuzz_provider.c - whoever connects to an agent's port, has the port that it dials, or is on the
 * way: what they say before there is a connection, and heads of messages after it. The kernel is
 * the input's: what comes in which pieces, what breaks, when there is room.
 *
 * Each byte is something that happens, and may take the bytes behind it. Held: a connection is
 * reported only after both sides' proofs, where there are proofs; each send and receive that was
 * posted ends once, or with its endpoint; what is received is what came, message by message, and
 * begins with a head that says its length. */
#include <stdlib.h>

#include "fake_sockets.h"
#include "provider/provider.h"
#include "wire/frame.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

enum { ENDPOINTS = 4, OPERATIONS = 24, ROOM = 256, PROOF_BYTES = 5, SENT = 96 };

typedef struct operation_of {
    struct fi_context2 context; /* first: queues name it */
    bool posted, receives;
    struct end *end;
    size_t bytes;
    uint8_t memory[ROOM];
} operation_of;

typedef struct end {
    struct fid_ep *fid; /* NULL: free */
    fake *socket;       /* NULL: it is not connected yet */
    bool connected, over;
    size_t at; /* in the socket's log: the next message */
    operation_of operations[OPERATIONS];
} end;

static const uint8_t proof[PROOF_BYTES] = "true";
static const uint8_t *input, *input_end;
static bool proves;
static unsigned proved; /* times that a proof was right */
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_pep *listener;
static end ends[ENDPOINTS];

static uint8_t take_byte(void) {
    return input < input_end ? *input++ : 0;
}

/* ---- who may connect ---- */

static bool admits(void *context, const uint8_t *greeting, char why[SL_GREETING_WHY_MAX]) {
    strcpy(why, "the input says so");
    return greeting[0] % 4 != 0;
}

static size_t prove(void *context, const uint8_t *greeting, const uint8_t *challenge, bool dials,
                    uint8_t out[SL_PROOF_BYTES_MAX]) {
    memcpy(out, proof, sizeof proof);
    return greeting[1] % 8 == 7 ? 0 : sizeof proof;
}

static bool accepts(void *context, const uint8_t *greeting, const uint8_t *challenge, bool dialed,
                    const uint8_t *said, size_t bytes, char why[SL_GREETING_WHY_MAX]) {
    strcpy(why, "its proof is wrong");
    const bool right = bytes == sizeof proof && memcmp(said, proof, bytes) == 0;
    proved += right;
    return right;
}

static void refused(void *context, const uint8_t *greeting, const struct sockaddr_storage *from,
                    const char *why) {
    assert(from->ss_family == AF_INET && strlen(why) < SL_GREETING_WHY_MAX);
}

/* ---- this side ---- */

static void post(end *e, bool receives, size_t bytes) {
    operation_of *o = e->operations;
    while (o < e->operations + OPERATIONS && o->posted)
        o++;
    if (o == e->operations + OPERATIONS)
        return;
    o->receives = receives;
    o->bytes = bytes;
    o->end = e;
    const size_t first = bytes / 3;
    const struct iovec iov[2] = {{o->memory, first}, {o->memory + first, bytes - first}};
    const struct fi_msg m = {.msg_iov = iov, .iov_count = 2, .context = &o->context};
    o->posted = true;
    const ssize_t result = receives ? fi_recvmsg(e->fid, &m, 0) : fi_sendmsg(e->fid, &m, 0);
    o->posted = result == 0;
}

static end *open_end(struct fi_info *info) {
    end *e = ends;
    while (e < ends + ENDPOINTS && e->fid != NULL)
        e++;
    if (e == ends + ENDPOINTS || fi_endpoint(domain, info, &e->fid, e) != 0)
        return NULL;
    e->socket = NULL;
    e->connected = e->over = false;
    assert(fi_enable(e->fid) == 0);
    post(e, true, ROOM);
    return e;
}

static void close_end(end *e) {
    if (e->fid == NULL)
        return;
    assert(fi_close(&e->fid->fid) == 0);
    e->fid = NULL;
}

static void dial(void) {
    const struct sockaddr_in to = {.sin_family = AF_INET};
    struct sockaddr_storage address = {0};
    uint8_t greeting[SL_GREETING_BYTES];
    memcpy(&address, &to, sizeof to);
    struct fi_info *info = sl_provider_info(&address);
    assert(info != NULL);
    for (size_t i = 0; i < sizeof greeting; i++)
        greeting[i] = i < 2 ? take_byte() : (uint8_t)i;
    end *e = open_end(info);
    if (e != NULL && fi_connect(e->fid, &address, greeting, sizeof greeting) == 0)
        e->socket = fake_of(last_dialed);
    fi_freeinfo(info);
}

static void answer_request(struct fi_eq_cm_entry *entry) {
    end *e = take_byte() % 4 != 0 ? open_end(entry->info) : NULL;
    const struct sockaddr_in *from = entry->info->dest_addr;
    if (e != NULL)
        e->socket = fake_of(ntohs(from->sin_port));
    if (e == NULL || fi_accept(e->fid, NULL, 0) != 0)
        fi_reject(listener, entry->info->handle, "no", 2);
    fi_freeinfo(entry->info);
}

static void take_events(void) {
    union {
        struct fi_eq_cm_entry entry;
        uint8_t bytes[sizeof(struct fi_eq_cm_entry) + SL_GREETING_BYTES];
    } buffer;
    for (;;) {
        struct fi_eq_err_entry error = {0};
        uint32_t kind;
        const ssize_t n = fi_eq_read(eq, &kind, &buffer, sizeof buffer, 0);
        if (n == -FI_EAVAIL) {
            assert(fi_eq_readerr(eq, &error, 0) > 0);
            end *e = error.fid->context;
            assert(!e->connected && !e->over);
            e->over = true;
            continue;
        }
        if (n < 0)
            return;
        if (kind == FI_CONNREQ) {
            assert((size_t)n == sizeof buffer && (!proves || proved > 0));
            answer_request(&buffer.entry);
            continue;
        }
        end *e = buffer.entry.fid->context;
        assert(e->fid != NULL && !e->over);
        if (kind == FI_CONNECTED) {
            assert(!e->connected && (!proves || proved > 0));
            e->connected = true;
            e->at = e->socket->taken;
        } else {
            assert(kind == FI_SHUTDOWN && e->connected);
            e->over = true;
        }
    }
}

static void check_received(const operation_of *o, size_t bytes) {
    assert(bytes <= o->bytes && bytes == sl_frame_bytes(o->memory));
    end *e = o->end;
    if (e->fid == NULL || !e->socket->open)
        return; /* closed since */
    assert(e->at + bytes <= e->socket->taken);
    assert(memcmp(e->socket->log + e->at, o->memory, bytes) == 0);
    e->at += bytes;
}

static void take_completions(void) {
    struct fi_cq_msg_entry entries[4];
    struct fi_cq_err_entry error;
    for (;;) {
        const ssize_t n = fi_cq_read(cq, entries, 4);
        if (n == -FI_EAVAIL) {
            assert(fi_cq_readerr(cq, &error, 0) == 1 && error.err > 0);
            operation_of *o = error.op_context;
            assert(o->posted);
            o->posted = false;
            continue;
        }
        if (n < 0)
            return;
        for (ssize_t i = 0; i < n; i++) {
            operation_of *o = entries[i].op_context;
            assert(o->posted && o->receives == ((entries[i].flags & FI_RECV) != 0));
            o->posted = false;
            if (o->receives)
                check_received(o, entries[i].len);
        }
    }
}

static void close_and_forget(end *e) {
    close_end(e);
    take_completions();
    for (int i = 0; i < OPERATIONS; i++)
        e->operations[i].posted = false; /* what was under way ended with it */
}

/* ---- the others ---- */

/* Greetings, challenges, proofs, and any other kind; as they are meant, or not. */
static void say(fake *s) {
    uint8_t message[3 + 64] = {0};
    const uint8_t kind = take_byte(), length = take_byte();
    static const uint8_t lengths[] = {0,           SL_GREETING_BYTES, SL_CHALLENGE_BYTES,
                                      PROOF_BYTES, PROOF_BYTES,       0};
    message[0] = kind % 8;
    message[1] = kind < 128 && kind % 8 < 6 ? lengths[kind % 8] : length % 64;
    message[2] = kind < 224 ? 0 : length;
    memset(message + 3, 1, 64);
    if (kind % 3 != 0)
        memcpy(message + 3, proof, sizeof proof);
    bytes_come(s, message, 3u + message[1]);
}

static void send_frame(fake *s) {
    uint8_t message[ROOM + 64];
    const uint8_t length = take_byte();
    sl_frame frame = {.type = (sl_frame_type)(1 + take_byte() % (SL_FRAME_TYPE_END - 1)),
                      .payload_bytes = length};
    memset(message, length, sizeof message);
    sl_frame_encode(&frame, message);
    const uint8_t what = take_byte();
    if (what % 4 == 0) /* altered */
        message[take_byte() % SL_FRAME_HEADER_BYTES] ^= take_byte();
    bytes_come(s, message, what % 8 == 1 ? take_byte() : SL_FRAME_HEADER_BYTES + (size_t)length);
}

static void send_raw(fake *s) {
    const size_t wanted = take_byte(), left = (size_t)(input_end - input);
    const size_t bytes = least(wanted, left);
    bytes_come(s, input, bytes);
    input += bytes;
}

static void others_act(uint8_t what, fake *s) {
    switch (what % 8) {
    case 0:
        somebody_comes();
        break;
    case 1:
        connection_is_made(s, take_byte() % 4 == 0 ? ECONNREFUSED : 0);
        break;
    case 2:
    case 3:
        say(s);
        break;
    case 4:
        send_frame(s);
        break;
    case 5:
        send_raw(s);
        break;
    case 6:
        it_ends(s, take_byte() % 2 == 0);
        break;
    default:
        room_changes(s);
    }
}

static void this_side_acts(uint8_t what, end *e) {
    switch (what % 8) {
    case 0:
        dial();
        break;
    case 1:
        now_s += take_byte() / 32.0;
        sl_provider_tick(listener);
        break;
    case 2:
        piece = 1 + take_byte() * take_byte();
        break;
    case 3:
        short_of_descriptors = take_byte() % 2;
        break;
    case 4:
    case 5:
        if (e->fid != NULL)
            post(e, what % 8 == 4, take_byte());
        break;
    case 6:
        close_and_forget(e);
        break;
    default:
        fi_trywait(fabric, NULL, 0);
        for (int i = 0; i < SOCKETS; i++)
            fakes[i].shared = fakes[i].shared || (what % 16 == 15 && fakes[i].open);
    }
}

static void begin(void) {
    const sl_provider_settings settings = {.gate = {.proves = proves,
                                                    .admits = admits,
                                                    .prove = prove,
                                                    .accepts = accepts,
                                                    .refused = refused}};
    const struct sockaddr_in here = {.sin_family = AF_INET};
    struct sockaddr_storage address = {0};
    memcpy(&address, &here, sizeof here);
    struct fi_info *info = sl_provider_info(&address);
    assert(info != NULL && sl_provider_open(&fabric, &settings) == 0);
    assert(fi_eq_open(fabric, NULL, &eq, NULL) == 0 && fi_domain(fabric, info, &domain, NULL) == 0);
    assert(fi_cq_open(domain, NULL, &cq, NULL) == 0);
    assert(fi_passive_ep(fabric, info, &listener, NULL) == 0 && fi_listen(listener) == 0);
    fi_freeinfo(info);
}

static void finish(void) {
    for (int i = 0; i < ENDPOINTS; i++)
        close_and_forget(&ends[i]);
    assert(fi_close(&listener->fid) == 0);
    assert(fi_close(&cq->fid) == 0 && fi_close(&domain->fid) == 0 && fi_close(&eq->fid) == 0);
    assert(fi_close(&fabric->fid) == 0);
    for (int i = 0; i < SOCKETS; i++)
        assert(!fakes[i].open && fakes[i].watched == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input = data;
    input_end = data + size;
    waiting_to_be_accepted = short_of_descriptors = 0;
    listener_watched = NULL;
    for (int i = 0; i < SOCKETS; i++)
        fakes[i].watched = NULL;
    now_s = 1000;
    piece = 1 << 16;
    proved = 0;
    proves = take_byte() % 2 == 0;
    begin();
    while (input < input_end) {
        const uint8_t what = take_byte();
        if (what < 160)
            others_act(what, &fakes[what / 8 % SOCKETS]);
        else
            this_side_acts(what, &ends[what / 8 % ENDPOINTS]);
        take_events();
        take_completions();
    }
    finish();
    return 0;
}
