/* letter.c - see letter.h. */
#include "membership/letter.h"

#include <stdlib.h>

#include "wire/bytes.h"

enum { HEAD_BYTES = 80, DECISION_BYTES = 48, MEMBER_BYTES = 12, PAIR_BYTES = 8 };
enum { DECIDES = 1, ACCEPTED = 2, LAST = 4 }; /* of a letter */
enum { CUT = 1, LAST_VIEW = 2 };              /* of a decision */

/* ---- lengths ---- */

static size_t decision_bytes(size_t members, size_t broken) {
    return DECISION_BYTES + members * MEMBER_BYTES + broken * PAIR_BYTES;
}

static size_t bytes_of(const sl_decision *d) {
    return d == NULL ? 0 : decision_bytes(d->view.count, d->view.broken_count);
}

size_t sl_letter_bytes_max(uint32_t ranks_max) {
    return HEAD_BYTES + 8 * (size_t)ranks_max +
           2 * decision_bytes(ranks_max, sl_broken_max(ranks_max));
}

size_t sl_letter_bytes(const sl_membership_message *m) {
    return HEAD_BYTES + 4 * ((size_t)m->unreachable_count + m->reached_count) +
           bytes_of(m->decision) + bytes_of(m->accepted);
}

/* ---- encoding ---- */

static uint8_t *put_ballot(uint8_t *p, sl_ballot ballot) {
    return put32(put64(p, ballot.counter), ballot.rank);
}

static uint8_t *put_decision(uint8_t *p, const sl_decision *d) {
    const sl_view *e = &d->view;
    p = put_ballot(p, d->ballot);
    p = put64(p, e->number);
    p = put64(p, e->round);
    p = put64(p, e->exchange);
    p = put32(p, e->count);
    p = put32(p, e->broken_count);
    p = put32(p, (d->cut ? CUT : 0) | (d->last ? LAST_VIEW : 0));
    for (uint32_t i = 0; i < e->count; i++)
        p = put64(put32(p, e->members[i].rank), e->members[i].incarnation);
    for (uint32_t i = 0; i < e->broken_count; i++)
        p = put32(put32(p, e->broken[i].low), e->broken[i].high);
    return p;
}

void sl_letter_encode(const sl_membership_message *m, uint8_t *out) {
    uint8_t *p = put32(out, (uint32_t)m->type);
    p = put32(p, (m->decision != NULL ? DECIDES : 0) | (m->accepted != NULL ? ACCEPTED : 0) |
                     (m->last ? LAST : 0));
    p = put32(p, m->from);
    p = put32(p, m->sponsor);
    p = put64(p, m->incarnation);
    p = put64(p, m->number);
    p = put64(p, m->round);
    p = put_ballot(p, m->ballot);
    p = put32(p, (uint32_t)m->standing);
    p = put32(p, m->unreachable_count);
    p = put32(p, m->reached_count);
    p = put64(p, m->cut);
    p = put64(p, m->renews);
    for (uint32_t i = 0; i < m->unreachable_count; i++)
        p = put32(p, m->unreachable[i]);
    for (uint32_t i = 0; i < m->reached_count; i++)
        p = put32(p, m->reached[i]);
    if (m->decision != NULL)
        p = put_decision(p, m->decision);
    if (m->accepted != NULL)
        put_decision(p, m->accepted);
}

/* ---- decoding ---- */

int sl_letter_open(sl_letter *l, uint32_t ranks_max, sl_error *error) {
    *l = (sl_letter){.ranks_max = ranks_max,
                     .unreachable = calloc(ranks_max, sizeof *l->unreachable),
                     .reached = calloc(ranks_max, sizeof *l->reached)};
    if (l->unreachable != NULL && l->reached != NULL &&
        sl_decision_open(&l->decision, ranks_max) == 0 &&
        sl_decision_open(&l->accepted, ranks_max) == 0)
        return 0;
    sl_letter_close(l);
    return sl_fail(error, SL_ENOMEM, "out of memory for messages of %u members", ranks_max);
}

