/* loss_world.c - many runs of agents that go on without who is lost, in a virtual world, each from
 * a seed (docs/reliability.md).
 *
 *   loss_world [-v] SEED [COUNT]     at most QUICK seeds with STARLING_QUICK in the environment
 *
 * Agents are killed, stopped for longer than membership.grace_s, and asked to leave; connections
 * are cut; in each seventh seed loss, gradient or model of one agent become infinite or NaN. Each
 * third seed trains for so long that who was stopped can return, and each ninth is in two parts for
 * a while, half of these without other strikes. Each 22nd has a key, and seals all frames. In each
 * fifteenth more is struck, and whoever has ended is started again, to join. Held of each seed:
 *   - whoever was not struck ends well, after all rounds, with finite numbers;
 *   - who joins, with a rank beyond the topology, ends well, or says that nobody let it in;
 *   - who was stopped returns and ends well, or says that the others have come to the end;
 *   - whose numbers are not finite returns, or ends as diverged: it does if they stay so;
 *   - who was asked to leave ends well, or has left, and in time where nothing else goes wrong;
 *   - push-sum: who was stopped or parted, or comes back after the others' end, and was left with
 *     whom it only sends to, may end as diverged;
 *   - nobody waits for longer than the losses explain;
 *   - who joins has mixed in time, once nothing more goes wrong, and nobody is left out then;
 *   - each eleventh seed has a liar beside five or more honest ones: they end well, after all
 * rounds;
 *   - where agents are only killed, all who go on notice it by the port, not by silence;
 *   - nobody holds more memory than its forecast and a bound; in each 50th seed a model is large;
 *   - the same seed is the same run.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk.h"
#include "expected.h"
#include "joining.h"
#include "liar.h"
#include "logbook.h"
#include "loss_seed.h"
#include "seeds.h"
#include "virtual.h"
#include "wire/checksum.h"

enum { QUICK = 80 };
static const size_t agent_bytes = 64u << 10, member_bytes = 8u << 10, connection_bytes = 18u << 10,
                    sealed_bytes = (20 << 10) + NODES_MAX * 4 * (16 << 10); /* as in fault_world */
static const double first_s = 1000, most_s = 400, notice_s = 0.5, leave_s = 2.5, heal_s = 8,
                    join_s = 6, return_s = 10;

typedef struct peer {
    process *process;
    sl_agent *agent;
    uint32_t rank;
    bool trains, struck, ended;
    bool joins;       /* this process does */
    double killed_s;  /* 0: it was not */
    double through_s; /* with its last round, or its end */
    double ended_s;
    double leaves_s; /* since when; 0: it was not asked to */
    double wakes_s;  /* from its last stop */
    bool untold;     /* that it trains alone */
    bool ahead;      /* it has trained alone in its last view, and waited for nobody */
    bool spoiled;    /* its numbers are not finite any more */
    bool away;       /* the others go on without it, and it has not returned */
    int result;
    sl_error error;
    uint64_t recorded; /* the last round */
    uint32_t members;  /* of its last view; 0: it has had none but the first */
    logbook logbook;
} peer;

static loss_seed drawn;
static peer peers[NODES_MAX];
static struct parting {
    double at_s; /* it began, or was healed */
    bool is_up, was;
} parting;
static uint64_t finished, left, lost, views, returned, healed, joined, isolated; /* of all seeds */

/* ---- strikes ---- */

/* Before, a loss ends the run. */
static bool all_train(void) {
    for (uint32_t i = 0; i < drawn.s.nodes; i++)
        if (!peers[i].trains)
            return false;
    return true;
}

static bool are_neighbours(uint32_t a, uint32_t b) {
    const uint32_t *list, count = sl_topology_peers(experiment->topology, a, &list);
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == b)
            return true;
    return false;
}

static void part(bool is_parted) {
    for (uint32_t a = 0; a < drawn.s.nodes; a++)
        for (uint32_t b = 0; b < a; b++)
            if ((drawn.side >> a & 1) != (drawn.side >> b & 1) &&
                (!loss_parts_edges(&drawn.s) || are_neighbours(a, b)))
                network_part(a, b, is_parted);
    parting.is_up = is_parted;
    parting.at_s = world_now();
    joining_trouble();
}

static void heal(void *ignored, uint64_t also) {
    (void)ignored;
    (void)also;
    part(false);
}

