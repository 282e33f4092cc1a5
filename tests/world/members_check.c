/* members_check.c - what must hold of members; see members.h. */
#include <string.h>

#include "members.h"
#include "membership/decision.h"
#include "virtual.h"

static const double slowest_commit_s = 2;

/* ---- what must hold ---- */

static bool is_same(const sl_epoch *a, const sl_epoch *b) {
    return a->number == b->number && a->round == b->round && a->exchange == b->exchange &&
           a->count == b->count && a->broken_count == b->broken_count &&
           memcmp(a->members, b->members, a->count * sizeof *a->members) == 0 &&
           (a->broken_count == 0 ||
            memcmp(a->broken, b->broken, a->broken_count * sizeof *a->broken) == 0);
}

uint32_t find_epoch(uint64_t of) {
    uint32_t i = 0;
    while (i < w.epoch_count && w.epochs[i].hash != of)
        i++;
    return i;
}

bool is_ballot(sl_ballot a, sl_ballot b) {
    return a.counter == b.counter && a.rank == b.rank;
}

/* Who has promised it last, and lives, is not beyond the end of its side. */
static void check_sides(const sl_decision *d) {
    for (uint32_t i = 0; i < d->epoch.count; i++) {
        const process_state *p = &w.all[d->epoch.members[i].rank];
        if (!p->alive || p->leaves || p->aside ||
            p->incarnation != d->epoch.members[i].incarnation || d->ballot.counter == 0 ||
            !is_ballot(p->promised, d->ballot))
            continue;
        /* Elsewhere its answer may be on its way, and others have accepted it before. */
        if (w.lost_s >= 0 && !is_ballot(p->accepted, d->ballot))
            world_fail("COMMIT without rank %u, which has not accepted", d->epoch.members[i].rank);
        const sl_epoch *e = sl_membership_epoch(p->member);
        const uint64_t of = e != NULL ? sl_epoch_hash(e) : 0;
        for (uint32_t s = 0; s < d->side_count; s++)
            if (d->sides[s].hash == of && p->run == of && p->round > d->sides[s].last)
                world_fail("rank %u is in round %llu, and its side ends after %llu",
                           d->epoch.members[i].rank, (unsigned long long)p->round,
                           (unsigned long long)d->sides[s].last);
    }
}

/* The entry of an epoch; a new one is checked. */
uint32_t learn(const sl_decision *d) {
    const uint64_t of = sl_epoch_hash(&d->epoch);
    const uint32_t i = find_epoch(of);
    if (i < w.epoch_count) {
        if (!is_same(&w.epochs[i].decision.epoch, &d->epoch))
            world_fail("two epochs have one hash");
        return i;
    }
    if (!sl_epoch_is_valid(&d->epoch) || d->epoch.exchange != (d->epoch.round - 1) / w.period ||
        (d->epoch.round - 1) % w.period != 0)
        world_fail("epoch %llu is not sound", (unsigned long long)d->epoch.number);
    if (w.epoch_count == EPOCHS_MAX)
        world_fail("there are too many epochs");
    check_sides(d);
    known_epoch *k = &w.epochs[w.epoch_count++];
    *k = (known_epoch){.hash = of, .decision = *d};
    memcpy(k->members, d->epoch.members, d->epoch.count * sizeof(sl_member));
    if (d->epoch.broken_count > 0)
        memcpy(k->broken, d->epoch.broken, d->epoch.broken_count * sizeof(sl_pair));
    k->decision.epoch.members = k->members;
    k->decision.epoch.broken = k->broken;
    w.merges += d->side_count > 1;
    note("epoch", d->epoch.number, d->epoch.round, d->epoch.count);
    return i;
}

