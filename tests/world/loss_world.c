/* loss_world.c - many runs of agents that go on without who is lost, in a virtual world, each from
 * a seed (docs/reliability.md).
 *
 *   loss_world [-v] SEED [COUNT]     at most QUICK seeds with STARLING_QUICK in the environment
 *
 * Agents are killed, stopped for longer than membership.grace_s, and asked to leave; connections
 * are cut; in each seventh seed loss, gradient or model of one agent become infinite or NaN. Each
 * third seed trains for so long that who was stopped can return, and each ninth is in two parts for
 * a while, half of these without other strikes. Each 22nd has a key, and seals all frames. In each
 * fifteenth more is struck, and whoever has ended is started again, to join. In another fifteenth
 * all are killed besides, or lose their power, or are asked to end, up to three times: the members
 * of the newest checkpoint go on from it, and the others come before or after them, or never, to
 * join, with files of their own, or none. Held of each seed:
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
#include <string.h>

#include "disk.h"
#include "expected.h"
#include "going_on.h"
#include "joining.h"
#include "liar.h"
#include "loss_judge.h"
#include "seeds.h"

enum { QUICK = 80 };
static const double most_s = 400, notice_s = 0.5, join_s = 6, return_s = 10, told_s = 4;

loss_seed drawn;
struct parting parting;
/* All end, and go on. */
static struct stopping {
    int count;  /* so far */
    bool is_up; /* they have not begun again */
    bool alone; /* one goes on, with all that there is of the run, until others have joined it */
} stopping;

/* ---- strikes ---- */

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
    part(false);
}

static void start(void *of, uint64_t stops) {
    peer *p = of;
    if (stops != (uint64_t)stopping.count)
        return;
    if (p->joins)
        joining_begin(p->rank);
    peer_start(p, stops);
}

/* Has somebody come so far that a view may begin too late? */
static bool is_nearly_over(void) {
    for (uint32_t i = 0; i < loss_ranks(&drawn.s); i++)
        if (peers[i].recorded + 6 * drawn.s.nodes > drawn.s.rounds)
            return true;
    return false;
}

/* So many are awake since then, and could let it in; alive: of so many. Who is away itself has no
 * model that holds. */
static uint32_t others_awake(const peer *p, double since_s, uint32_t *alive) {
    uint32_t count = 0;
    *alive = 0;
    for (uint32_t i = 0; i < loss_ranks(&drawn.s); i++) {
        const peer *other = &peers[i];
        if (i == p->rank || other->process == NULL || !other->process->alive)
            continue;
        *alive += 1;
        count += other->recorded > 0 && !other->away && other->wakes_s < since_s &&
                 other->mixes_s < since_s;
    }
    return count;
}

/* Another process takes its rank, while there is a run to join. */
static void start_again(void *of, uint64_t stops) {
    peer *p = of;
    if (stops != (uint64_t)stopping.count || is_nearly_over() ||
        others_awake(p, INFINITY, &(uint32_t){0}) == 0)
        return;
    *p = (peer){.rank = p->rank,
                .joins = true,
                .trains = true,
                .struck = true,
                .checkpoints = peer_checkpoints(false, 0)};
    start(p, stops);
}

static void see_end(peer *p) {
    if (loss_restarts(&drawn.s))
        world_at(world_now() + 0.01 + 0.2 * world_uniform(), start_again, p,
                 (uint64_t)stopping.count);
}

static void trouble(void *ignored, uint64_t also) {
    joining_trouble();
}

static void hit(void *of, uint64_t ignored) {
    const strike *k = of;
    peer *p = &peers[k->a];
    if ((stopping.alone && p->members < 2 && !p->joins) || !peer_strike(k))
        return;
    joining_trouble();
    if (k->kind == STRIKE_KILL)
        see_end(p);
    if (k->kind == STRIKE_STOP)
        world_at(p->wakes_s, trouble, NULL, 0);
}

/* ---- all end, and go on ---- */

/* Whether it has files or not, and whatever they say: the same command again. Or it is told to
 * join, as `starling run` does. */
static void come(peer *p, bool agrees) {
    *p = (peer){.rank = p->rank,
                .trains = true,
                .struck = true,
                .yields = agrees && p->rank < drawn.s.nodes,
                .joins = !agrees || p->rank >= drawn.s.nodes};
    if (agrees && world_chance(0.3))
        going_on_lose(p->rank);
    p->checkpoints = peer_checkpoints(p->yields && going_on_has(p->rank), 0);
}