static void *be_agent(void *of);

static void start(void *of, uint64_t ignored) {
    peer *p = of;
    (void)ignored;
    if (p->joins)
        joining_begin(p->rank);
    p->process = process_start(p->rank, be_agent, p);
}

/* Has somebody come so far that a view may begin too late? */
static bool is_nearly_over(void) {
    for (uint32_t i = 0; i < loss_ranks(&drawn.s); i++)
        if (peers[i].recorded + 6 * drawn.s.nodes > drawn.s.rounds)
            return true;
    return false;
}

/* Is there anybody awake since then who could let it in? Who is away itself has no
 * model that holds. */
static bool others_train(const peer *p, double since_s) {
    bool any = false;
    for (uint32_t i = 0; i < loss_ranks(&drawn.s); i++)
        any = any || (i != p->rank && peers[i].process != NULL && peers[i].process->alive &&
                      peers[i].recorded > 0 && !peers[i].away && peers[i].wakes_s < since_s);
    return any;
}

/* Another process takes its rank, while there is a run to join. */
static void start_again(void *of, uint64_t ignored) {
    peer *p = of;
    if (is_nearly_over() || !others_train(p, INFINITY))
        return;
    *p = (peer){.rank = p->rank, .joins = true, .trains = true, .struck = true};
    start(p, ignored);
}

static void see_end(peer *p) {
    if (loss_restarts(&drawn.s))
        world_at(world_now() + 0.01 + 0.2 * world_uniform(), start_again, p, 0);
}

static void go_on(void *of, uint64_t ignored) {
    (void)ignored;
    joining_trouble();
    process_go_on(of);
}

static void hit(void *of, uint64_t ignored) {
    const strike *k = of;
    peer *p = &peers[k->a];
    (void)ignored;
    world_note("strikes", k->kind, k->a, k->b);
    if (p->process == NULL || !p->process->alive || !all_train())
        return;
    joining_trouble();
    switch (k->kind) {
    case STRIKE_KILL:
        p->struck = true;
        p->killed_s = world_now();
        process_kill(p->process, false);
        p->agent = NULL;
        see_end(p);
        break;
    case STRIKE_STOP:
        p->struck = true;
        p->wakes_s = world_now() + k->seconds;
        process_stop(p->process);
        world_at(world_now() + k->seconds, go_on, p->process, 0);
        break;
    case STRIKE_LEAVE:
        p->struck = true;
        if (p->agent != NULL && p->leaves_s == 0) {
            p->leaves_s = world_now();
            sl_agent_leave(p->agent);
        }
        break;
    case STRIKE_CUT:
        network_break_between(k->a, k->b, BREAK_RESET);
        break;
    case STRIKE_KINDS:
        break;
    }
}

static void on_round(void *context, uint32_t rank, uint64_t round) {
    ((peer *)context)->trains = true;
    if (loss_is_parted(&drawn.s) && !parting.was && round >= drawn.parting_round && all_train()) {
        parting.was = true;
        part(true);
        world_at(world_now() + drawn.parted_s, heal, NULL, 0);
    }
    for (int i = 0; i < drawn.strike_count; i++)
        if (drawn.strikes[i].round == round && drawn.strikes[i].a == rank)
            world_at(world_now() + drawn.strikes[i].at_s, hit, &drawn.strikes[i], 0);
}

/* ---- numbers that are not finite ---- */

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    const sl_task plain = scenario_task(context);
    const double loss = plain.gradient(context, rank, round, x, g);
    for (size_t i = 0; i < drawn.s.dimension && loss_steps_too_far(&drawn.s); i++)
        g[i] /= FARTHER;
    if (rank != drawn.spoiled_rank || round < drawn.spoiled_round ||
        round - drawn.spoiled_round >= drawn.spoiled_rounds)
        return loss;
    peers[rank].spoiled = peers[rank].struck = true;
    world_note("spoils", rank, round, 0);
    joining_trouble();
    if (drawn.s.seed / 7 % 3 == 0)
        return NAN;
    g[round % drawn.s.dimension] = loss_steps_too_far(&drawn.s) ? 3e38f : INFINITY;
    return loss;
}

/* ---- an agent ---- */

