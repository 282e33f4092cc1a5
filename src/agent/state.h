/* state.h - the agent, for its own files. All of it runs on the loop's thread.
 *
 * agent.c: phases, deadlines, the loop. opening.c: puts an agent together. progress.c: what other
 * threads see. waits.c: who waits for whom. saving.c: checkpoints. own_cuts.c: of nodes at their
 * own times. first_view.c: who goes on together. trust.c: whom it trusts, anew. contacts.c: what
 * connections report. rejoin.c: coming back. members.c: who takes part. member_log.c: what it tells
 * of that. rounds.c: drives the node. averaging.c: what comes after the last round.
 * state_transfer.c: models of others. calls.c: what the task asks of the loop. tracing.c: where the
 * time goes. Each calls only those behind it.
 */
#ifndef SL_AGENT_STATE_H
#define SL_AGENT_STATE_H

#include <pthread.h>

#include "agent/calls.h"
#include "agent/members.h"
#include "agent/peers/neighbour.h"
#include "agent/peers/outbox.h"
#include "agent/peers/unverified.h"
#include "agent/saving.h"
#include "async/machine.h"
#include "world/loop.h"
#include "world/worker.h"

typedef enum agent_phase {
    PHASE_CONNECTING, /* until every neighbour has agreed */
    PHASE_TRAINING,
    PHASE_GOODBYE, /* the last round is done: report it, tell everyone, wait for everyone */
    PHASE_OVER     /* done, or `error` says why not */
} agent_phase;

/* What other threads ask for, and see, under the mutex. */
typedef struct sl_agent_shown {
    pthread_mutex_t mutex;
    sl_error end;               /* why the run is to end; code 0: it is not */
    sl_agent_progress progress; /* as it was at */
    double seen_s;              /* 0: it does not run yet */
    sl_agent_edge *edges;       /* (edge_count) to those that the node exchanges with */
    uint32_t edge_count;
    sl_agent_lost *lost; /* (lost_count) */
    uint32_t lost_count;
    /* the loop's: the last neighbour_distance that was measured; NaN: none, or one only */
    double distance, contraction;
    uint64_t measured_round;
} sl_agent_shown;

/* When what was. */
typedef struct sl_agent_times {
    double began_s, gradient_ended_s;
    double exchange_began_s, exchange_ended_s; /* of this round; began 0: it has none yet */
    double busy_since_gradient_s; /* encode and combine since this round's gradient was there */
    double progress_s;            /* when the node last made a step */
    double deadline_s;            /* end of the phase, where it has one */
    double told_s, tell_after_s;  /* when it was last told what is waited for; when again */
    sl_span work;                 /* encoding or combining, that is not told yet; see tracing.c */
} sl_agent_times;

/* After the last round. Nodes at their own times answer others until a sum, of nothing but numbers,
 * says that all have come so far. The exact average of all models (final_average) is two more over
 * the members of the last view (reduce.h), of the models, and of their squared distances from the
 * mean, by which all know how far apart they were. They go along edges that the agents have anyway.
 * If somebody is lost meanwhile, each ends with its own model, unless it has the average already.
 */
typedef enum sl_averaging_stage {
    SL_AVERAGING_NONE,
    SL_AVERAGING_WAITS,    /* with that, for the next view */
    SL_AVERAGING_GATHERS,  /* all come to their last rounds */
    SL_AVERAGING_DRAINS,   /* what they have sent before comes */
    SL_AVERAGING_MODELS,   /* are added up */
    SL_AVERAGING_DISTANCES /* likewise */
} sl_averaging_stage;

typedef struct sl_averaging {
    sl_averaging_stage stage;
    float *mean;     /* (d) on the host; NULL: no average is wanted */
    double weight;   /* of push-sum, this model's, and then all models' */
    double distance; /* this model's squared, and then all models' */
} sl_averaging;

/* Whom an agent trusts, anew while it runs: roster and key files are read again, and what they say
 * holds from the next connection on. A peer that is not trusted any more loses its connections at
 * once. The thread that asks reads the files. The loop looks whether all of it fits, and takes all
 * or nothing. A run's key that is another one holds beside the one before for security.overlap_s.
 */