static void go_on_all(void *ignored, uint64_t also) {
    const going_on from = going_on_find();
    const bool agrees = from.agrees && world_chance(0.7);
    uint32_t members = 0;
    if (from.round == 0)
        world_fail("no checkpoint is whole");
    stopping.is_up = false;
    seeds_count("times all have gone on", 1);
    seeds_count("of them agreed", agrees);
    world_note("all go on", from.round, from.view.number, agrees);
    for (uint32_t i = 0; i < loss_ranks(&drawn.s); i++) {
        peer *p = &peers[i];
        const bool is_member = i < drawn.s.nodes && sl_checkpoint_view_has(&from.view, i);
        double at_s = world_uniform();
        members += is_member;
        if (is_member) {
            *p = (peer){.rank = i,
                        .yields = agrees,
                        .checkpoints = peer_checkpoints(true, agrees ? 0 : from.round)};
        } else {
            come(p, agrees);
            at_s = world_chance(0.5) ? at_s : 8 * at_s;
        }
        joining_trouble();
        world_note(is_member ? "goes on" : "comes", i, p->checkpoints.resume, p->joins);
        world_at(world_now() + at_s, start, p, (uint64_t)stopping.count);
    }
    stopping.alone = members == 1;
}

/* Those that are not asked, or do not hear it. */
static void kill_all(void *ignored, uint64_t loses_power) {
    stopping.is_up = true;
    stopping.count++;
    for (uint32_t i = 0; i < loss_ranks(&drawn.s); i++) {
        peer *p = &peers[i];
        p->agent = NULL;
        if (peer_is_up(p))
            process_kill(p->process, loses_power != 0);
        p->process = NULL; /* it comes again */
    }
    if (loses_power != 0)
        disk_lose_power();
    world_at(world_now() + 0.5, go_on_all, NULL, 0);
}

static void stop_all(peer *p) {
    static const double ends_s = 3;
    const uint32_t how = world_below(3);
    stopping.is_up = true;
    world_note("stops", p->rank, how, 0);
    if (how < 2)
        world_at(world_now() + 0.1 * world_uniform(), kill_all, NULL, how);
    else
        sl_agent_checkpoint(p->agent, true);
    if (how == 2)
        world_at(world_now() + ends_s, kill_all, NULL, 0);
}

static void on_round(void *context, uint32_t rank, uint64_t round) {
    ((peer *)context)->trains = true;
    if (stopping.count < CUTS_MAX && round >= drawn.cut_rounds[stopping.count] && !stopping.is_up &&
        !parting.is_up && !loss_parts_edges(&drawn.s) /* alone, they save rounds far apart */ &&
        peers_all_train() && !is_nearly_over())
        stop_all(context);
    if (loss_is_parted(&drawn.s) && !parting.was && round >= drawn.parting_round &&
        peers_all_train()) {
        parting.was = true;
        part(true);
        world_at(world_now() + drawn.parted_s, heal, NULL, 0);
    }
    for (int i = 0; i < drawn.strike_count; i++)
        if (drawn.strikes[i].round == round && drawn.strikes[i].a == rank)
            world_at(world_now() + drawn.strikes[i].at_s, hit, &drawn.strikes[i], 0);
}

/* ---- numbers that are not finite ---- */

