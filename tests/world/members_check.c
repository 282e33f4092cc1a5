/* members_check.c - what must hold of members; see members.h. */
#include <string.h>

#include "members.h"
#include "membership/decision.h"
#include "seeds.h"
#include "virtual.h"

static const double slowest_commit_s = 2;

static bool is_same(const sl_view *a, const sl_view *b) {
    return a->number == b->number && a->round == b->round && a->exchange == b->exchange &&
           a->count == b->count && a->broken_count == b->broken_count &&
           memcmp(a->members, b->members, a->count * sizeof *a->members) == 0 &&
           (a->broken_count == 0 ||
            memcmp(a->broken, b->broken, a->broken_count * sizeof *a->broken) == 0);
}

uint32_t find_view(uint64_t of) {
    uint32_t i = 0;
    while (i < w.view_count && w.views[i].hash != of)
        i++;
    return i;
}

/* Views are one sequence, unless small parts may go on, or dead members did not count. */
static void check_sequence(const sl_decision *d) {
    for (uint32_t i = 0; i < w.view_count && w.quorum == 0 && !w.ended && !w.lied; i++)
        if (w.views[i].decision.view.number == d->view.number)
            world_fail("there are two views of number %llu", (unsigned long long)d->view.number);
}

/* Nobody of it is beyond its beginning. */
static void check_rounds(const sl_decision *d) {
    for (uint32_t i = 0; i < d->view.count && !w.lied; i++) {
        const process_state *p = &w.all[d->view.members[i].rank];
        if (p->alive && !p->aside && p->incarnation == d->view.members[i].incarnation &&
            p->number + 1 == d->view.number && p->run != 0 && p->round >= d->view.round)
            world_fail("rank %u is in round %llu, and a view begins with %llu",
                       d->view.members[i].rank, (unsigned long long)p->round,
                       (unsigned long long)d->view.round);
    }
}

uint32_t learn(const sl_decision *d) {
    const uint64_t of = sl_view_hash(&d->view);
    const uint32_t i = find_view(of);
    if (i < w.view_count) {
        if (!is_same(&w.views[i].decision.view, &d->view))
            world_fail("two views have one hash");
        return i;
    }
    if (!sl_view_is_valid(&d->view) ||
        (!w.lied && d->view.exchange != (d->view.round - 1) / w.period))
        world_fail("view %llu is not sound", (unsigned long long)d->view.number);
    if (w.view_count == VIEWS_MAX)
        world_fail("there are too many views");
    check_sequence(d);
    check_rounds(d);
    known_view *k = &w.views[w.view_count++];
    *k = (known_view){.hash = of, .decision = *d};
    memcpy(k->members, d->view.members, d->view.count * sizeof(sl_member));
    if (d->view.broken_count > 0)
        memcpy(k->broken, d->view.broken, d->view.broken_count * sizeof(sl_pair));
    k->decision.view.members = k->members;
    k->decision.view.broken = k->broken;
    note("view", d->view.number, d->view.round, d->view.count);
    return i;
}

void check_commit(uint32_t rank, const sl_decision *d) {
    process_state *p = &w.all[rank];
    learn(d);
    seeds_count("times a view taken", 1);
    note("commit", rank, d->view.number, d->view.round);
    if (d->view.number <= p->number)
        world_fail("rank %u goes back to view %llu", rank, (unsigned long long)d->view.number);
    p->number = d->view.number;
    if (w.lost_s < 0)
        return;
    if (w.now_s - w.lost_s > slowest_commit_s)
        world_fail("rank %u hears COMMIT %.3f s after the loss", rank, w.now_s - w.lost_s);
    if (d->view.round > w.lost_round + w.nodes / 2 + 1)
        world_fail("the loss is seen in round %llu, and the view begins with %llu",
                   (unsigned long long)w.lost_round, (unsigned long long)d->view.round);
}

static void check_view(uint32_t rank, const sl_view *e) {
    process_state *p = &w.all[rank];
    const known_view *k = &w.views[find_view(sl_view_hash(e))];
    const sl_view *before = p->run != 0 ? &w.views[find_view(p->run)].decision.view : NULL;
    if (!sl_view_has(e, rank, p->incarnation))
        world_fail("rank %u begins a view that it is not in", rank);
    if (before != NULL && before->number + 1 != e->number)
        world_fail("rank %u passes over a view", rank);
    if (before != NULL && p->round + 1 != e->round)
        world_fail("rank %u goes from round %llu to a view's first, %llu", rank,
                   (unsigned long long)p->round, (unsigned long long)e->round);
    if (before != NULL && k->decision.cut && !p->cut && p->round > before->round &&
        w.all[rank].sent[(p->views - 1) % SENT_MAX].round > e->round - 1)
        world_fail("rank %u has exchanged beyond a cut", rank);
    p->run = k->hash;
    p->cut = false;
    p->sent[p->views++ % SENT_MAX].run = p->run;
}

void check_begin(uint32_t rank, const sl_membership_update *u) {
    process_state *p = &w.all[rank];
    if (u->view != NULL)
        check_view(rank, u->view);
    else if (u->round != p->round + 1)
        world_fail("rank %u goes from round %llu to %llu", rank, (unsigned long long)p->round,
                   (unsigned long long)u->round);
    if (u->view != NULL && u->round != u->view->round)
        world_fail("rank %u begins a view in another round", rank);
    p->round = u->round;
    if (!p->cut)
        p->sent[(p->views - 1) % SENT_MAX].round = u->round;
}

/* Are all who live out? The last members may have left, or stepped aside. */
static bool nobody_trains(void) {
    for (uint32_t i = 0; i < RANKS; i++)
        if (w.all[i].alive && sl_membership_newest(w.all[i].member) != NULL)
            return false;
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
    const sl_view *e = sl_membership_newest(w.all[first].member);
    if (e == NULL || e->count != alive || e->broken_count > 0)
        return false;
    for (uint32_t i = 0; i < RANKS; i++)
        if (w.all[i].alive && (w.all[i].run != sl_view_hash(e) || w.all[i].round < e->round + 3))
            return false;
    return true;
}