typedef enum sl_trust_state {
    SL_TRUST_NOT_YET, /* the loop does not run yet */
    SL_TRUST_RUNS,
    SL_TRUST_OVER
} sl_trust_state;

enum { SL_TRUST_TIME_MAX = 32 };

typedef struct sl_trust {
    /* under the agent's mutex */
    pthread_cond_t changed;
    bool open;
    sl_trust_state state;
    bool asked;                  /* what follows is for the loop */
    sl_credentials *credentials; /* NULL: as before; so is the roster */
    sl_roster *roster;
    sl_error error; /* the loop's answer; code 0: it has taken both */
    char said[SL_AGENT_RELOAD_MAX];

    /* the loop's */
    sl_credentials *own_credentials; /* that it has taken; NULL: those that it was opened with */
    sl_roster *own_roster;
    sl_roster *before_own;   /* the one before it, where that is the agent's, too */
    const sl_roster *before; /* the last one that named other certificates; NULL: none has */
    char key_time[SL_TRUST_TIME_MAX], roster_time[SL_TRUST_TIME_MAX]; /* when they were changed */
    double overlap_ends_s; /* of the run's key before; 0: there is none */
    bool told_end;         /* that the CA's list has ended */
} sl_trust;

/* What a node is to be told of: that a neighbour has this data frame. */
typedef struct sl_await {
    sl_neighbour *neighbour; /* NULL: of nothing */
    uint64_t number;
} sl_await;

/* What the task was told of the round's model. */
typedef struct sl_told_ranges {
    uint64_t round;
    uint32_t count; /* of sl_node_mixed */
} sl_told_ranges;

typedef struct sl_telling {
    sl_await node; /* at its own times */
    sl_told_ranges task;
} sl_telling;

struct sl_agent {
    sl_agent_settings settings;
    agent_phase phase;
    bool parting;                  /* over, and telling the neighbours why */
    sl_error error;                /* why the run ends early */
    char cause[SL_FRAME_TEXT_MAX]; /* the same for the neighbours: names the edge where it began */
    sl_loop *loop;
    sl_worker *worker;
    sl_machine node;
    int stop_descriptor;
    sl_agent_shown shown;

    int notify_fd; /* signalled when a device has done what the node waits for */
    bool tick_due;
    bool initialized; /* the worker has given the first model: rounds are to begin */
    sl_plan plan;
    sl_sending sending;

    sl_side side;
    sl_neighbour *neighbours; /* (neighbour_count) sorted by rank */
    uint32_t neighbour_count;
    sl_calls calls;
    sl_averaging averaging;
    sl_saving saving;
    sl_cohort cohort;
    sl_trust trust;
    sl_unverified_list unverified;

    sl_outbox outbox;
    sl_neighbour **receivers; /* (receiver_count) of the message in the outbox */
    uint32_t receiver_count;
    sl_telling tells;

    sl_agent_times times;
    sl_record record;
};

/* Behind the last of the neighbours. */
static inline sl_neighbour *sl_agent_behind(const sl_agent *a) {
    return a->neighbours + a->neighbour_count;
}

/* tracing.c */
/* ENCODE or COMBINE. */
void sl_tracing_work(sl_agent *a, sl_span_kind kind, double ends_s, double seconds);
void sl_tracing_gradient(const sl_agent *a, double ends_s, double seconds);
/* The node's round is over. */
void sl_tracing_round(const sl_agent *a, uint64_t round, double ends_s);
/* A message to the neighbour begins. */
void sl_tracing_send(const sl_agent *a, sl_neighbour *n, uint64_t exchange);
/* Looks which have left. */
void sl_tracing_sent(const sl_agent *a);
/* The node has taken a part. */
void sl_tracing_receive(const sl_agent *a, sl_neighbour *n, const sl_event *event);