static int on_record(void *context, const sl_record *record, const float *x) {
    peer *p = context;
    p->recorded = record->round.round;
    p->through_s = p->recorded == drawn.s.rounds ? world_now() : 0;
    joining_end(p->rank, join_s);
    world_note("records", p->rank, p->recorded, sl_checksum(x, drawn.s.dimension * sizeof *x));
    for (size_t i = 0; i < drawn.s.dimension; i++)
        if (!isfinite(x[i]))
            world_fail("agent %u has a number that is not finite after round %llu", p->rank,
                       (unsigned long long)p->recorded);
    return 0;
}

static void on_notice(void *context, const char *text) {
    peer *p = context;
    world_say(p->rank, text);
    if (strstr(text, "no connection to agent") == NULL)
        return;
    p->untold = false;
    p->ahead = strstr(text, "trains alone") != NULL;
    isolated += p->ahead;
}

static void on_aside(void *context, uint32_t rank, uint64_t round, const char *why) {
    (void)rank;
    (void)round;
    (void)why;
    ((peer *)context)->away = true;
}

static bool has_anybody_ended(void) {
    for (uint32_t i = 0; i < loss_ranks(&drawn.s); i++)
        if (peers[i].process != NULL && !peers[i].process->alive)
            return true;
    return false;
}

/* It comes back with a later round than it had, unless it was ahead, or a process has ended, which
 * does not count as a member that is missing: then small parts may go on. */
static void on_returned(void *context, uint32_t rank, uint64_t round) {
    peer *p = context;
    world_note("returns", rank, round, 0);
    p->away = false;
    const bool any = p->ahead || loss_restarts(&drawn.s) || has_anybody_ended();
    p->ahead = false;
    if ((round <= p->recorded + 1 && !any) || round > drawn.s.rounds)
        world_fail("agent %u returns in round %llu, after round %llu", rank,
                   (unsigned long long)round, (unsigned long long)p->recorded);
    joining_return(rank, return_s);
    returned++;
}

static bool all_strikes_are(strike_kind kind) {
    for (int i = 0; i < drawn.strike_count; i++)
        if (drawn.strikes[i].kind != kind)
            return false;
    return true;
}

/* The port of who is killed refuses at once. Who has ended is no loss, and who lives neither. Who
 * joins says so when it gives up, a little before it has ended. */
static void judge_notice(const peer *p, const sl_log_entry *entry) {
    const peer *lost_one = &peers[entry->peer];
    const double after_s = world_now() - lost_one->killed_s;
    if (!all_strikes_are(STRIKE_KILL) || loss_is_parted(&drawn.s) || loss_restarts(&drawn.s) ||
        lost_one->spoiled || lost_one->through_s > 0 || entry->peer == drawn.s.nodes ||
        drawn.liar < drawn.s.nodes)
        return;
    if (lost_one->killed_s == 0)
        world_fail("agent %u takes agent %u for lost, which lives", p->rank, entry->peer);
    if (after_s > notice_s)
        world_fail("agent %u notices the loss of agent %u after %.3f s", p->rank, entry->peer,
                   after_s);
}

/* A view of all, with a topology as at first: are all its edges parted, and noticed as such? */
static bool is_isolated(const peer *p, uint64_t members) {
    const uint32_t *list;
    if (p->rank >= drawn.s.nodes) /* it joins */
        return false;
    const uint32_t count = sl_topology_peers(experiment->topology, p->rank, &list);
    for (uint32_t i = 0; i < count; i++)
        if ((drawn.side >> list[i] & 1) == (drawn.side >> p->rank & 1))
            return false;
    return loss_parts_edges(&drawn.s) && parting.is_up && members == drawn.s.nodes &&
           world_now() > parting.at_s + drawn.grace_s + 1;
}

static void on_log(void *context, const sl_log_entry *entry) {
    peer *p = context;
    if (entry->kind == SL_LOG_LOST)
        judge_notice(p, entry);
    lost += entry->kind == SL_LOG_LOST;
    if (entry->kind == SL_LOG_VIEW) {
        views++;
        p->members = entry->members;
        p->untold = is_isolated(p, entry->members);
    }
    logbook_take(&p->logbook, entry, drawn.s.rounds);
}