void sl_letter_close(sl_letter *l) {
    free(l->unreachable);
    free(l->reached);
    sl_decision_close(&l->decision);
    sl_decision_close(&l->accepted);
    *l = (sl_letter){0};
}

static sl_ballot get_ballot(const uint8_t *p) {
    return (sl_ballot){get64(p), get32(p + 8)};
}

/* A list of ranks; *at moves behind it. */
static void get_ranks(uint32_t *out, uint32_t count, const uint8_t **at) {
    for (uint32_t i = 0; i < count; i++, *at += 4)
        out[i] = get32(*at);
}

/* Lists into *to; *at moves behind it. False: it is longer than what came, or than there is room
 * for. */
static bool get_decision(sl_kept_decision *to, uint32_t ranks_max, const uint8_t **at,
                         const uint8_t *end) {
    const uint8_t *p = *at;
    if (end - p < DECISION_BYTES)
        return false;
    sl_decision *d = &to->decision;
    *d = (sl_decision){.ballot = get_ballot(p),
                       .view = {.number = get64(p + 12),
                                .round = get64(p + 20),
                                .exchange = get64(p + 28),
                                .members = to->members,
                                .count = get32(p + 36),
                                .broken = to->broken,
                                .broken_count = get32(p + 40)},
                       .cut = (get32(p + 44) & CUT) != 0,
                       .last = (get32(p + 44) & LAST_VIEW) != 0};
    if (d->view.count > ranks_max || d->view.broken_count > sl_broken_max(ranks_max) ||
        get32(p + 44) >= 2 * LAST_VIEW || (size_t)(end - p) < bytes_of(d))
        return false;
    p += DECISION_BYTES;
    for (uint32_t i = 0; i < d->view.count; i++, p += MEMBER_BYTES)
        to->members[i] = (sl_member){get32(p), get64(p + 4)};
    for (uint32_t i = 0; i < d->view.broken_count; i++, p += PAIR_BYTES)
        to->broken[i] = (sl_pair){get32(p), get32(p + 4)};
    *at = p;
    return true;
}

const char *sl_letter_decode(sl_letter *l, const uint8_t *data, size_t bytes) {
    if (bytes < HEAD_BYTES)
        return "a message of a member that is shorter than its head";
    const uint32_t type = get32(data), flags = get32(data + 4), standing = get32(data + 52);
    const uint32_t far = get32(data + 56), near = get32(data + 60);
    const uint8_t *at = data + HEAD_BYTES, *end = data + bytes;
    if (type > SL_MEMBERSHIP_RELEASE || flags >= 2 * LAST || standing > SL_ASIDE)
        return "a message of a member of no known type";
    if (far > l->ranks_max || near > l->ranks_max || (size_t)(end - at) < 4 * ((size_t)far + near))
        return "a message of a member that names too many ranks";
    l->message = (sl_membership_message){.type = (sl_membership_type)type,
                                         .from = get32(data + 8),
                                         .sponsor = get32(data + 12),
                                         .incarnation = get64(data + 16),
                                         .number = get64(data + 24),
                                         .round = get64(data + 32),
                                         .ballot = get_ballot(data + 40),
                                         .standing = (sl_standing_of)standing,
                                         .cut = get64(data + 64),
                                         .renews = get64(data + 72),
                                         .last = (flags & LAST) != 0,
                                         .unreachable = l->unreachable,
                                         .unreachable_count = far,
                                         .reached = l->reached,
                                         .reached_count = near};
    get_ranks(l->unreachable, far, &at);
    get_ranks(l->reached, near, &at);
    if (((flags & DECIDES) != 0 && !get_decision(&l->decision, l->ranks_max, &at, end)) ||
        ((flags & ACCEPTED) != 0 && !get_decision(&l->accepted, l->ranks_max, &at, end)) ||
        at != end)
        return "a message of a member whose decision is of another length";
    l->message.decision = (flags & DECIDES) != 0 ? &l->decision.decision : NULL;
    l->message.accepted = (flags & ACCEPTED) != 0 ? &l->accepted.decision : NULL;
    return NULL;
}