static double spoil(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    const double loss = scenario_gradient(context, rank, round, x, g);
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

static double gradient(void *context, uint32_t rank, uint64_t round, const float *x, float *g) {
    const double loss = spoil(context, rank, round, x, g);
    scenario_tell(context, rank, x, loss);
    return loss;
}

/* ---- an agent ---- */

static int on_record(void *context, const sl_record *record, const float *x) {
    peer *p = context;
    p->mixes_s = p->recorded == 0 ? world_now() : p->mixes_s;
    joining_end(p->rank, join_s);
    peer_records(p, record, x);
    p->through_s = p->recorded == drawn.s.rounds ? world_now() : 0;
    return 0;
}

static void on_notice(void *context, const char *text) {
    peer *p = context;
    world_say(p->rank, text);
    if (strstr(text, "no connection to agent") == NULL)
        return;
    p->untold = false;
    p->ahead = strstr(text, "trains alone") != NULL;
    seeds_count("isolated", p->ahead);
}

static void on_aside(void *context, uint32_t rank, uint64_t round, const char *why) {
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
    seeds_count("returned", 1);
}

/* The port of who is killed refuses at once. Who has ended is no loss, and who lives neither. Who
 * joins says so when it gives up, a little before it has ended. */
static void judge_notice(const peer *p, const sl_log_entry *entry) {
    const peer *lost_one = &peers[entry->peer];
    const double after_s = world_now() - lost_one->killed_s;
    if (!loss_strikes_are(STRIKE_KILL) || loss_is_parted(&drawn.s) || loss_restarts(&drawn.s) ||
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
    seeds_count("losses noticed", entry->kind == SL_LOG_LOST);
    if (entry->kind == SL_LOG_VIEW) {
        seeds_count("views", 1);
        p->members = entry->members;
        p->untold = is_isolated(p, entry->members);
    }
    logbook_take(&p->logbook, entry, drawn.s.rounds);
}

static void *be_agent(void *of) {
    peer *p = of;
    sl_agent_settings settings = {.rank = p->rank,
                                  .credentials = loss_has_key(&drawn.s) ? expected_key() : NULL,
                                  .joins = p->joins,
                                  .yields = p->yields,
                                  .checkpoints = loss_goes_on(&drawn.s) ? &p->checkpoints : NULL,
                                  .observer = {.context = p,
                                               .record = on_record,
                                               .round = on_round,
                                               .aside = on_aside,
                                               .returned = on_returned,
                                               .notice = on_notice,
                                               .log = on_log}};
    const uint32_t agents = p->rank < drawn.s.nodes ? drawn.s.nodes : p->rank + 1;
    p->result = expected_run(&p->agent, settings, agents, &p->error);
    if (p->result == SL_ETRAINS) { /* as it yields */
        settings.joins = p->joins = p->struck = p->trains = true;
        p->checkpoints.resume = false;
        joining_begin(p->rank);
        p->result = expected_run(&p->agent, settings, agents, &p->error);
    }
    logbook_close(&p->logbook, p->rank, p->result);
    peer_ends(p);
    p->through_s = p->through_s > 0 ? p->through_s : p->ended_s;
    if (stopping.is_up)
        return NULL;
    if (p->result != 0 && p->result != SL_EDIVERGED)
        see_end(p);
    const bool cut_off =
        loss_is_parted(&drawn.s) && (parting.is_up || world_now() < parting.at_s + loss_heal_s);
    uint32_t alive;
    const bool comes = p->joins || (p->yields && p->struck && joining_calm() > told_s);
    if (loss_restarts(&drawn.s) && comes && p->result == SL_EPEER && !is_nearly_over() &&
        !cut_off && 2 * others_awake(p, world_now() - join_s, &alive) > alive)
        world_fail("agent %u has not come back: %s", p->rank, p->error.text);
    return NULL;
}

/* It knocks from some time on, until it is in or the others have ended. */
static void start_joiner(void) {
    peers[drawn.s.nodes] = (peer){.rank = drawn.s.nodes,
                                  .joins = true,
                                  .struck = true,
                                  .checkpoints = peer_checkpoints(false, 0)};
    world_at(first_s + 0.1 + drawn.s.seed % 17 * 0.1, start, &peers[drawn.s.nodes], 0);
}

static bool all_are_over(void) {
    return !stopping.is_up && peers_are_over();
}

/* ---- a seed ---- */

static uint64_t run_seed(uint64_t seed, bool verbose) {
    world_open(seed, verbose);
    disk_open();
    joining_open();
    parting = (struct parting){0};
    stopping = (struct stopping){0};
    loss_seed_draw(&drawn, seed);
    if (verbose)
        scenario_print(&drawn.s);
    expected_take(&drawn.s, NULL, 0);
    task.gradient = gradient;
    liar_is(drawn.liar, 0);
    network.forge = drawn.liar < drawn.s.nodes ? liar_forge : NULL;
    peers_open(loss_ranks(&drawn.s), be_agent);
    for (uint32_t i = 0; i < drawn.s.nodes; i++)
        world_at(first_s + 0.02 * world_uniform(), start, &peers[i], 0);
    if (loss_grows(&drawn.s))
        start_joiner();
    world_run(first_s + most_s, all_are_over);
    for (uint32_t i = 0; i < loss_ranks(&drawn.s); i++)
        loss_judge(&peers[i], verbose);
    loss_judge_healing();
    return expected_end();
}

int main(int count, char **arguments) {
    expected_key();
    return seeds_main(count, arguments, QUICK, run_seed);
}
