/* played.c - a timeline's rounds on a platform: how long they take; see starling/timeline.h.
 *
 * Messages go over the same ports as those of nodes at their own times (ports.h). Playing is one
 * pass over the run. All that is known of a node is when its round began; what is on its way to it
 * waits in a list and enters its port when the node moves on, since only then is everything there
 * that comes before.
 */
#include "sim/messages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/ports.h"

static const double second_per_ns = 1e-9, ns_per_ms = 1e6;

/* A part that is on its way. */
typedef struct arrival {
    uint64_t exchange;
    uint32_t step, from;
    uint64_t left, at; /* it has begun to leave; its first bit is there */
    double bytes;
} arrival;

typedef struct node_clock {
    uint64_t began, computed; /* this round; its computing is done */
    uint64_t taken;           /* parts in this round */
    uint64_t round;           /* under way, from 1 */
    arrival *coming;
    size_t count, room;
} node_clock;

typedef struct play {
    const sl_timeline *timeline;
    const sl_platform *platform;
    sl_ports ports;
    node_clock *clocks;                               /* (nodes) */
    uint64_t exchanges;                               /* before the round under way */
    void (*take)(void *context, const sl_span *span); /* NULL: nobody asks */
    void *context;
    bool out_of_memory;
} play;

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static int by_turn(const void *x, const void *y) {
    const arrival *a = x, *b = y;
    if (a->exchange != b->exchange)
        return a->exchange < b->exchange ? -1 : 1;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

static void show(const play *p, sl_span span, uint64_t begins, uint64_t ends) {
    span.begins_s = second_per_ns * (double)begins;
    span.ends_s = second_per_ns * (double)ends;
    if (p->take != NULL && ends > begins)
        p->take(p->context, &span);
}

/* The first `count` that are coming enter the port. */
static void take(play *p, node_clock *c, size_t count) {
    const uint32_t rank = (uint32_t)(c - p->clocks);
    for (size_t i = 0; i < count; i++) {
        const arrival *a = &c->coming[i];
        const uint64_t there = sl_ports_enter(&p->ports, rank, a->bytes, a->at);
        show(p, (sl_span){.kind = SL_SPAN_MESSAGE, .rank = a->from, .peer = rank}, a->left, there);
    }
    if (count > 0)
        memmove(c->coming, c->coming + count, (c->count - count) * sizeof *c->coming);
    c->count -= count;
    c->taken += count;
}

static void sort(node_clock *c) {
    if (c->count > 1)
        qsort(c->coming, c->count, sizeof *c->coming, by_turn);
}

static void take_before(play *p, node_clock *c, uint64_t exchange, uint32_t step) {
    size_t count = 0;
    sort(c);
    while (count < c->count &&
           (c->coming[count].exchange < exchange ||
            (c->coming[count].exchange == exchange && c->coming[count].step < step)))
        count++;
    take(p, c, count);
}

static void put(play *p, uint32_t peer, const arrival *a) {
    node_clock *c = &p->clocks[peer];
    if (c->count == c->room) {
        const size_t room = 2 * c->room + 8;
        arrival *grown = realloc(c->coming, room * sizeof *grown);
        if (grown == NULL) {
            p->out_of_memory = true;
            return;
        }
        c->coming = grown;
        c->room = room;
    }
    c->coming[c->count++] = *a;
}

/* When the message's part of the gradient is there. */
static uint64_t ready_at(const node_clock *c, uint32_t ready) {
    float share;
    if (ready <= 1)
        return ready == 1 ? c->began : c->computed;
    memcpy(&share, &ready, sizeof share);
    return c->began + (uint64_t)llround((double)share * (double)(c->computed - c->began));
}

static const uint32_t *send(play *p, const uint32_t *w) {
    const uint32_t rank = w[1], parts = w[SEND_PARTS], count = w[SEND_PEERS];
    const uint32_t *peers = w + SEND_WORDS;
    uint32_t first = 0;
    uint64_t bytes;
    memcpy(&bytes, w + SEND_BYTES, sizeof bytes);
    node_clock *c = &p->clocks[rank];
    arrival a = {.exchange = p->exchanges + w[SEND_EXCHANGE],
                 .step = w[SEND_EXCHANGE + 1],
                 .from = rank,
                 .bytes = parts > 0 ? (double)bytes / parts : 0};
    take_before(p, c, a.exchange, a.step);
    const uint64_t ready = later(p->ports.in_free[rank], ready_at(c, w[SEND_READY]));
    while (first < count && peers[first] < rank)
        first++;
    for (uint64_t i = 0; i < (uint64_t)parts * count; i++) {
        const uint32_t peer = peers[(first + i % count) % count];
        a.left = later(ready, p->ports.out_free[rank]);
        a.at = sl_ports_leave(&p->ports, rank, peer, a.bytes, ready);
        put(p, peer, &a);
    }
    return peers + count;
}

/* The node's next round begins. */
static uint64_t compute_ns(play *p, uint32_t rank) {
    const sl_platform *on = p->platform;
    const uint64_t round = ++p->clocks[rank].round;
    const double ms = on->drawn != NULL
                          ? sl_network_gradient_ms(on->drawn, on->compute_ms, on->seed, rank, round)
                          : on->compute_ms / (on->speeds != NULL ? on->speeds[rank] : 1);
    return (uint64_t)llround(ns_per_ms * ms);
}

static const uint32_t *finish(play *p, const uint32_t *w) {
    const uint32_t rank = w[1];
    node_clock *c = &p->clocks[rank];
    const size_t left = w[2] - c->taken;
    sort(c);
    take(p, c, left < c->count ? left : c->count);
    const uint64_t ends =
        later(c->computed, later(p->ports.in_free[rank], p->ports.out_free[rank]));
    show(p, (sl_span){.kind = SL_SPAN_GRADIENT, .rank = rank, .round = c->round}, c->began,
         c->computed);
    show(p, (sl_span){.kind = SL_SPAN_WAIT, .rank = rank, .round = c->round}, c->computed, ends);
    c->began = ends;
    c->computed = c->began + compute_ns(p, rank);
    c->taken = 0;
    return w + DONE_WORDS;
}

static void play_round(play *p, const pattern *round) {
    const uint32_t *w = round->words, *end = round->words + round->count;
    while (w < end && !p->out_of_memory)
        w = *w == SEND ? send(p, w) : finish(p, w);
    p->exchanges += round->exchanges;
}

/* The time at which the last node has finished each of these rounds (count), rising. */
static void play_rounds(play *p, double *out, const uint64_t *rounds, size_t count) {
    const sl_timeline *t = p->timeline;
    uint64_t passed = 0;
    for (uint32_t i = 0; i < t->nodes; i++)
        p->clocks[i].computed = compute_ns(p, i);
    for (size_t k = 0; k < count; k++) {
        uint64_t last = 0;
        for (; passed < rounds[k] && passed < t->round_count && !p->out_of_memory; passed++)
            play_round(p, &t->patterns[t->rounds[passed]]);
        for (uint32_t i = 0; i < t->nodes; i++)
            last = later(last, p->clocks[i].began);
        out[k] = second_per_ns * (double)last;
    }
}

static int open_play(play *p, const sl_timeline *t, const sl_platform *platform, sl_error *error) {
    const sl_link usual = {platform->bandwidth_mbit, platform->latency_ms};
    *p = (play){.timeline = t,
                .platform = platform,
                .clocks = calloc(t->nodes, sizeof *p->clocks),
                .out_of_memory = t->out_of_memory};
    p->out_of_memory = p->out_of_memory || p->clocks == NULL;
    return sl_ports_open(&p->ports, usual, platform->links, t->nodes, error);
}

static int close_play(play *p, int result, sl_error *error) {
    for (uint32_t i = 0; p->clocks != NULL && i < p->timeline->nodes; i++)
        free(p->clocks[i].coming);
    free(p->clocks);
    sl_ports_close(&p->ports);
    return result == 0 && p->out_of_memory
               ? sl_fail(error, SL_ENOMEM, "timeline: out of memory for the messages of %u nodes",
                         p->timeline->nodes)
               : result;
}

int sl_timeline_times(double *out, const uint64_t *rounds, size_t count, const sl_timeline *t,
                      const sl_platform *platform, sl_error *error) {
    play p;
    const int result = open_play(&p, t, platform, error);
    if (result == 0 && !p.out_of_memory)
        play_rounds(&p, out, rounds, count);
    return close_play(&p, result, error);
}

int sl_timeline_spans(const sl_timeline *t, const sl_platform *platform,
                      void (*each)(void *context, const sl_span *span), void *context,
                      sl_error *error) {
    play p;
    double end;
    const int result = open_play(&p, t, platform, error);
    p.take = each;
    p.context = context;
    if (result == 0 && !p.out_of_memory)
        play_rounds(&p, &end, &(uint64_t){t->round_count}, 1);
    return close_play(&p, result, error);
}

int sl_timeline_seconds(double *out, const sl_timeline *t, const sl_platform *platform,
                        uint64_t rounds, sl_error *error) {
    const uint64_t last = rounds > 0 ? rounds : t->round_count;
    return sl_timeline_times(out, &last, 1, t, platform, error);
}
