/* network.c - wires between processes: latency, order, sockets that fill, breaks, partitions,
 * strangers; see virtual.h. */
#include "network.h"

#include <string.h>

#include "agent/peers/neighbour.h"
#include "wire/checksum.h"

enum { SOCKET_BYTES = 24 << 10 };
static const double retry_s = 0.3; /* of a request, or a message, that does not get through */

network_habits network;
static wire *wires;
static sl_fabric *listeners[PORTS_MAX];
static bool parted[PORTS_MAX][PORTS_MAX];
static double longest_stay_s;

double network_longest_stay(void) {
    return longest_stay_s;
}

/* ---- queues ---- */

void queue_push(queue *q, message *m) {
    m->next = NULL;
    if (q->first == NULL)
        q->end = &q->first;
    *q->end = m;
    q->end = &m->next;
    q->count++;
    q->bytes += m->bytes;
}

message *queue_pop(queue *q) {
    message *m = q->first;
    q->first = m->next;
    q->count--;
    q->bytes -= m->bytes;
    return m;
}

void queue_clear(queue *q) {
    while (q->first != NULL)
        world_free(queue_pop(q));
}

/* ---- the world ---- */

void network_open(void) {
    network_close();
    memset(listeners, 0, sizeof listeners);
    memset(parted, 0, sizeof parted);
    network = (network_habits){0};
    longest_stay_s = 0;
}

void network_close(void) {
    while (wires != NULL) {
        wire *w = wires;
        wires = w->next;
        for (int i = 0; i < 2; i++) {
            queue_clear(&w->lanes[i].offered);
            queue_clear(&w->lanes[i].flying);
            queue_clear(&w->lanes[i].arrived);
            queue_clear(&w->lanes[i].leaving);
        }
        world_free(w);
    }
}

static double latency(const wire *w) {
    const double slow_s =
        w->ends[0].rank == network.slow || w->ends[1].rank == network.slow ? network.slow_s : 0;
    return slow_s + network.latency_s + network.jitter_s * world_uniform() * world_uniform();
}

static bool is_cut_off(const wire *w) {
    return parted[w->ends[0].rank][w->ends[1].rank];
}

static void wake(const wire *w, int end) {
    if (w->ends[end].process != NULL)
        process_wake(w->ends[end].process);
}

/* ---- ends ---- */

typedef enum farewell { FAREWELL_CLOSED, FAREWELL_RESET, FAREWELL_REFUSED } farewell;
static const char *const farewells[] = {"the connection was closed", "Connection reset by peer",
                                        "Connection refused"};

static void hear_end(void *of, uint64_t what) {
    wire *w = of;
    const int end = (int)(what & 1);
    sl_connection *c = w->ends[end].connection;
    if (c == NULL || c->reason != NULL)
        return;
    const bool behind = what >> 1 == FAREWELL_CLOSED && w->lanes[1 - end].flying.first != NULL;
    if (is_cut_off(w) || (behind && !w->dead)) {
        world_at(world_now() + (behind ? 1e-3 : retry_s), hear_end, w, what);
        return;
    }
    world_note("hears-end", w->ends[end].rank, w->ends[1 - end].rank, what >> 1);
    c->reason = farewells[what >> 1];
    if (what >> 1 == FAREWELL_RESET)
        queue_clear(&w->lanes[1 - end].arrived);
    wake(w, end);
}

/* Comes behind everything that flies. */
static void tell_end(wire *w, int end, farewell how) {
    double at_s = world_now() + latency(w);
    if (how == FAREWELL_CLOSED && at_s < w->lanes[1 - end].last_arrival_s)
        at_s = w->lanes[1 - end].last_arrival_s;
    world_at(at_s, hear_end, w, (uint64_t)how << 1 | (uint64_t)end);
}

void network_hang_up(wire *w, int end) {
    if (w->stranger && world_now() - w->came_s > longest_stay_s)
        longest_stay_s = world_now() - w->came_s;
    queue_clear(&w->lanes[end].offered);
    queue_clear(&w->lanes[1 - end].arrived);
    w->ends[end].connection = NULL;
    w->ends[end].process = NULL;
    if (!w->dead)
        tell_end(w, 1 - end, FAREWELL_CLOSED);
}

void network_lose(process *p, bool mute) {
    if (p->fabric != NULL) {
        listeners[p->fabric->port - FROM_PORT] = NULL;
        for (int i = 0; i < p->fabric->request_count && !mute; i++)
            network_refuse(p->fabric->requests[i]);
    }
    for (wire *w = wires; w != NULL; w = w->next)
        for (int end = 0; end < 2; end++)
            if (w->ends[end].process == p) {
                if (w->ends[end].connection != NULL)
                    queue_clear(&w->ends[end].connection->left);
                w->dead = w->dead || mute;
                network_hang_up(w, end);
            }
    p->fabric = NULL;
}

