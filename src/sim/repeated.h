/* repeated.h - nodes of a run that is done once more: what each does next, and what is on its way
 * to it; see repeat_acts.c. */
#ifndef SL_SIM_REPEATED_H
#define SL_SIM_REPEATED_H

#include "sim/simulator.h"

/* A part on its way. */
typedef struct letter {
    struct letter *next;
    uint32_t from;
    const sl_scene_view *view; /* its sender's */
    sl_async_part part;
    message *message; /* NULL: a silent part */
} letter;

typedef struct sl_given sl_given;

typedef struct repeated {
    simulator *s;
    sl_recorded recorded;
    sl_pattern pattern;
    bool in_turn;     /* commits are, or several are applied together: those that are whole */
    letter **letters; /* (nodes) to each, in the order in which they left */
    size_t *done;     /* (nodes) acts */
    uint32_t *parts;  /* (nodes) of the next one */
    bool *computes;   /* (nodes) it waits for its gradient */
    bool *comes;      /* (nodes) it has another's model, and its view begins next */
    sl_given *given;  /* models */
    sl_act again;     /* what a node that was lost did not come to write down */
    uint32_t again_of;
    uint32_t finished;
} repeated;

/* How often each node ends each round. */
void sl_repeated_find_rounds(repeated *r);
/* NULL: the log has no more. */
const sl_act *sl_repeated_next_act(const repeated *r, uint32_t rank);
/* Its process was killed: what it did last may not be in its log. */
bool sl_repeated_is_lost(const repeated *r, uint32_t rank);
/* Is it the next that the node does about this ask? */
bool sl_repeated_is_next(const repeated *r, uint32_t rank, sl_act_kind kind, uint32_t asker,
                         uint64_t number);
int sl_repeated_fail_at(const repeated *r, uint32_t rank, const char *what, sl_error *error);

/* ---- steps; what the node does has to be what its log has next ---- */

int sl_repeated_deliver(repeated *r, uint32_t rank, const sl_event *event, sl_error *error);
int sl_repeated_give_gradient(repeated *r, uint32_t rank, sl_error *error);
/* *any: something has left. */
int sl_repeated_send_all(repeated *r, uint32_t rank, bool *any, sl_error *error);
/* *any: it had something to do when others were through. */
int sl_repeated_turn(repeated *r, uint32_t rank, bool *any, sl_error *error);

/* ---- repeat_views.c; *any: something was done ---- */

/* The next one that it begins; NULL: there is none. */
const sl_log_entry *sl_repeated_next_view(const repeated *r, uint32_t rank);
/* Had it begun this round then? */
bool sl_repeated_has_begun(const repeated *r, uint32_t rank);
int sl_repeated_view(repeated *r, uint32_t rank, bool *any, sl_error *error);
int sl_repeated_gather(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error);
int sl_repeated_give(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error);
/* It joins, or returns. */
int sl_repeated_come(repeated *r, uint32_t rank, const sl_act *act, bool *any, sl_error *error);
void sl_repeated_forget_given(repeated *r);

/* ---- letters to a node ---- */

/* Are these nodes under the same view? */
bool sl_repeated_share_view(const repeated *r, uint32_t rank, uint32_t other);
/* Is it of the node's view, and not of one before or later? */
bool sl_repeated_is_of_view(const repeated *r, uint32_t to, const letter *one);
/* The first of all of its view. NULL: there is none. */
letter **sl_repeated_find_any(const repeated *r, uint32_t to);
/* The same, of this step, from `from`; UINT32_MAX: from anybody. */
letter **sl_repeated_find(const repeated *r, uint32_t from, uint32_t to, uint32_t step);
/* The same, of this ask, or in answer to it. */
letter **sl_repeated_find_of(const repeated *r, uint32_t from, uint32_t to, bool asks,
                             uint64_t number);
int sl_repeated_take(repeated *r, letter **at, uint32_t to, sl_error *error);
void sl_repeated_drop(repeated *r, letter **at);

#endif