void check_commit(uint32_t rank, const sl_decision *d) {
    process_state *p = &w.all[rank];
    const uint32_t i = learn(d);
    w.commits++;
    note("commit", rank, d->epoch.number, d->epoch.round);
    if (d->epoch.number <= p->number)
        world_fail("rank %u goes back to epoch %llu", rank, (unsigned long long)d->epoch.number);
    p->number = d->epoch.number;
    p->taken[i / 64] |= 1ull << i % 64;
    p->limit = UINT64_MAX;
    if (w.lost_s < 0)
        return;
    if (w.now_s - w.lost_s > slowest_commit_s)
        world_fail("rank %u hears COMMIT %.3f s after the loss", rank, w.now_s - w.lost_s);
    if (d->epoch.round > w.lost_round + w.slack + w.nodes / 2 + w.period)
        world_fail("the loss is seen in round %llu, and the epoch begins with %llu",
                   (unsigned long long)w.lost_round, (unsigned long long)d->epoch.round);
}

static void check_view(uint32_t rank, const sl_epoch *e) {
    process_state *p = &w.all[rank];
    known_epoch *k = &w.epochs[find_epoch(sl_epoch_hash(e))];
    const uint32_t place = sl_epoch_place(e, rank);
    if (place == e->count || e->members[place].incarnation != p->incarnation)
        world_fail("rank %u begins an epoch that it is not in", rank);
    if (p->run != 0) {
        uint32_t i = 0;
        while (i < k->from_count && k->froms[i] != p->run)
            i++;
        if (i == k->from_count) {
            k->froms[k->from_count] = p->run;
            k->lasts[k->from_count++] = p->round;
        } else if (k->lasts[i] != p->round)
            world_fail("rank %u ends an epoch after round %llu, others after %llu", rank,
                       (unsigned long long)p->round, (unsigned long long)k->lasts[i]);
        if (e->round <= p->round)
            world_fail("rank %u goes back to round %llu", rank, (unsigned long long)e->round);
    }
    p->run = sl_epoch_hash(e);
    p->run_number = e->number;
}

void check_begin(uint32_t rank, const sl_membership_update *u) {
    process_state *p = &w.all[rank];
    if (u->view != NULL) {
        check_view(rank, u->view);
        if (u->round != u->view->round)
            world_fail("rank %u begins an epoch in another round", rank);
        memcpy(p->folded, p->lost, sizeof p->folded);
    } else if (u->round != p->round + 1)
        world_fail("rank %u goes from round %llu to %llu", rank, (unsigned long long)p->round,
                   (unsigned long long)u->round);
    /* Who is alone, or leaves alone, may free itself; so may a leader whom nobody has answered. */
    const bool unheard = sl_ballot_compare(p->led, p->promised) > 0 && !p->answered;
    const bool alone = p->leaves || p->aside || sl_membership_epoch(p->member)->count == 1;
    if (p->run_number == p->number && u->round > p->limit && !alone && !unheard)
        world_fail("rank %u begins round %llu, and has promised to stop after %llu", rank,
                   (unsigned long long)u->round, (unsigned long long)p->limit);
    p->round = u->round;
}

/* Are all who live out, and of the epochs that they know nobody lives? */
static bool nobody_trains(void) {
    for (uint32_t i = 0; i < RANKS; i++) {
        if (!w.all[i].alive)
            continue;
        const sl_epoch *others = sl_membership_others(w.all[i].member);
        if (sl_membership_epoch(w.all[i].member) != NULL)
            return false;
        for (uint32_t k = 0; k < others->count; k++)
            if (others->members[k].rank != i && w.all[others->members[k].rank].alive)
                return false;
    }
    return true;
}

bool is_one(void) {
    uint32_t alive = 0, first = RANKS;
    for (uint32_t i = 0; i < RANKS; i++)
        if (w.all[i].alive) {
            first = first == RANKS ? i : first;
            alive++;
        }
    if (nobody_trains())
        return true;
    const sl_epoch *e = sl_membership_epoch(w.all[first].member);
    if (e == NULL || e->count != alive || e->broken_count > 0)
        return false;
    for (uint32_t i = 0; i < RANKS; i++)
        if (w.all[i].alive && (w.all[i].run != sl_epoch_hash(e) || w.all[i].round < e->round + 3))
            return false;
    return true;
}
