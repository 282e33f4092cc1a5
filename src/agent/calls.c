/* calls.c - see calls.h and collective.h. */
#include "agent/calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/state.h"

/* ---- the worker's thread ---- */

void sl_calls_give(sl_calls *c, const sl_call *what) {
    pthread_mutex_lock(&c->desk.mutex);
    c->desk.call = *what;
    c->desk.given = true;
    c->desk.answered = c->desk.error.code != 0;
    sl_signal_give(c->desk.descriptor);
    pthread_mutex_unlock(&c->desk.mutex);
}

bool sl_calls_answered(sl_calls *c, int *out) {
    pthread_mutex_lock(&c->desk.mutex);
    const bool answered = c->desk.answered;
    if (out != NULL)
        *out = c->desk.answer;
    pthread_mutex_unlock(&c->desk.mutex);
    return answered;
}

static int call(sl_calls *c, const sl_call *what, sl_error *error) {
    sl_calls_give(c, what);
    pthread_mutex_lock(&c->desk.mutex);
    while (!c->desk.answered)
        pthread_cond_wait(&c->desk.changed, &c->desk.mutex);
    const int answer = c->desk.error.code != 0 ? c->desk.error.code : c->desk.answer;
    if (answer < 0 && error != NULL)
        *error = c->desk.error;
    pthread_mutex_unlock(&c->desk.mutex);
    return answer;
}

int sl_agent_meet(sl_agent *a, uint64_t round, sl_meet purpose, sl_error *error) {
    return call(&a->calls, &(sl_call){SL_CALL_MEET, .round = round, .purpose = purpose}, error);
}

int sl_agent_rest(sl_agent *a, sl_error *error) {
    return call(&a->calls, &(sl_call){.kind = SL_CALL_REST}, error);
}

int sl_agent_sum(sl_agent *a, const sl_share *share, sl_error *error) {
    return call(&a->calls, &(sl_call){SL_CALL_SUM, .share = *share}, error);
}

/* ---- the loop's thread ---- */

/* In the tree of a view: agents meet anew. */
static int take_place(sl_calls *c, const sl_tree *tree, sl_error *error) {
    const int result = sl_tree_position_open(&c->place, tree, c->side->rank, c->neighbours,
                                             c->neighbour_count, error);
    c->place.view = c->side->now.view;
    return result != 0 ? result : sl_barrier_open(&c->meeting, &c->place, c->side->rank, error);
}

int sl_calls_open(sl_calls *c, const sl_tree *tree, sl_side *side, const sl_machine *node,
                  sl_neighbour *neighbours, uint32_t count, sl_error *error) {
    pthread_mutex_init(&c->desk.mutex, NULL);
    pthread_cond_init(&c->desk.changed, NULL);
    c->open = true;
    c->side = side;
    c->node = node;
    c->neighbours = neighbours;
    c->neighbour_count = count;
    c->desk.descriptor = sl_signal_open();
    if (c->desk.descriptor < 0)
        return sl_fail(error, SL_ENOMEM, "agent %u: no descriptor left", side->rank);
    const int result = take_place(c, tree, error);
    return result != 0 ? result : sl_reduce_open(&c->reduce, &c->place, side, error);
}

static void answer(sl_calls *c, int with) {
    c->current.kind = SL_CALL_NONE;
    pthread_mutex_lock(&c->desk.mutex);
    c->desk.answer = with;
    c->desk.answered = true;
    pthread_cond_signal(&c->desk.changed);
    pthread_mutex_unlock(&c->desk.mutex);
}

int sl_calls_turn(sl_calls *c, const sl_tree *tree, sl_error *error) {
    sl_barrier_close(&c->meeting);
    sl_tree_position_close(&c->place);
    int result = take_place(c, tree, error);
    if (result == 0)
        result = sl_reduce_turn(&c->reduce, error);
    if (result != 0)
        return result;
    if (c->current.kind == SL_CALL_SUM) /* of the view before */
        answer(c, SL_SUM_VOID);
    if (sl_calls_await_cut(c))
        answer(c, c->made ? 0 : SL_SUM_VOID);
    c->made = false;
    for (uint32_t i = 0; i < c->neighbour_count; i++) /* its memory is used anew */
        sl_stream_void(&c->neighbours[i].stream, 1u << SL_FRAME_SUM);
    c->attendance.met = 0;
    c->attendance.coming = c->cut = false;
    c->attendance.stands = true;
    sl_barrier_come(&c->meeting, c->attendance.passed, SL_MEET_STANDS);
    return 0;
}

void sl_calls_close(sl_calls *c) {
    if (!c->open)
        return;
    sl_reduce_close(&c->reduce);
    sl_barrier_close(&c->meeting);
    sl_tree_position_close(&c->place);
    sl_signal_close(c->desk.descriptor);
    pthread_cond_destroy(&c->desk.changed);
    pthread_mutex_destroy(&c->desk.mutex);
    c->open = false;
}

