/* loss_judge.c - see loss_judge.h. */
#include <math.h>
#include <string.h>

#include "expected.h"
#include "loss_judge.h"
#include "seeds.h"

/* The plans are of the run and of its view. */
static const size_t agent_bytes = (64u << 10) + 3 * sizeof(sl_plan), member_bytes = 8u << 10;
static const double leave_s = 2.5;

bool loss_strikes_are(strike_kind kind) {
    for (int i = 0; i < drawn.strike_count; i++)
        if (drawn.strikes[i].kind != kind)
            return false;
    return true;
}

/* Did those who were not struck end before it, and so soon that it could not return? */
static bool others_were_through(const peer *p) {
    const double healed_s = parting.was ? parting.at_s : INFINITY;
    for (uint32_t i = 0; i < drawn.s.nodes; i++)
        if (peers[i].ended && !peers[i].struck && peers[i].result == 0 &&
            (peers[i].through_s > p->ended_s || peers[i].through_s > healed_s + loss_heal_s))
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

/* Who begins first is ahead of whoever did not come by no more rounds than there are edges. */
static bool start_failed(const peer *p) {
    return p->recorded < drawn.s.nodes && strstr(p->error.text, "did not come up within") != NULL;
}

void loss_judge(const peer *p, bool verbose) {
    if (!peer_judge(p, verbose) || p->rank == drawn.liar) /* it gets what it asked for */
        return;
    /* and nobody gave it any */
    const bool gave_all =
        (p->struck || parting.was || loss_restarts(&drawn.s) || others_were_through(p)) &&
        strstr(drawn.s.text, "sgp") != NULL;
    if (p->result != 0 && !p->struck && !came_too_late(p) &&
        !(gave_all && p->result == SL_EDIVERGED))
        world_fail("agent %u ended early: %s", p->rank, p->error.text);
    const bool calm = loss_strikes_are(STRIKE_LEAVE) && drawn.spoiled_round == UINT64_MAX &&
                      !loss_is_parted(&drawn.s);
    if (p->leaves_s > 0 && calm && p->ended_s - p->leaves_s > leave_s)
        world_fail("agent %u leaves after %.3f s", p->rank, p->ended_s - p->leaves_s);
    peer_judge_end(p, drawn.s.rounds);
    seeds_count("left", p->result == SL_ELEFT);
    if (p->spoiled && p->result == 0 && drawn.spoiled_rounds == UINT64_MAX)
        world_fail("agent %u ended well, with numbers that are not finite", p->rank);
    seeds_count("joined", p->rank == drawn.s.nodes && p->result == 0);
    const bool outside = (p->joins && strstr(p->error.text, "wants to join") != NULL) ||
                         (p->yields && p->struck && (p->recorded == 0 || start_failed(p)));
    const bool unagreed = p->struck && others_were_through(p) &&
                          strstr(p->error.text, "have not agreed on who goes on") != NULL;
    const bool alone = strstr(p->error.text, "gone on without") != NULL || outside || unagreed ||
                       (gave_all && p->result == SL_EDIVERGED) ||
                       (p->spoiled && p->result == SL_EDIVERGED);
    const bool stopped = p->joins && p->leaves_s > 0 && p->result == SL_ESTOPPED; /* not in yet */
    const bool last = p->leaves_s > 0 && p->result == SL_ESAVED; /* the others have left, too */
    if (p->result != 0 && p->result != SL_ELEFT && !alone && !stopped && !last)
        world_fail("agent %u ended otherwise: %s", p->rank, p->error.text);
    if (p->untold)
        world_fail("agent %u was not told that it trains alone", p->rank);
    expected_memory(p->process, p->rank, loss_goes_on(&drawn.s), loss_has_key(&drawn.s),
                    agent_bytes + drawn.s.nodes * member_bytes);
}

void loss_judge_healing(void) {
    double first_end_s = INFINITY;
    uint32_t whole = 0, parted = 0;
    for (uint32_t i = 0; i < drawn.s.nodes; i++) {
        first_end_s = fmin(first_end_s, peers[i].ended_s);
        whole += peers[i].members == drawn.s.nodes;
        parted += peers[i].members != 0;
    }
    const bool in_time = parting.was && !parting.is_up && first_end_s > parting.at_s + loss_heal_s;
    const bool stays = drawn.spoiled_round == UINT64_MAX; /* else somebody may just be aside */
    if (loss_is_calm(&drawn.s) && !loss_goes_on(&drawn.s) && stays && in_time && parted > 0 &&
        whole < drawn.s.nodes)
        world_fail("%u of %u agents are in a view of all at the end", whole, drawn.s.nodes);
    seeds_count("healed", loss_is_calm(&drawn.s) && whole == drawn.s.nodes);
}
