/* membership_world.c - members of src/membership on a virtual network that delays, loses, repeats
 * and reorders messages, in a run where processes are killed, stopped, restarted, leave, step aside
 * and are parted; each from a seed (docs/reliability.md).
 *
 *   membership_world [-v] SEED [COUNT]     at most QUICK seeds with STARLING_QUICK set
 *
 * Held of each seed: views are one sequence, unless a process has ended; all who begin a view begin
 * it with the same round, the one after the round before, and come from the view before; nobody is
 * beyond a view's first round as it is agreed on. Once the faults are over, all living processes
 * come to one view of just them, with no broken edge, and train in it. Where small parts may go on
 * alone, they come together all the same. In each fifth run a member lies: nobody ends by that, or
 * passes over a round; nothing is said of how long it holds the others up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "members.h"
#include "membership/decision.h"
#include "seeds.h"
#include "starling/rng.h"
#include "virtual.h"

enum { QUICK = 200, FAULTS_MAX = 10 };
static const double tick_s = 0.1, refused_s = 0.1, calm_s = 60;

members_world w;
static uint32_t groups[RANKS]; /* who is parted from whom */
static sl_rng rng;
static bool over;  /* there are no more faults */
static bool falls; /* each process has a smaller incarnation than the one before */
static double grace_s, delay_s, loss, repeats;

/* ---- the world ---- */

static double uniform(void) {
    return sl_rng_uniform(&rng);
}

static uint32_t below(uint32_t n) {
    return sl_rng_below(&rng, n);
}

void note(const char *what, uint64_t a, uint64_t b, uint64_t c) {
    w.hash = sl_hash(w.hash, what, strlen(what));
    w.hash = sl_hash_word(sl_hash_word(sl_hash_word(w.hash, a), b), c);
    if (w.told)
        printf("%9.3f %-10s %llu %llu %llu\n", w.now_s, what, (unsigned long long)a,
               (unsigned long long)b, (unsigned long long)c);
}

static void push_for(happening_kind kind, uint32_t rank, double in_s) {
    push((happening){.at_s = w.now_s + in_s, .kind = kind, .rank = rank, .life = w.all[rank].life});
}

static void mail(uint32_t from, uint32_t to, letter *l) {
    push((happening){.at_s = w.now_s + 1e-3 + delay_s * uniform(),
                     .kind = DELIVER,
                     .rank = to,
                     .peer = from,
                     .life = w.all[from].met[to],
                     .from = w.all[from].life,
                     .letter = l});
}

/* To some of its peers, often in place of what it would say. */
static void lie(uint32_t rank) {
    for (uint32_t i = below(8); i > 0; i--) {
        const uint32_t to = below(RANKS);
        if (to != rank && w.all[to].alive)
            mail(rank, to, letter_of_lies(&rng, rank));
    }
}

static bool is_linked(uint32_t a, uint32_t b) {
    return groups[a] == groups[b];
}

/* ---- processes ---- */

static void step(uint32_t rank, sl_membership_event event);

static void end_process(uint32_t rank, const char *how) {
    process_state *p = &w.all[rank];
    note(how, rank, p->round, 0);
    p->alive = false;
    p->life = ++w.lives;
    sl_membership_close(&p->member);
}

static void obey(uint32_t rank, const sl_membership_update *u) {
    process_state *p = &w.all[rank];
    for (size_t i = 0; i < u->message_count; i++)
        for (int copies = uniform() < repeats ? 2 : 1; copies > 0; copies--)
            if (uniform() >= loss)
                mail(rank, u->messages[i].to, letter_copy(&u->messages[i].message));
    if (rank == w.liar)
        return; /* what follows for it does not count */
    if (u->committed != NULL)
        check_commit(rank, u->committed);
    if (u->order == SL_ORDER_BEGIN) {
        check_begin(rank, u);
        p->computed = false;
        push_for(COMPUTED, rank, p->compute_s * (0.5 + uniform()));
    }
    p->cut = p->cut || u->cut;
    if (u->cut) {
        seeds_count("nodes cut", 1);
        note("cut", rank, p->round, 0);
    }
    const bool dropped = u->order == SL_ORDER_RETURN,
               left = u->order == SL_ORDER_LEAVE || u->order == SL_ORDER_LEAVE_ALL,
               diverged = u->order == SL_ORDER_DIVERGED;
    if (dropped || u->order == SL_ORDER_ASK_AGAIN) {
        note(dropped ? "dropped" : "ask-again", rank, 0, 0);
        if (dropped) { /* perhaps for a view of another part */
            p->run = 0;
            p->number = sl_membership_others(p->member)->number;
        }
        p->aside = p->aside && !dropped;
        push_for(ASKS, rank, 0.2 * uniform());
    }
    if (left && !p->leaves && !p->aside)
        world_fail("rank %u ends, and did not want to", rank);
    if (diverged || left)
        end_process(rank, diverged ? "diverged" : "left");
}

