/* peers.c - see peers.h. */
#include "peers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "expected.h"
#include "seeds.h"
#include "wire/checksum.h"

peer peers[NODES_MAX];
static uint32_t peer_count;
static void *(*peer_body)(void *of);

/* ---- all ---- */

void peers_open(uint32_t count, void *(*body)(void *of)) {
    memset(peers, 0, sizeof peers);
    peer_count = count;
    peer_body = body;
    for (uint32_t i = 0; i < count; i++) {
        peers[i].rank = i;
        peers[i].checkpoints = peer_checkpoints(false, 0);
    }
}

bool peers_are_over(void) {
    for (uint32_t i = 0; i < peer_count; i++)
        if (peers[i].process == NULL || peers[i].process->alive)
            return false;
    return true;
}

bool peers_all_train(void) {
    for (uint32_t i = 0; i < peer_count; i++)
        if (!peers[i].trains && !peers[i].joins)
            return false;
    return true;
}

sl_checkpoints peer_checkpoints(bool resume, uint64_t round) {
    return (sl_checkpoints){
        .folder = CHECKPOINTS, .run_id = RUN_ID, .resume = resume, .round = round};
}

/* ---- a process ---- */

void peer_start(void *of, uint64_t ignored) {
    peer *p = of;
    p->ended = false;
    p->logbook = (logbook){0};
    p->process = process_start(p->rank, peer_body, p);
}

bool peer_is_up(const peer *p) {
    return p->process != NULL && p->process->alive;
}

void peer_kill(peer *p, bool mute) {
    p->killed_s = world_now();
    p->agent = NULL;
    process_kill(p->process, mute);
}

static void go_on(void *of, uint64_t ignored) {
    process_go_on(of);
}

void peer_stop(peer *p, double seconds) {
    p->wakes_s = world_now() + seconds;
    process_stop(p->process);
    world_at(p->wakes_s, go_on, p->process, 0);
}

static void leave(peer *p) {
    if (p->agent == NULL || p->leaves_s > 0)
        return;
    p->leaves_s = world_now();
    sl_agent_leave(p->agent);
}

bool peer_strike(const strike *k) {
    peer *p = &peers[k->a];
    world_note("strikes", k->kind, k->a, k->b);
    if (!peer_is_up(p) || !peers_all_train())
        return false;
    p->struck = p->struck || k->kind != STRIKE_CUT;
    switch (k->kind) {
    case STRIKE_KILL:
        peer_kill(p, false);
        break;
    case STRIKE_STOP:
        peer_stop(p, k->seconds);
        break;
    case STRIKE_LEAVE:
        leave(p);
        break;
    case STRIKE_CUT:
        network_break_between(k->a, k->b, BREAK_RESET);
        break;
    case STRIKE_KINDS:
        break;
    }
    return true;
}

/* ---- what it tells, and its end ---- */

uint64_t peer_records(peer *p, const sl_record *record, const float *x) {
    const uint64_t sum = sl_checksum(x, task.dimension * sizeof *x);
    p->recorded = record->round.round;
    world_note("records", p->rank, p->recorded, sum);
    for (size_t i = 0; i < task.dimension; i++)
        if (!isfinite(x[i]))
            world_fail("agent %u has a number that is not finite after round %llu", p->rank,
                       (unsigned long long)p->recorded);
    return sum;
}

void peer_ends(peer *p) {
    p->ended = true;
    p->ended_s = world_now();
    world_note("ended", p->rank, (uint64_t)(int64_t)p->result, p->recorded);
}

bool peer_judge(const peer *p, bool verbose) {
    if (verbose)
        printf("agent %u: %s%d after round %llu at %.3f %s\n", p->rank, p->struck ? "struck, " : "",
               p->result, (unsigned long long)p->recorded, p->ended_s - first_s,
               p->result != 0 ? p->error.text : "");
    if (p->process == NULL || p->process->alive)
        world_fail("agent %u still waits at %.3f s", p->rank, world_now() - first_s);
    return p->ended;
}

void peer_judge_end(const peer *p, uint64_t rounds) {
    if (p->result == 0 && p->recorded != rounds)
        world_fail("agent %u ended well after round %llu of %llu", p->rank,
                   (unsigned long long)p->recorded, (unsigned long long)rounds);
    seeds_count("agents trained to the end", p->result == 0);
}