static void *be_agent(void *of) {
    peer *p = of;
    const sl_agent_settings settings = {.rank = p->rank,
                                        .credentials =
                                            loss_has_key(&drawn.s) ? expected_key() : NULL,
                                        .joins = p->joins,
                                        .observer = {.context = p,
                                                     .record = on_record,
                                                     .round = on_round,
                                                     .aside = on_aside,
                                                     .returned = on_returned,
                                                     .notice = on_notice,
                                                     .log = on_log}};
    const uint32_t agents = p->rank < drawn.s.nodes ? drawn.s.nodes : p->rank + 1;
    p->result = expected_run(&p->agent, settings, agents, &p->error);
    logbook_close(&p->logbook, p->rank, p->result);
    p->ended = true;
    p->ended_s = world_now();
    p->through_s = p->through_s > 0 ? p->through_s : p->ended_s;
    world_note("ended", p->rank, (uint64_t)(int64_t)p->result, p->recorded);
    if (p->result != 0 && p->result != SL_EDIVERGED)
        see_end(p);
    const bool cut_off =
        loss_is_parted(&drawn.s) && (parting.is_up || world_now() < parting.at_s + heal_s);
    if (loss_restarts(&drawn.s) && p->joins && p->result == SL_EPEER && !is_nearly_over() &&
        !cut_off && others_train(p, world_now() - join_s))
        world_fail("agent %u has not come back: %s", p->rank, p->error.text);
    return NULL;
}

/* It knocks from some time on, until it is in or the others have ended. */
static void start_joiner(void) {
    peers[drawn.s.nodes] = (peer){.rank = drawn.s.nodes, .joins = true, .struck = true};
    world_at(first_s + 0.1 + drawn.s.seed % 17 * 0.1, start, &peers[drawn.s.nodes], 0);
}

static bool all_are_over(void) {
    for (uint32_t i = 0; i < loss_ranks(&drawn.s); i++)
        if (peers[i].process == NULL || peers[i].process->alive)
            return false;
    return true;
}

/* ---- a seed ---- */

/* Did those who were not struck end before it, and so soon that it could not return? */
static bool others_were_through(const peer *p) {
    const double healed_s = parting.was ? parting.at_s : INFINITY;
    for (uint32_t i = 0; i < drawn.s.nodes; i++)
        if (peers[i].ended && !peers[i].struck && peers[i].result == 0 &&
            (peers[i].through_s > p->ended_s || peers[i].through_s > healed_s + heal_s))
            return false;
    return true;
}

/* Agents that were stopped and woke up, or were parted from the others, may reach more than one
 * that has lost them: they are left out. If the others end before they can return, they end, and
 * say so. So does whom a leader does not reach; then those who train alone are ahead of the others,
 * and the view that has it comes too late. */
static bool came_too_late(const peer *p) {
    bool missed = parting.was;
    for (int i = 0; i < drawn.strike_count; i++)
        missed = missed || drawn.strikes[i].kind == STRIKE_STOP;
    if (strstr(p->error.text, "membership.minority_s") != NULL)
        return missed;
    return (loss_parts_edges(&drawn.s) || (missed && others_were_through(p))) &&
           strstr(p->error.text, "have gone on without this agent") != NULL;
}

/* The plans are of the run and of its view. */
static void judge_memory(const peer *p) {
    const process *of = p->process;
    expected_memory(of, p->rank,
                    agent_bytes + 3 * sizeof(sl_plan) + drawn.s.nodes * member_bytes +
                        of->connections_max * connection_bytes +
                        (loss_has_key(&drawn.s) ? sealed_bytes : 0));
}