static void step(uint32_t rank, sl_membership_event event) {
    sl_membership_update update;
    event.now_s = w.now_s;
    sl_membership_step(w.all[rank].member, &event, &update);
    obey(rank, &update);
}

/* They have no order: any, or later ones are smaller. */
static uint64_t incarnation_of(uint64_t life) {
    return falls ? UINT32_MAX - life : 2 + (sl_hash_word(w.seed, life) >> 12);
}

static void start_process(uint32_t rank, const sl_view *first) {
    process_state *p = &w.all[rank];
    const process_state before = *p; /* what it has sent is on its way */
    *p = (process_state){.alive = true,
                         .life = ++w.lives,
                         .incarnation = first != NULL ? SL_FOUNDER : incarnation_of(w.lives),
                         .compute_s = 0.02 + 0.15 * uniform()};
    memcpy(p->sent, before.sent, sizeof p->sent);
    p->views = before.views;
    const sl_membership_settings settings = {.rank = rank,
                                             .incarnation = p->incarnation,
                                             .ranks_max = RANKS,
                                             .quorum = w.quorum,
                                             .period = w.period,
                                             .grace_s = grace_s,
                                             .first = first};
    if (sl_membership_open(&p->member, &settings, NULL) != 0)
        world_fail("no memory");
    for (uint32_t i = 0; i < RANKS; i++)
        p->heard_s[i] = w.now_s;
    push_for(TICK, rank, tick_s * uniform());
    note("start", rank, p->incarnation, 0);
}

/* A process comes to a run that goes on; all find each other. */
static void come(uint32_t rank) {
    start_process(rank, NULL);
    for (uint32_t i = 0; i < RANKS; i++) {
        if (i == rank)
            continue;
        w.all[rank].lost[i] = true;
        if (w.all[i].alive && !w.all[i].lost[rank]) {
            w.all[i].lost[rank] = w.ended = true;
            if (!w.all[i].stopped)
                step(i, (sl_membership_event){
                            .type = SL_MEMBERSHIP_LOST, .peer = rank, .ended = true});
        }
    }
    push_for(ASKS, rank, 0.5 + uniform());
}

/* It fetches the model of a member that it reaches. */
static void ask_sponsor(uint32_t rank) {
    uint32_t found[RANKS], count = 0;
    for (uint32_t i = 0; i < RANKS; i++)
        if (i != rank && w.all[i].alive && !w.all[i].stopped && !w.all[rank].lost[i] &&
            sl_membership_newest(w.all[i].member) != NULL)
            found[count++] = i;
    if (sl_membership_newest(w.all[rank].member) != NULL)
        return;
    if (count == 0) {
        push_for(ASKS, rank, 0.5);
        return;
    }
    const uint32_t sponsor = found[below(count)];
    note("joins", rank, sponsor, 0);
    step(rank, (sl_membership_event){.type = SL_MEMBERSHIP_JOIN, .peer = sponsor});
}

/* As agents do: the view lacks the rank, or has this process. */
static bool lets_in(uint32_t rank, uint32_t peer) {
    const sl_view *e = sl_membership_newest(w.all[rank].member);
    return e == NULL || sl_view_place(e, peer) == e->count ||
           sl_view_has(e, peer, w.all[peer].incarnation);
}

/* It hears of another process of that rank, which cannot come before the one that was is left out.
 */
static void turn_away(uint32_t rank, uint32_t peer) {
    process_state *p = &w.all[rank];
    if (lets_in(rank, peer) || p->ended[peer])
        return;
    p->lost[peer] = p->ended[peer] = w.ended = true;
    step(rank, (sl_membership_event){.type = SL_MEMBERSHIP_LOST, .peer = peer, .ended = true});
}