static bool breaks(wire *w, network_break how) {
    if (!w->established || w->dead || w->ends[0].connection == NULL ||
        w->ends[1].connection == NULL)
        return false;
    const int hears = (int)(world_draw() & 1);
    w->dead = true;
    w->half_open = how == BREAK_HALF_OPEN;
    world_note("breaks", w->ends[0].rank, w->ends[1].rank, how);
    for (int end = 0; end < 2; end++)
        if (how == BREAK_RESET || (how == BREAK_HALF_OPEN && end == hears))
            tell_end(w, end, FAREWELL_RESET);
    return true;
}

int network_break_between(uint32_t a, uint32_t b, network_break how) {
    int broken = 0;
    for (wire *w = wires; w != NULL; w = w->next)
        if ((w->ends[0].rank == a && w->ends[1].rank == b) ||
            (w->ends[0].rank == b && w->ends[1].rank == a))
            broken += breaks(w, how);
    return broken;
}

/* ---- connecting ---- */

int network_listen(sl_fabric *fabric, uint16_t port) {
    if (port < FROM_PORT || port >= FROM_PORT + PORTS_MAX || listeners[port - FROM_PORT] != NULL)
        return -1;
    listeners[port - FROM_PORT] = fabric;
    return 0;
}

static void arrive_request(void *of, uint64_t ignored) {
    wire *w = of;
    sl_fabric *f = listeners[w->ends[1].rank];
    if (w->ends[0].connection == NULL && !w->stranger)
        return;
    if (is_cut_off(w)) {
        world_at(world_now() + retry_s, arrive_request, w, 0);
    } else if (f == NULL || f->request_count == SLOTS_MAX) {
        tell_end(w, 0, FAREWELL_REFUSED);
    } else {
        f->requests[f->request_count++] = w;
        process_wake(f->process);
    }
}

static wire *new_wire(uint32_t from, uint32_t to) {
    wire *w = world_allocate(sizeof *w);
    *w = (wire){.next = wires, .ends = {{.rank = from}, {.rank = to}}};
    wires = w;
    return w;
}

wire *network_dial(sl_connection *c, process *p, uint16_t port,
                   const uint8_t greeting[SL_GREETING_BYTES]) {
    wire *w = new_wire(p->rank, port - FROM_PORT);
    w->ends[0].process = p;
    w->ends[0].connection = c;
    memcpy(w->greeting, greeting, SL_GREETING_BYTES);
    world_note("dials", p->rank, w->ends[1].rank, 0);
    world_at(world_now() + latency(w), arrive_request, w, 0);
    return w;
}

void network_refuse(wire *w) {
    tell_end(w, 0, FAREWELL_REFUSED);
}

static void hear_accepted(void *of, uint64_t end) {
    wire *w = of;
    if (w->ends[end].connection == NULL || w->ends[end].connection->reason != NULL)
        return;
    if (is_cut_off(w)) {
        world_at(world_now() + retry_s, hear_accepted, w, end);
        return;
    }
    world_note("connected", w->ends[end].rank, w->ends[1 - end].rank, 0);
    w->established = w->established || end == 0;
    w->ends[end].connection->becomes_connected = true;
    wake(w, (int)end);
}

static void misbehave(wire *w);

void network_accept(wire *w, sl_connection *c) {
    w->ends[1].connection = c;
    w->ends[1].process = process_current();
    c->wire = w;
    c->end = 1;
    if (w->ends[0].connection == NULL && !w->stranger) {
        c->reason = farewells[FAREWELL_RESET]; /* it has not waited */
        return;
    }
    const double there_s = world_now() + latency(w);
    w->lanes[1].last_arrival_s = there_s;
    world_at(world_now() + 1e-6, hear_accepted, w, 1);
    world_at(there_s, hear_accepted, w, 0);
    if (w->stranger)
        misbehave(w);
}

/* ---- messages ---- */

static void damage(message *m) {
    const size_t room =
        world_chance(0.5) && m->bytes > SL_FRAME_HEADER_BYTES ? SL_FRAME_HEADER_BYTES : m->bytes;
    m->body[world_draw() % room] ^= (uint8_t)(1 + world_draw() % 255);
    world_note("damages", m->bytes, m->cookie, 0);
}

static void arrive(void *of, uint64_t from) {
    wire *w = of;
    lane *l = &w->lanes[from];
    if (w->dead || l->flying.first == NULL)
        return;
    if (is_cut_off(w)) {
        l->held_up++;
        return;
    }
    message *m = queue_pop(&l->flying);
    l->bytes_arrived += m->bytes;
    if (world_chance(network.corrupt))
        damage(m);
    world_note("arrives", w->ends[from].rank, w->ends[1 - from].rank,
               sl_checksum(m->body, m->bytes));
    if (w->ends[1 - from].connection == NULL) {
        world_free(m);
        return;
    }
    queue_push(&l->arrived, m);
    wake(w, 1 - (int)from);
}

