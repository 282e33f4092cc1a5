/* members_lies.c - what a member says that holds a key and lies: each field of a letter is what its
 * own would be, what another one said, or anything; see members.h. */
#include <stdlib.h>
#include <string.h>

#include "members.h"
#include "membership/decision.h"

static uint64_t some_number(sl_rng *rng, uint64_t near) {
    switch (sl_rng_below(rng, 4)) {
    case 0:
        return sl_rng_below(rng, 4);
    case 1:
        return near + sl_rng_below(rng, 5) - 2;
    case 2:
        return near + 1;
    default:
        return ((uint64_t)sl_rng_below(rng, UINT32_MAX) << 32) >> sl_rng_below(rng, 64);
    }
}

static uint32_t some_ranks(sl_rng *rng, uint32_t *out) {
    uint32_t count = 0;
    const uint32_t odds = 1 + sl_rng_below(rng, 8);
    for (uint32_t i = 0; i < RANKS; i++)
        if (sl_rng_below(rng, odds) == 0)
            out[count++] = i + (sl_rng_below(rng, 200) == 0);
    return count;
}

static sl_ballot some_ballot(sl_rng *rng, uint32_t from) {
    return (sl_ballot){some_number(rng, sl_rng_below(rng, 30)),
                       sl_rng_below(rng, 2) == 0 ? from : sl_rng_below(rng, RANKS + 1)};
}

static sl_decision some_decision(sl_rng *rng, letter *l, int i, uint32_t from) {
    const process_state *p = &w.all[sl_rng_below(rng, RANKS)];
    sl_decision d = {.ballot = some_ballot(rng, from), .cut = sl_rng_below(rng, 2)};
    d.last = d.ballot.counter % 2;
    d.view.number = some_number(rng, p->number);
    d.view.round = some_number(rng, p->round);
    d.view.exchange =
        sl_rng_below(rng, 2) == 0 ? some_number(rng, p->round) : (d.view.round - 1) / w.period;
    const uint32_t odds = 1 + sl_rng_below(rng, 3);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        if (w.all[rank].alive && sl_rng_below(rng, odds) == 0)
            l->members[i][d.view.count++] = (sl_member){
                rank, sl_rng_below(rng, 10) == 0 ? some_number(rng, 1) : w.all[rank].incarnation};
    for (uint32_t k = 1; k < d.view.count; k++)
        if (sl_rng_below(rng, 10) == 0)
            l->broken[i][d.view.broken_count++] =
                (sl_pair){l->members[i][k - 1].rank, l->members[i][k].rank};
    d.view.members = l->members[i];
    d.view.broken = l->broken[i];
    return d;
}

letter *letter_of_lies(sl_rng *rng, uint32_t from) {
    letter *l = calloc(1, sizeof *l);
    const process_state *self = &w.all[from], *other = &w.all[sl_rng_below(rng, RANKS)];
    sl_membership_message *m = &l->message;
    m->type = (sl_membership_type)sl_rng_below(rng, SL_MEMBERSHIP_RELEASE + 1);
    m->from = from;
    m->incarnation = self->incarnation; /* the driver knows whose connection it is */
    m->number = some_number(rng, other->number);
    m->standing = (sl_standing_of)sl_rng_below(rng, SL_ASIDE + 1);
    m->cut = some_number(rng, other->number);
    m->renews = m->cut;
    m->ballot = some_ballot(rng, from);
    m->round = some_number(rng, other->round);
    m->last = m->round % 2;
    m->sponsor = sl_rng_below(rng, RANKS + 1);
    m->unreachable = l->unreachable;
    m->unreachable_count = some_ranks(rng, l->unreachable);
    m->reached = l->reached;
    m->reached_count = some_ranks(rng, l->reached);
    for (int i = 0; i < 2; i++)
        if (sl_rng_below(rng, 3) > 0) {
            l->decisions[i] = some_decision(rng, l, i, from);
            *(i == 0 ? &m->decision : &m->accepted) = &l->decisions[i];
        }
    return l;
}