void sl_calls_fail(sl_calls *c, const sl_error *error) {
    if (!c->open)
        return;
    pthread_mutex_lock(&c->desk.mutex);
    c->desk.error = *error;
    c->desk.answered = true;
    pthread_cond_signal(&c->desk.changed);
    pthread_mutex_unlock(&c->desk.mutex);
}

int sl_calls_receive(sl_calls *c, sl_error *error) {
    sl_signal_take(c->desk.descriptor);
    pthread_mutex_lock(&c->desk.mutex);
    const bool given = c->desk.given;
    if (given)
        c->current = c->desk.call;
    c->desk.given = false;
    pthread_mutex_unlock(&c->desk.mutex);
    if (!given)
        return 0;
    c->moved_s = c->side->now_s;
    if (c->ending)
        return sl_fail_node(error, SL_EINVAL, c->side->rank, c->side->now.round,
                            "a call after the meeting that ends the run");
    return c->current.kind == SL_CALL_SUM && !c->cut
               ? sl_reduce_begin(&c->reduce, &c->current.share, error)
               : 0;
}

int sl_calls_take(sl_calls *c, sl_neighbour *from, const sl_frame *frame, const uint8_t *payload,
                  sl_error *error) {
    if (!c->open)
        return sl_fail_edge(error, SL_EPROTO, from->rank, from->side->rank, from->side->now.round,
                            "agent %u runs in a session, and this agent does not", from->rank);
    c->moved_s = from->side->now_s;
    if (frame->view != c->place.view) /* of a view before */
        return 0;
    if (c->cut && frame->type != SL_FRAME_BARRIER)
        return 0;
    return frame->type == SL_FRAME_BARRIER
               ? sl_barrier_take(&c->meeting, from, frame, error)
               : sl_reduce_take(&c->reduce, from, frame, payload, error);
}

/* Do others wait for this agent's rounds, so that it does them while it waits itself? */
static bool is_followed(const sl_calls *c) {
    return c->node->own == NULL || sl_async_is_followed(c->node->own);
}

/* All have come. This agent may still have rounds to do. */
static int go_to_meeting(sl_calls *c, sl_error *error) {
    const uint64_t round =
        is_followed(c) ? sl_barrier_round(&c->meeting, c->attendance.met) : c->current.round;
    if (c->current.round > round)
        return sl_fail_node(error, SL_EPROTO, c->side->rank, c->current.round,
                            "all agents meet in round %" PRIu64 ", which is over", round);
    if (c->current.round < round) {
        answer(c, 0);
        return 0;
    }
    const sl_meet purpose = sl_barrier_purpose(&c->meeting, c->attendance.met++);
    c->attendance.coming = false;
    c->attendance.summed_in = c->place.view;
    c->ending = purpose == SL_MEET_END;
    c->attendance.passed += purpose == SL_MEET_SUM;
    answer(c, purpose);
    return 0;
}

/* Another agent still trains, and needs this one's part of the round. It has begun an exchange that
 * comes after this round's gradient, or has heard of one, so nobody is asked in vain. */
static const sl_neighbour *who_goes_on(const sl_calls *c) {
    for (uint32_t i = 0; i < c->neighbour_count && is_followed(c); i++)
        if (c->neighbours[i].process.exchange > c->side->now.exchange)
            return &c->neighbours[i];
    return NULL;
}

/* Somebody has ended, after a meeting that this agent had come to. */
static bool others_have_ended(const sl_calls *c) {
    for (uint32_t i = 0; i < c->neighbour_count; i++)
        if (c->neighbours[i].process.bye_received)
            return true;
    return false;
}

static void learn_standing(sl_calls *c) {
    if (!c->attendance.stands || sl_barrier_held(&c->meeting) == 0)
        return;
    c->attendance.stands = false;
    c->attendance.due = sl_barrier_round(&c->meeting, c->attendance.met++);
    if (c->attendance.is_new)
        c->attendance.passed = c->attendance.due;
    c->attendance.is_new = false;
}

/* Of the next meeting: is the call decided without it? */
static bool decide_alone(sl_calls *c, const sl_calls_news *news) {
    const bool ends = c->current.purpose == SL_MEET_END;
    if (ends && news->alarmed && others_have_ended(c)) {
        c->ending = true;
        answer(c, SL_MEET_END);
    } else if (news->turns && c->node->own == NULL) { /* rounds lead to the view */
        answer(c, 0);
    } else if (!c->attendance.stands && c->attendance.passed < c->attendance.due && !ends) {
        c->attendance.passed++;
        answer(c, SL_SUM_VOID);
    } else {
        return false;
    }
    return true;
}

bool sl_calls_await_cut(const sl_calls *c) {
    return c->current.kind == SL_CALL_MEET && c->current.purpose == SL_MEET_CUT;
}