/* The oldest that flies away has left the sender's memory. */
static void leave(void *of, uint64_t from) {
    wire *w = of;
    lane *l = &w->lanes[from];
    if (l->leaving.first == NULL)
        return;
    message *m = queue_pop(&l->leaving);
    sl_connection *c = w->ends[from].connection;
    if (c == NULL) {
        world_free(m);
        return;
    }
    if (m->data && m->payload_bytes > 0 &&
        sl_checksum(m->payload, m->payload_bytes) != m->payload_sum)
        world_fail("agent %u changed a payload that had not left", w->ends[from].rank);
    queue_push(&c->left, m);
    wake(w, (int)from);
}

static message *note_of(const message *m) {
    message *note = world_allocate(sizeof *note);
    *note = *m;
    note->bytes = 0;
    return note;
}

void network_pump(wire *w, int from) {
    lane *l = &w->lanes[from];
    while (l->offered.first != NULL && l->flying.bytes + l->arrived.bytes < SOCKET_BYTES) {
        message *m = queue_pop(&l->offered);
        double leaves_s = world_now() + network.latency_s * 0.1 * world_uniform();
        double arrives_s = world_now() + latency(w) + 1e-9 * (double)m->bytes;
        leaves_s = leaves_s < l->last_leave_s ? l->last_leave_s : leaves_s;
        arrives_s = arrives_s < l->last_arrival_s ? l->last_arrival_s : arrives_s;
        l->last_leave_s = leaves_s;
        l->last_arrival_s = arrives_s;
        queue_push(&l->leaving, note_of(m));
        queue_push(&l->flying, m);
        world_at(leaves_s, leave, w, (uint64_t)from);
        world_at(arrives_s, arrive, w, (uint64_t)from);
    }
}

void network_send(wire *w, int from, message *m) {
    queue_push(&w->lanes[from].offered, m);
    network_pump(w, from);
    if (w->half_open && w->ends[1 - from].connection == NULL)
        tell_end(w, from, FAREWELL_RESET);
}

void network_part(uint32_t a, uint32_t b, bool is_parted) {
    parted[a][b] = parted[b][a] = is_parted;
    world_note(is_parted ? "parts" : "joins", a, b, 0);
    for (wire *w = wires; w != NULL && !is_parted; w = w->next)
        for (int from = 0; from < 2 && !is_cut_off(w); from++) {
            const double at_s = world_now() + network_resend_s * world_uniform();
            lane *l = &w->lanes[from];
            for (; l->held_up > 0; l->held_up--)
                world_at(at_s, arrive, w, (uint64_t)from);
            if (l->last_arrival_s < at_s)
                l->last_arrival_s = at_s;
        }
}

/* ---- strangers ---- */

enum { STRANGER_SILENT, STRANGER_GARBAGE, STRANGER_FRAME, STRANGER_KINDS };

/* Of any type, in the name that it has greeted with. */
static void put_frame(const wire *w, message *m) {
    const size_t bytes = m->bytes - SL_FRAME_HEADER_BYTES;
    sl_frame frame = {.type = (sl_frame_type)(1 + world_draw() % (SL_FRAME_TYPE_END - 1)),
                      .exchange = world_draw() % 4,
                      .credit = (uint32_t)world_draw() % 64,
                      .payload_bytes = (uint32_t)bytes,
                      .payload_sum = sl_checksum(m->body + SL_FRAME_HEADER_BYTES, bytes)};
    memcpy(&frame.sender, w->greeting + 8, sizeof frame.sender);
    sl_frame_encode(&frame, m->body);
}

static void misbehave(wire *w) {
    w->came_s = world_now();
    if (w->says == STRANGER_SILENT)
        return;
    const size_t head = w->says == STRANGER_FRAME ? SL_FRAME_HEADER_BYTES : 1;
    const size_t bytes = head + world_draw() % 300;
    message *m = world_allocate(sizeof *m + bytes);
    *m = (message){.bytes = bytes};
    for (size_t i = 0; i < bytes; i++)
        m->body[i] = (uint8_t)world_draw();
    if (w->says == STRANGER_FRAME)
        put_frame(w, m);
    w->lanes[0].last_arrival_s = world_now() + 2e-6;
    network_send(w, 0, m);
}

void network_send_stranger(uint32_t rank) {
    wire *w = new_wire(PORTS_MAX - 1, rank);
    const sl_passage passage = {.from = (uint32_t)(world_draw() % 8), .to = rank};
    w->stranger = true;
    w->says = (int)(world_draw() % STRANGER_KINDS);
    if (world_chance(0.3))
        for (int i = 0; i < SL_GREETING_BYTES; i++)
            w->greeting[i] = (uint8_t)world_draw();
    else
        sl_greeting_write(&passage, NULL, w->greeting);
    world_note("stranger", rank, (uint64_t)w->says, 0);
    world_at(world_now() + latency(w), arrive_request, w, 0);
}