/* Both ends find that they reach each other again. */
static void find_each_other(uint32_t a, uint32_t b) {
    turn_away(a, b);
    turn_away(b, a);
    if (!w.all[a].alive || !w.all[b].alive || !lets_in(a, b) || !lets_in(b, a))
        return;
    w.all[a].met[b] = w.all[b].life;
    w.all[b].met[a] = w.all[a].life;
    for (int end = 0; end < 2; end++) {
        const uint32_t rank = end == 0 ? a : b, peer = end == 0 ? b : a;
        w.all[rank].heard_s[peer] = w.now_s;
        if (w.all[rank].lost[peer] && w.all[rank].alive) {
            w.all[rank].lost[peer] = w.all[rank].ended[peer] = false;
            note("reached", rank, peer, 0);
            step(rank, (sl_membership_event){.type = SL_MEMBERSHIP_REACHED, .peer = peer});
        }
    }
}

static bool runs(uint32_t rank) {
    return w.all[rank].alive && !w.all[rank].stopped;
}

static void lose(uint32_t rank, uint32_t peer) {
    process_state *p = &w.all[rank];
    if (w.lost_s >= 0 && w.lost_round == 0) {
        w.lost_s = w.now_s;
        for (uint32_t i = 0; i < RANKS; i++)
            if (w.all[i].alive && w.all[i].round > w.lost_round)
                w.lost_round = w.all[i].round;
    }
    p->lost[peer] = true;
    p->ended[peer] = !w.all[peer].alive && is_linked(rank, peer);
    w.ended = w.ended || p->ended[peer];
    note("lost", rank, peer, p->ended[peer]);
    step(rank,
         (sl_membership_event){.type = SL_MEMBERSHIP_LOST, .peer = peer, .ended = p->ended[peer]});
}

static void watch(uint32_t rank) {
    process_state *p = &w.all[rank];
    for (uint32_t i = 0; i < RANKS && p->alive; i++) {
        if (i == rank)
            continue;
        if (p->lost[i]) {
            if (runs(i) && is_linked(rank, i) && uniform() < 0.2)
                find_each_other(rank, i);
            if (p->alive && !p->ended[i] && !w.all[i].alive && is_linked(rank, i))
                lose(rank, i); /* its port refuses */
            continue;
        }
        const sl_view *e = sl_membership_newest(p->member);
        const uint32_t run = find_view(p->run);
        const sl_view *begun = run < w.view_count ? &w.views[run].decision.view : NULL;
        const bool cares = w.all[i].alive || (e != NULL && sl_view_member(e, i) != NULL) ||
                           (begun != NULL && sl_view_member(begun, i) != NULL);
        const double limit_s = !w.all[i].alive && is_linked(rank, i) ? refused_s : grace_s;
        if (cares && w.now_s - p->heard_s[i] > limit_s &&
            !(is_linked(rank, i) && runs(i) && e == NULL))
            lose(rank, i);
    }
}

/* Has it sent this round under this view? */
static bool has_sent(const process_state *p, uint64_t run, uint64_t round) {
    if (p == &w.all[w.liar])
        return true;
    for (int i = 0; i < SENT_MAX; i++)
        if (p->sent[i].run == run && p->sent[i].round >= round)
            return true;
    return false;
}

/* A ring over the places, without broken edges. */
static void try_to_end(uint32_t rank) {
    process_state *p = &w.all[rank];
    if (!p->computed || p->run == 0)
        return;
    const sl_view *e = &w.views[find_view(p->run)].decision.view;
    const uint32_t place = sl_view_place(e, rank);
    for (uint32_t side = 1; side < 1 + 2 && !p->cut; side++) {
        const sl_member *other = &e->members[(place + (side == 1 ? 1 : e->count - 1)) % e->count];
        if (other->rank != rank && !sl_view_is_broken(e, rank, other->rank) &&
            !has_sent(&w.all[other->rank], p->run, p->round))
            return;
    }
    p->computed = false;
    step(rank, (sl_membership_event){.type = SL_MEMBERSHIP_READY});
}

/* ---- faults ---- */

static uint32_t some_process(void) {
    uint32_t rank = below(RANKS);
    for (uint32_t i = 0; i < RANKS && !w.all[rank].alive; i++)
        rank = (rank + 1) % RANKS;
    return rank;
}