bool sl_calls_want_cut(const sl_calls *c) {
    return sl_calls_await_cut(c) && sl_barrier_held(&c->meeting) > c->attendance.met;
}

/* Who has agreed on it has come in the same view; the one that it is for ends it. */
static void advance_cut(sl_calls *c) {
    if (c->attendance.summed_in != c->place.view) {
        answer(c, SL_SUM_VOID);
    } else if (!c->attendance.coming) {
        c->attendance.coming = true;
        sl_barrier_come(&c->meeting, c->current.round, SL_MEET_CUT);
    }
}

static int advance_meeting(sl_calls *c, const sl_calls_news *news, sl_error *error) {
    if (sl_calls_await_cut(c)) {
        advance_cut(c);
        return 0;
    }
    if (decide_alone(c, news))
        return 0;
    if (!c->attendance.coming && !c->attendance.stands) {
        c->attendance.coming = true;
        if (c->attendance.passed < c->attendance.due)
            c->attendance.passed = c->attendance.due;
        sl_barrier_come(&c->meeting, c->current.round, c->current.purpose);
    }
    if (sl_barrier_held(&c->meeting) > c->attendance.met)
        return go_to_meeting(c, error);
    const sl_neighbour *other = who_goes_on(c);
    if (other != NULL && c->current.round == 0)
        return sl_fail_edge(error, SL_EPEER, other->rank, c->side->rank, 0,
                            "agent %u has begun to train, and agent %u waits for it to meet first",
                            other->rank, c->side->rank);
    if (other != NULL)
        answer(c, 0);
    return 0;
}

int sl_calls_advance(sl_calls *c, const sl_calls_news *news, sl_error *error) {
    if (!c->open)
        return 0;
    learn_standing(c);
    if (news->turns && c->current.kind == SL_CALL_SUM) {
        c->cut = true;
        answer(c, SL_SUM_VOID);
    }
    if (!c->cut && sl_reduce_advance(&c->reduce, news->holds))
        answer(c, 0);
    int result = 0;
    if (c->current.kind == SL_CALL_REST && sl_node_rests(c->node->rounds)) {
        result = c->side->vec->fence(error); /* the worker reads what this thread has written */
        answer(c, 0);
    }
    if (c->current.kind == SL_CALL_MEET)
        result = advance_meeting(c, news, error);
    sl_barrier_pass_on(&c->meeting);
    return result;
}

bool sl_calls_are_told(const sl_calls *c, const sl_neighbour *neighbour) {
    return !c->open || sl_barrier_is_told(&c->meeting, neighbour);
}

bool sl_calls_know_sum(const sl_calls *c) {
    return !c->cut && sl_reduce_is_known(&c->reduce) &&
           (c->current.kind == SL_CALL_SUM || c->desk.answered);
}

const sl_neighbour *sl_calls_sum_lacks(const sl_calls *c) {
    for (uint32_t i = 0; i < c->place.link_count && c->current.kind == SL_CALL_SUM; i++) {
        const sl_neighbour *n = c->place.links[i];
        if ((n->absence.gone || n->process.bye_received) && !sl_reduce_has_passed(&c->reduce, i))
            return n;
    }
    return NULL;
}

static void name_exchange(const sl_calls *c, char *out, size_t bytes, uint32_t *peer) {
    sl_error wait = {.peer = SL_ERROR_NOWHERE};
    sl_machine_name_wait(c->node, &wait);
    *peer = wait.peer >= 0 ? (uint32_t)wait.peer : *peer;
    snprintf(out, bytes, "the exchange that a state is to hold: %.200s", wait.text);
}

bool sl_calls_name_wait(const sl_calls *c, char *out, size_t bytes, uint32_t *peer) {
    char who[256];
    *peer = 0;
    switch (c->current.kind) {
    case SL_CALL_NONE:
        return false;
    case SL_CALL_MEET:
        sl_barrier_name_missing(&c->meeting, who, sizeof who, peer);
        if (sl_calls_want_cut(c))
            snprintf(out, bytes, "all agents to rest for a state");
        else
            snprintf(out, bytes, "agents that have not come to %s: %s",
                     c->current.purpose == SL_MEET_END ? "leave" : "average", who);
        return true;
    case SL_CALL_SUM:
        sl_reduce_name_wait(&c->reduce, who, sizeof who, peer);
        snprintf(out, bytes, "the sum of all agents: %s", who);
        return true;
    case SL_CALL_REST:
        name_exchange(c, out, bytes, peer);
        return true;
    }
    return false;
}

const sl_neighbour *sl_calls_awaited(const sl_calls *c) {
    char what[512];
    uint32_t peer;
    const bool everybody = c->current.kind == SL_CALL_MEET || c->current.kind == SL_CALL_SUM;
    return everybody && sl_calls_name_wait(c, what, sizeof what, &peer)
               ? sl_tree_position_towards(&c->place, peer)
               : NULL;
}