/* rounds.c */
/* Ends the run: the first call counts. `cause` is what the neighbours are told. */
void sl_agent_fail(sl_agent *agent, const sl_error *error, const char *cause);
/* The same, with an error of its own; printf-like. */
void sl_agent_fail_here(sl_agent *agent, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void sl_agent_deliver(sl_agent *agent, const sl_event *event);
/* The same, for a node that rests: the next round begins. */
void sl_agent_begin(sl_agent *agent, const sl_event *event);
/* The same: the run ends for this agent, alone or with all others. */
void sl_agent_depart(sl_agent *agent, bool with_all);
/* Does a gradient run, perhaps of a node that rests? */
bool sl_agent_computes_apart(const sl_agent *agent);
/* The last round is done, and so is what comes after it. */
void sl_agent_finish(sl_agent *agent);
/* Sends what may be sent; true: something was. */
bool sl_agent_send_parts(sl_agent *agent);
/* Of a node at its own times: an ACCOUNT frame. */
void sl_agent_take_account(sl_agent *agent, const sl_neighbour *from, const sl_frame *frame);
/* The same: nothing else happens at this instant. True: it went on. */
bool sl_agent_turn(sl_agent *agent);
/* Tells the node which parts it may overwrite: those that came to all receivers. `copy`: also one
 * that has left and may not have come, if the node stops for it: a copy is made. True: there was
 * one. */
bool sl_agent_settle(sl_agent *agent, bool copy);
/* The rest of the message under way does not leave. Has all that has begun to? */
bool sl_agent_recall(sl_agent *agent);
/* The worker has a result. */
void sl_agent_on_worker(void *agent);
/* The task has called something of collective.h. */
void sl_agent_on_call(void *agent);
/* The device has done what the node waits for. */
void sl_agent_on_notified(void *agent);
sl_neighbour *sl_agent_neighbour(sl_agent *agent, uint32_t rank);

/* gate.c */
sl_gate sl_gate_of(sl_agent *agent);
/* Is such a greeting worth a challenge? Without one, *passage is unproved. */
bool sl_gate_admits(const sl_agent *agent, const uint8_t greeting[SL_GREETING_BYTES],
                    sl_passage *passage, char why[SL_GREETING_WHY_MAX]);
/* Unverified reason; shown if the neighbour never connects. */
void sl_gate_remember(sl_agent *agent, uint32_t rank, const char *why);

/* contacts.c */
extern const sl_connection_handlers sl_contacts_neighbours, sl_contacts_visitors;
sl_connection *sl_contacts_requested(void *agent, const uint8_t greeting[SL_GREETING_BYTES],
                                     const char *from, char why[SL_GREETING_WHY_MAX]);
/* Dials, sends heartbeats, notices silence, ends silent visitors. */
void sl_contacts_tick(sl_agent *agent);
/* This process was held up for so long. */
void sl_contacts_forgive(sl_agent *agent, double lag_s);
/* Is this neighbour still to be connected, or to be connected anew? */
bool sl_contacts_awaits(const sl_agent *agent, const sl_neighbour *n);
/* Into the log of events: how each connection is protected. One that is made anew is protected as
 * the one before. */
void sl_contacts_log_edges(sl_agent *agent);
/* The same: which connections are down. */
void sl_contacts_log_lost(sl_agent *agent);
/* Of a neighbour whose connection broke: the seconds left for another one; below 0: it is gone. */
double sl_contacts_left_s(const sl_agent *agent, const sl_neighbour *n);

/* What has proved its connection holds no longer: it is lost; unless `for_good`, there is time for
 * another one. */
void sl_contacts_expel(sl_agent *agent, sl_neighbour *n, const char *why, bool for_good);

/* rejoin.c */
/* An agent that is outside asks for a model, and then to join. */
void sl_returning_tick(sl_agent *agent);
/* It is to join, and none of those who train has let it in. */
bool sl_returning_knocks(const sl_agent *agent);
/* Its gradient was refused: it steps aside, or has to end. True: it was. */
bool sl_returning_step_aside(sl_agent *agent);

/* progress.c */
/* Tells the starter of the agent, printf-like. */
void sl_agent_notice(sl_agent *agent, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Something for the log of events, from any thread. Before the first round nothing is noted. */
void sl_agent_log(sl_agent *agent, const sl_log_entry *entry);
/* Of a node at its own times: what it has done, for who repeats the run. */
static inline void sl_agent_act(const sl_agent *a, const sl_act *act) {
    if (a->node.own != NULL && a->settings.observer.act != NULL)
        a->settings.observer.act(a->settings.observer.context, act);
}
/* The same, saved or let go as it rests: it takes nothing more. */
static inline bool sl_agent_has_left(const sl_agent *a) {
    return a->node.own != NULL && a->saving.left;
}
/* From any thread: a checkpoint is written. */
void sl_agent_note_saved(sl_agent *agent);
/* From any thread: the loop is to look at it. */
void sl_agent_wish(sl_agent *agent, unsigned bit);
/* Shows other threads what there is now. */
void sl_agent_look(sl_agent *agent);
/* Its neighbours' distance in this round, if that was measured, and what is left of the last one.
 */
void sl_agent_measured(sl_agent *agent, const sl_round *round);
/* Tells the task what of the round's model is there already. */
void sl_agent_tell_mixed(sl_agent *agent);
/* Of a request to stop: why. */
sl_error sl_agent_end_asked(sl_agent *agent);

/* waits.c */
/* Finds out for whom it waits, and what heartbeats are to say. */
void sl_waits_look(sl_agent *agent);
/* When the agent last moved on. */
double sl_waits_moved_s(const sl_agent *agent);
/* The same, or when those that it waits for, and that are behind it, have. */
double sl_waits_patient_s(const sl_agent *agent);
/* For whom or what it waits; false, and "": for nobody. */
bool sl_waits_name(const sl_agent *agent, char *out, size_t bytes);
/* Has it not taken a part of this agent's message? */
bool sl_waits_for_taker(const sl_agent *agent, const sl_neighbour *n);
/* Of an exchange whose parts have come: the edge on which one of its own does not go. False: there
 * is none. */
bool sl_waits_name_taker(const sl_agent *agent, sl_error *wait);
/* "; agent 5 computes round 812 since 41 s"; "": nobody knows, or all are still to come up. */
void sl_waits_name_root(const sl_agent *agent, char *out, size_t bytes);

/* averaging.c */
int sl_averaging_open(sl_agent *agent, sl_error *error);
void sl_averaging_close(sl_agent *agent);
/* The last round is done: begins. False: there is nothing to do. */
bool sl_averaging_begin(sl_agent *agent);
/* Have members promised something, so that it is not to be known that all have come? */
bool sl_averaging_holds(const sl_agent *agent);
/* It is known here: members are to agree on no next view. */
bool sl_averaging_ends_views(const sl_agent *agent);
/* While there is one. True: all is added up, and the node's model is the average; or it is given
 * up. is_void: somebody does not come to it. is_behind: somebody is in the next view already. */
bool sl_averaging_advance(sl_agent *agent, bool is_void, bool is_behind);

/* trust.c */
int sl_trust_open(sl_agent *agent, sl_error *error);
void sl_trust_close(sl_agent *agent);
/* The loop runs, or does not any more. */
void sl_trust_be(sl_agent *agent, sl_trust_state state);
/* Somebody has asked. */
void sl_trust_take(sl_agent *agent);
/* The run's key before may have come to its end, or the CA's list. */
void sl_trust_tick(sl_agent *agent);

/* agent.c */
/* The loop, which wakes for the fabric, the worker, a request to stop, the device, and time. */
int sl_agent_open_loop(sl_agent *agent, sl_error *error);

/* ---- publishing.c ---- */

/* Is all that comes a plain vector, of which nothing has to be checked before it is used? */
bool sl_agent_comes_plain(const sl_agent *a);
void sl_agent_open_published(sl_agent *a);
/* sl_way_out.take, of an agent. */
void *sl_agent_publish(void *agent, size_t bytes, bool *waits);

#endif
