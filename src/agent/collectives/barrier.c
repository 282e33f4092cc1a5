/* barrier.c - see barrier.h. */
#include "agent/collectives/barrier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_MAX = 8 };

int sl_barrier_open(sl_barrier *out, sl_tree_position *place, uint32_t rank, sl_error *error) {
    const uint32_t nodes = place->members;
    sl_barrier m = {.place = place, .rank = rank, .nodes = nodes};
    m.comers = calloc(2 * (size_t)nodes, sizeof *m.comers);
    m.told = calloc(place->link_count + 1u, sizeof *m.told);
    if (m.comers == NULL || m.told == NULL) {
        sl_barrier_close(&m);
        return sl_fail(error, SL_ENOMEM, "agent %u: out of memory for %u agents", rank, nodes);
    }
    *out = m;
    return 0;
}

void sl_barrier_close(sl_barrier *m) {
    free(m->comers);
    free(m->told);
    memset(m, 0, sizeof *m);
}

static sl_comer *comer(const sl_barrier *m, uint64_t number) {
    return &m->comers[number % (2 * (uint64_t)m->nodes)];
}

uint64_t sl_barrier_held(const sl_barrier *m) {
    return m->count / m->nodes;
}

static bool has_come(const sl_barrier *m, uint32_t rank) {
    for (uint64_t i = sl_barrier_held(m) * m->nodes; i < m->count; i++)
        if (comer(m, i)->rank == rank)
            return true;
    return false;
}

void sl_barrier_come(sl_barrier *m, uint64_t round, sl_meet purpose) {
    *comer(m, m->count++) = (sl_comer){m->rank, m->place->link_count, round, purpose};
}

int sl_barrier_take(sl_barrier *m, const sl_neighbour *from, const sl_frame *frame,
                    sl_error *error) {
    const uint32_t link = sl_tree_position_link(m->place, from);
    if (link == m->place->link_count || frame->part >= m->place->nodes || frame->part == m->rank ||
        m->place->towards[frame->part] != link || frame->step < SL_MEET_SUM ||
        frame->step > SL_MEET_CUT || has_come(m, frame->part))
        return sl_fail_edge(error, SL_EPROTO, from->rank, m->rank, from->side->now.round,
                            "agent %u said that agent %u has come to a meeting, which cannot be",
                            from->rank, frame->part);
    *comer(m, m->count++) = (sl_comer){frame->part, link, frame->exchange, (sl_meet)frame->step};
    return 0;
}

void sl_barrier_pass_on(sl_barrier *m) {
    for (uint32_t i = 0; i < m->place->link_count; i++)
        for (; m->told[i] < m->count && sl_tree_position_reaches(m->place, i); m->told[i]++) {
            const sl_comer *c = comer(m, m->told[i]);
            const sl_frame frame = {.type = SL_FRAME_BARRIER,
                                    .exchange = c->round,
                                    .part = c->rank,
                                    .step = (uint32_t)c->purpose};
            if (c->link != i)
                sl_neighbour_send(m->place->links[i], frame, NULL, false);
        }
}

bool sl_barrier_is_told(const sl_barrier *m, const sl_neighbour *neighbour) {
    const uint32_t link = sl_tree_position_link(m->place, neighbour);
    return link == m->place->link_count || m->told[link] == m->count ||
           neighbour->process.bye_received; /* it comes to no meeting any more */
}

uint64_t sl_barrier_round(const sl_barrier *m, uint64_t meeting) {
    uint64_t round = 0;
    for (uint64_t i = meeting * m->nodes; i < (meeting + 1) * m->nodes; i++)
        if (comer(m, i)->round > round)
            round = comer(m, i)->round;
    return round;
}

sl_meet sl_barrier_purpose(const sl_barrier *m, uint64_t meeting) {
    sl_meet purpose = SL_MEET_END;
    for (uint64_t i = meeting * m->nodes; i < (meeting + 1) * m->nodes; i++)
        if (comer(m, i)->purpose == SL_MEET_SUM)
            purpose = SL_MEET_SUM;
    return purpose;
}

void sl_barrier_name_missing(const sl_barrier *m, char *out, size_t bytes, uint32_t *first) {
    uint32_t missing = 0;
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t rank = 0; rank < m->place->nodes; rank++) {
        if (m->place->towards[rank] == SL_TREE_NOBODY || has_come(m, rank))
            continue;
        if (missing == 0)
            *first = rank;
        if (missing++ < NAMED_MAX && used < bytes)
            used += (size_t)snprintf(out + used, bytes - used, "%s%u", used > 0 ? ", " : "", rank);
    }
    if (missing > NAMED_MAX && used < bytes)
        snprintf(out + used, bytes - used, " and %u more", missing - NAMED_MAX);
}