/* Its gradient is of no use. */
static void step_aside(uint32_t rank) {
    note("aside", rank, 0, 0);
    w.all[rank].aside = true;
    step(rank, (sl_membership_event){.type = SL_MEMBERSHIP_ASIDE});
}

static void end_gradient(uint32_t rank) {
    process_state *p = &w.all[rank];
    const bool spoiled = p->spoiled && !p->leaves && p->run != 0;
    if (p->aside)
        return;
    p->spoiled = false;
    p->computed = !spoiled;
    if (spoiled)
        step_aside(rank);
    else
        try_to_end(rank);
}

static uint32_t with_epoch(void) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < RANKS; i++)
        count += runs(i) && sl_membership_newest(w.all[i].member) != NULL;
    return count;
}

static void kill_process(uint32_t rank) {
    if (!w.all[rank].alive || with_epoch() < 3)
        return;
    seeds_count("killed", 1);
    end_process(rank, "kill");
    for (uint32_t i = 0; i < RANKS; i++)
        if (w.all[i].heard_s[rank] < w.now_s && is_linked(i, rank) && uniform() < 0.8)
            w.all[i].heard_s[rank] = w.now_s; /* its port refuses from now on */
}

static void wake(uint32_t rank) {
    if (!w.all[rank].alive || !w.all[rank].stopped)
        return;
    w.all[rank].stopped = false;
    for (uint32_t i = 0; i < RANKS; i++)
        w.all[rank].heard_s[i] = w.now_s;
    note("wakes", rank, 0, 0);
    push_for(TICK, rank, 0);
    push_for(COMPUTED, rank, 0);
}

static void part(void) {
    const uint32_t parts = 2 + below(2);
    for (uint32_t i = 0; i < RANKS; i++)
        groups[i] = below(parts);
    note("part", parts, 0, 0);
}

static void heal(void) {
    memset(groups, 0, sizeof groups);
    note("heal", 0, 0, 0);
}

static void do_fault(void) {
    const uint32_t rank = some_process();
    switch (below(8)) {
    case 0:
        kill_process(rank);
        break;
    case 1: /* two at once */
        kill_process(rank);
        kill_process(some_process());
        break;
    case 2:
        if (w.all[rank].alive && with_epoch() >= 3 && !w.all[rank].stopped) {
            w.all[rank].stopped = true;
            note("stops", rank, 0, 0);
        }
        break;
    case 3:
        wake(rank);
        break;
    case 4:
        part();
        break;
    case 5:
        heal();
        break;
    case 6:
        if (below(2) == 0 && runs(rank) && with_epoch() >= 3) {
            note("leaves", rank, 0, 0);
            w.all[rank].leaves = true;
            step(rank, (sl_membership_event){.type = SL_MEMBERSHIP_LEAVE});
        } else {
            const uint32_t who = below(RANKS);
            if (!w.all[who].alive || with_epoch() >= 3) { /* a rank that lives is killed first */
                if (w.all[who].alive)
                    end_process(who, "kill");
                come(who);
            }
        }
        break;
    case 7:
        w.all[rank].spoiled = w.all[rank].alive && with_epoch() >= 3;
        break;
    }
}

static void end_faults(void) {
    over = true;
    loss = repeats = 0;
    heal();
    if (w.liar < RANKS && w.all[w.liar].alive)
        end_process(w.liar, "kill");
    w.liar = RANKS;
    for (uint32_t i = 0; i < RANKS; i++)
        wake(i);
}

/* ---- a seed ---- */

static void deliver(const happening *h) {
    process_state *p = &w.all[h->rank];
    const bool is_met = p->life == h->life && p->met[h->peer] == h->from;
    if (runs(h->rank) && is_linked(h->rank, h->peer) && !p->lost[h->peer] && is_met) {
        p->heard_s[h->peer] = w.now_s;
        const sl_membership_event event = {.type = SL_MEMBERSHIP_MESSAGE,
                                           .message = &h->letter->message};
        step(h->rank, event);
    }
    free(h->letter);
}

