/* calls.h - what the task calls on the worker's thread (collective.h) and the loop answers.
 *
 * One call at a time: the worker's thread hands it over and sleeps; the loop answers when meeting,
 * sum or failure decide it.
 */
#ifndef SL_CALLS_H
#define SL_CALLS_H

#include <pthread.h>

#include "agent/collectives/barrier.h"
#include "agent/collectives/reduce.h"
#include "async/machine.h"

typedef enum sl_call_kind { SL_CALL_NONE, SL_CALL_MEET, SL_CALL_SUM, SL_CALL_REST } sl_call_kind;

typedef struct sl_call {
    sl_call_kind kind;
    uint64_t round;  /* MEET */
    sl_meet purpose; /* MEET */
    sl_share share;  /* SUM */
} sl_call;

/* Where the worker's thread and the loop hand a call to each other. */
typedef struct sl_call_desk {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int descriptor;       /* readable when a call was handed over; -1: none */
    bool given, answered; /* under mutex, like the next three */
    sl_call call;
    int answer;
    sl_error error; /* once code is not 0, it answers every call */
} sl_call_desk;

/* Which meetings this agent has come to. */
typedef struct sl_attendance {
    uint64_t met;       /* meetings of the view that are behind this agent */
    bool coming;        /* it has come to the next one */
    bool stands;        /* the view's first meeting, for what all stand at, is not over */
    bool is_new;        /* it joins: what is behind the others is behind it, too */
    uint64_t passed;    /* meetings for sums that are behind it, in all views */
    uint64_t due;       /* the most that are behind any agent of the view; known once met > 0 */
    uint32_t summed_in; /* the view of its last meeting for sums */
} sl_attendance;

/* What the agent knows of the members, at this moment. */
typedef struct sl_calls_news {
    bool turns;   /* a view is agreed on, and has not begun */
    bool holds;   /* one may be: this agent lets no sum be known before it knows that */
    bool alarmed; /* a loss was noticed, or heard of */
} sl_calls_news;

typedef struct sl_calls {
    bool open;
    bool lasts; /* set by the agent: it goes with views; else it ends as rounds begin */
    sl_tree_position place;
    sl_barrier meeting;
    sl_reduce reduce;
    sl_call_desk desk;

    /* the loop's */
    sl_side *side; /* borrowed, like the next two */
    const sl_machine *node;
    sl_neighbour *neighbours; /* (neighbour_count) */
    uint32_t neighbour_count;
    sl_call current; /* the call under way */
    sl_attendance attendance;
    bool cut;       /* a sum is void: what still comes of it is, too, until the view begins */
    bool made;      /* the view that begins is the one that a CUT is for */
    bool ending;    /* all have met to end */
    double moved_s; /* when something last brought the current call further */
} sl_calls;

/* For the worker's thread: hands a call over. `answered` says when `answer` is there. */
void sl_calls_give(sl_calls *calls, const sl_call *call);

/* Is the answer to what was given there? `out`, if it is not NULL: 0, or SL_SUM_VOID. */
bool sl_calls_answered(sl_calls *calls, int *out);

/* All these are for the loop's thread. Errors end the run. */
int sl_calls_open(sl_calls *calls, const sl_tree *tree, sl_side *side, const sl_machine *node,
                  sl_neighbour *neighbours, uint32_t count, sl_error *error);
void sl_calls_close(sl_calls *calls);
/* A view begins, with this tree: its agents meet anew. */
int sl_calls_turn(sl_calls *calls, const sl_tree *tree, sl_error *error);
/* The descriptor is readable. */
int sl_calls_receive(sl_calls *calls, sl_error *error);
/* A BARRIER, SUM_CREDIT or SUM frame. */
int sl_calls_take(sl_calls *calls, sl_neighbour *from, const sl_frame *frame,
                  const uint8_t *payload, sl_error *error);
/* Goes on as far as it can. */
int sl_calls_advance(sl_calls *calls, const sl_calls_news *news, sl_error *error);
/* Is the task in a meeting for a CUT; and have all come to it? */
bool sl_calls_await_cut(const sl_calls *calls);
bool sl_calls_want_cut(const sl_calls *calls);
/* Answers the current call and all later ones. */
void sl_calls_fail(sl_calls *calls, const sl_error *error);
/* Has the neighbour been told of everybody who has come? */
bool sl_calls_are_told(const sl_calls *calls, const sl_neighbour *neighbour);
/* Is the result of the sum that was given last here? Others may not have it yet. */
bool sl_calls_know_sum(const sl_calls *calls);
/* A sum is under way, and this one of those that it goes along has ended: it is void. NULL: all are
 * there, or there is no sum. */
const sl_neighbour *sl_calls_sum_lacks(const sl_calls *calls);
/* On the way to whom the current meeting or sum waits for; NULL: there is none. */
const sl_neighbour *sl_calls_awaited(const sl_calls *calls);
/* Whom or what the current call waits for; false: there is none. *peer: the first of them. */
bool sl_calls_name_wait(const sl_calls *calls, char *out, size_t bytes, uint32_t *peer);

#endif