static void judge(const peer *p, bool verbose) {
    if (verbose)
        printf("agent %u: %s%d after round %llu %s\n", p->rank, p->struck ? "struck, " : "",
               p->result, (unsigned long long)p->recorded, p->result != 0 ? p->error.text : "");
    if (p->process->alive)
        world_fail("agent %u still waits at %.3f s", p->rank, world_now() - first_s);
    if (!p->ended || p->rank == drawn.liar) /* it was killed, or gets what it asked for */
        return;
    /* and nobody gave it any */
    const bool gave_all =
        (p->struck || parting.was || loss_restarts(&drawn.s) || others_were_through(p)) &&
        strstr(drawn.s.text, "sgp") != NULL;
    if (p->result != 0 && !p->struck && !came_too_late(p) &&
        !(gave_all && p->result == SL_EDIVERGED))
        world_fail("agent %u ended early: %s", p->rank, p->error.text);
    const bool calm = all_strikes_are(STRIKE_LEAVE) && drawn.spoiled_round == UINT64_MAX &&
                      !loss_is_parted(&drawn.s);
    if (p->leaves_s > 0 && calm && p->ended_s - p->leaves_s > leave_s)
        world_fail("agent %u leaves after %.3f s", p->rank, p->ended_s - p->leaves_s);
    if (p->result == 0 && p->recorded != drawn.s.rounds)
        world_fail("agent %u ended well after round %llu of %llu", p->rank,
                   (unsigned long long)p->recorded, (unsigned long long)drawn.s.rounds);
    left += p->result == SL_ELEFT;
    if (p->spoiled && p->result == 0 && drawn.spoiled_rounds == UINT64_MAX)
        world_fail("agent %u ended well, with numbers that are not finite", p->rank);
    joined += p->rank == drawn.s.nodes && p->result == 0;
    const bool outside = p->joins && strstr(p->error.text, "wants to join") != NULL;
    const bool alone = strstr(p->error.text, "gone on without") != NULL || outside ||
                       (gave_all && p->result == SL_EDIVERGED) ||
                       (p->spoiled && p->result == SL_EDIVERGED);
    const bool stopped = p->joins && p->leaves_s > 0 && p->result == SL_ESTOPPED; /* not in yet */
    if (p->result != 0 && p->result != SL_ELEFT && !alone && !stopped)
        world_fail("agent %u ended otherwise: %s", p->rank, p->error.text);
    if (p->untold)
        world_fail("agent %u was not told that it trains alone", p->rank);
    judge_memory(p);
    finished += p->result == 0;
}

/* Where nothing else goes wrong, both sides are one again, if there is time. */
static void judge_healing(void) {
    double first_end_s = INFINITY;
    uint32_t whole = 0, parted = 0;
    for (uint32_t i = 0; i < drawn.s.nodes; i++) {
        first_end_s = fmin(first_end_s, peers[i].ended_s);
        whole += peers[i].members == drawn.s.nodes;
        parted += peers[i].members != 0;
    }
    const bool in_time = parting.was && !parting.is_up && first_end_s > parting.at_s + heal_s;
    const bool stays = drawn.spoiled_round == UINT64_MAX; /* else somebody may just be aside */
    if (loss_is_calm(&drawn.s) && stays && in_time && parted > 0 && whole < drawn.s.nodes)
        world_fail("%u of %u agents are in a view of all at the end", whole, drawn.s.nodes);
    healed += loss_is_calm(&drawn.s) && whole == drawn.s.nodes;
}

static uint64_t run_seed(uint64_t seed, bool verbose) {
    world_open(seed, verbose);
    disk_open();
    joining_open();
    memset(peers, 0, sizeof peers);
    parting = (struct parting){0};
    loss_seed_draw(&drawn, seed);
    if (verbose)
        scenario_print(&drawn.s);
    expected_take(&drawn.s, NULL, 0);
    task.gradient = gradient;
    liar_is(drawn.liar);
    network.forge = drawn.liar < drawn.s.nodes ? liar_forge : NULL;
    for (uint32_t i = 0; i < drawn.s.nodes; i++) {
        peers[i].rank = i;
        world_at(first_s + 0.02 * world_uniform(), start, &peers[i], 0);
    }
    if (loss_grows(&drawn.s))
        start_joiner();
    world_run(first_s + most_s, all_are_over);
    for (uint32_t i = 0; i < loss_ranks(&drawn.s); i++)
        judge(&peers[i], verbose);
    judge_healing();
    return expected_end();
}

int main(int count, char **arguments) {
    uint64_t seeds;
    expected_key();
    if (seeds_run(&seeds, count, arguments, QUICK, run_seed) != 0)
        return 2;
    printf("%llu seeds: %llu agents trained to the end, %llu left, %llu losses noticed, %llu "
           "views, %llu returned, %llu healed, %llu joined, %llu isolated\n"
           "joined and mixing within %.1f s of the last trouble, %.1f s in all\n",
           (unsigned long long)seeds, (unsigned long long)finished, (unsigned long long)left,
           (unsigned long long)lost, (unsigned long long)views, (unsigned long long)returned,
           (unsigned long long)healed, (unsigned long long)joined, (unsigned long long)isolated,
           joining_calm_s(), joining_longest_s());
    return 0;
}