static void happen(const happening *h) {
    process_state *p = &w.all[h->rank];
    const bool is_its = p->alive && p->life == h->life && !p->stopped;
    switch (h->kind) {
    case TICK:
        if (!is_its)
            break;
        watch(h->rank);
        if (h->rank == w.liar)
            lie(h->rank);
        if (p->alive)
            step(h->rank, (sl_membership_event){.type = SL_MEMBERSHIP_TICK});
        if (p->alive && p->life == h->life) {
            try_to_end(h->rank);
            push_for(TICK, h->rank, tick_s);
        }
        break;
    case DELIVER:
        deliver(h);
        break;
    case COMPUTED:
        if (!is_its)
            break;
        end_gradient(h->rank);
        break;
    case FAULT:
        do_fault();
        break;
    case ASKS:
        if (is_its)
            ask_sponsor(h->rank);
        else if (p->alive && p->life == h->life)
            push_for(ASKS, h->rank, 1);
        break;
    case FOUND:
        end_faults();
        break;
    }
}

static void begin_run(uint64_t seed) {
    rng = sl_rng_open(seed, 0, 0, SL_PURPOSE_FAULT);
    memset(w.all, 0, sizeof w.all);
    memset(groups, 0, sizeof groups);
    w.now_s = 0;
    w.lives = w.view_count = w.lost_round = 0;
    w.hash = SL_HASH_START;
    over = w.ended = false;
    falls = seed % 2 == 0;
    w.seed = seed;
    w.nodes = seed % 8 == 0 ? NODES : 1 + below(NODES);
    w.period = 1 + (below(4) == 0) * below(4);
    w.quorum = seed % 7 == 3;
    w.liar = seed % 5 == 4 && w.nodes > 2 && seed % 8 != 0 ? below(w.nodes) : RANKS;
    w.lied = w.liar < RANKS;
    grace_s = 2 + uniform(); /* NEWS are the heartbeats here */
    w.lost_s = seed % 8 == 0 ? 0 : -1;
    delay_s = w.lost_s >= 0 ? 0.02 : 0.01 + (below(3) == 0) * 0.3 * uniform();
    loss = w.lost_s < 0 && below(2) == 0 ? 0.3 * uniform() : 0;
    repeats = w.lost_s < 0 && below(2) == 0 ? 0.3 * uniform() : 0;
    sl_member members[RANKS];
    for (uint32_t i = 0; i < w.nodes; i++)
        members[i] = (sl_member){i, SL_FOUNDER};
    const sl_decision first = {
        .view = {.number = 1, .round = 1, .members = members, .count = w.nodes}};
    learn(&first);
    for (uint32_t i = 0; i < w.nodes; i++) {
        start_process(i, &first.view);
        w.all[i].number = 1;
        w.all[i].run = w.all[i].sent[0].run = w.views[0].hash;
        w.all[i].views = 1;
        for (uint32_t k = 0; k < w.nodes; k++)
            w.all[i].met[k] = 1 + k;
        step(i, (sl_membership_event){.type = SL_MEMBERSHIP_READY});
    }
}

static uint64_t run_seed(uint64_t seed, bool verbose) {
    w.told = verbose;
    begin_run(seed);
    double end_s = 6;
    if (w.lost_s >= 0) {
        w.now_s = 0.5 + uniform();
        end_s = w.now_s + 2;
        w.now_s = 0;
        push((happening){.at_s = end_s - 1, .kind = FOUND, .rank = 0});
    } else {
        const uint32_t faults = below(FAULTS_MAX + 1);
        for (uint32_t i = 0; i < faults; i++)
            push((happening){.at_s = 0.5 + 12 * uniform(), .kind = FAULT});
        end_s = 13;
        push((happening){.at_s = end_s, .kind = FOUND});
    }
    const double latest_s = end_s + calm_s;
    bool killed = w.lost_s < 0;
    while (!nothing_is_left() && w.now_s < latest_s) {
        const happening h = pop();
        w.now_s = h.at_s;
        if (!killed && w.now_s > 1) {
            killed = true;
            kill_process(below(w.nodes));
        }
        happen(&h);
        if (over && w.now_s > end_s && h.kind == TICK && is_one())
            break;
    }
    if (w.now_s >= latest_s && !w.lied)
        world_fail("the living do not come together within %g s", calm_s);
    note("end", w.view_count, 0, 0);
    forget(false);
    for (uint32_t i = 0; i < RANKS; i++)
        if (w.all[i].alive)
            sl_membership_close(&w.all[i].member);
    return w.hash;
}

int main(int count, char **arguments) {
    w.views = calloc(VIEWS_MAX, sizeof *w.views);
    const int result = seeds_main(count, arguments, QUICK, run_seed);
    free(w.views);
    forget(true);
    return result;
}
