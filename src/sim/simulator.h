/* simulator.h - what the simulator's files share: sim.c goes from round to round, losses.c plays
 * faults between two of them, repeat.c those of a real run; clocked.c lets nodes go at their own
 * times, repeat_acts.c as they went in a real run; nodes.c drives one node. */
#ifndef SL_SIMULATOR_H
#define SL_SIMULATOR_H

#include "async/machine.h"
#include "checkpoint/saver.h"
#include "sim/recorded.h"
#include "sim/scene.h"
#include "starling/checkpoint.h"
#include "starling/observer.h"
#include "starling/timeline.h"
#include "task/host_task.h"

/* A published part, alive until its last reader has let go. */
typedef struct message {
    struct message *next_free, *next_made;
    void *data;
    uint32_t readers;
} message;

typedef struct peer {
    sl_node *node;         /* NULL: it is not there */
    sl_async *async;       /* in its place, where nodes go at their own times */
    sl_node_view own_view; /* the same of such a node: `view`, from its own round on */
    sl_outbound sending;
    uint32_t encoded;  /* of its parts */
    sl_update pending; /* what the node has asked for and not yet been given */
    sl_record record;
    size_t repeated;           /* of its history */
    const sl_scene_view *view; /* under which it is; NULL: the first */
    double loss;               /* of its gradient */
    bool added, gave_up;       /* of a run that is repeated: SL_ACT_ADD, SL_ACT_GIVES_UP */
    sl_node *aside; /* with its model, until the next round begins; of a run that is repeated:
                       until its view does; NULL: it is not */
    sl_setbacks setbacks;
} peer;

typedef struct simulator {
    const sl_experiment *experiment;
    const sl_task *task;
    const sl_observer *observer;
    sl_plan plan;
    sl_sending sending;
    uint32_t nodes;
    peer *peers;
    sl_scene scene;       /* where the experiment has faults */
    size_t message_bytes; /* the longest part */
    message *free_messages, *made_messages;
    const sl_vec_ops *vec;
    sl_host_task host;
    float *gradient; /* all nodes' in turn; NULL: each has its own */
    float *copies; /* (nodes, d) of models that lie on a device, while they are recorded; NULL: they
                      lie on the host */
    uint32_t set_aside;    /* nodes, in the last round, in which all were cut */
    uint64_t published;    /* messages so far */
    sl_timeline *timeline; /* NULL: nobody asks */
    const sl_checkpoints *checkpoints;
    sl_checkpoint_owner owner; /* of checkpoints */
    uint64_t resumed;          /* the round that the run goes on from; 0: it begins */
    int asked;                 /* as checkpoints->asked, of which asked_for */
    uint64_t asked_for;        /* a round that is saved because somebody asked; 0: none */
    sl_saver *saver;           /* NULL: no checkpoints are written */
    double began;
} simulator;

/* ---- nodes.c ---- */

/* With one reader, who lets go of it; NULL: out of memory. */
message *sl_sim_take_message(simulator *s);
void sl_sim_let_go(simulator *s, message *m);
float *sl_sim_model(const simulator *s, uint32_t rank);
/* On the host, as long as no other record of it is made. */
const float *sl_sim_recorded_model(const simulator *s, uint32_t rank);
double sl_sim_push_sum_weight(const simulator *s, uint32_t rank);
/* The round after which the run ends; 0: its last. */
uint64_t sl_sim_end_after(const simulator *s);
/* Does it repeat a real run from its logs of events? */
bool sl_sim_repeats(const simulator *s);
/* May its nodes at their own times be cut? */
bool sl_sim_cuts(const simulator *s);
sl_node_settings sl_sim_settings(const simulator *s, uint32_t rank);
static inline bool sl_sim_is_there(const peer *p) {
    return p->node != NULL || p->async != NULL;
}
/* view: that it comes with; NULL: it was there from the beginning. */
int sl_sim_open_node(simulator *s, uint32_t rank, const sl_scene_view *view, sl_error *error);
void sl_sim_close_node(peer *p);
/* A new node of this rank, with the sponsor's model; one that shares rounds is aside until the view
 * begins. */
int sl_sim_take_model(simulator *s, const sl_scene_view *view, uint32_t rank, uint32_t sponsor,
                      sl_error *error);
/* It is under this view, and its task hears of that. */
int sl_sim_enter(simulator *s, uint32_t rank, const sl_scene_view *view, sl_error *error);
/* An event of a node; keeps what the node asks for. */
int sl_sim_step(simulator *s, uint32_t rank, const sl_event *event, sl_error *error);
void sl_sim_log(const simulator *s, const sl_log_entry *entry);
/* Tells the observer who is there. */
void sl_sim_tell_members(simulator *s, uint64_t round);

/* ---- clocked.c ---- */

/* The whole run, of an algorithm whose nodes do not go in rounds. */
int sl_sim_run_clocked(simulator *s, const volatile int *stop, sl_error *error);

/* ---- repeat_acts.c ---- */

/* The same run as agents had it, from what their nodes did. */
int sl_sim_run_repeated(simulator *s, const volatile int *stop, sl_error *error);

/* ---- apart.c: nodes at their own times ---- */

sl_recorded sl_apart_recorded(const simulator *s);
int sl_apart_report_start(const simulator *s);
/* A part that has come. */
sl_event sl_apart_received(uint32_t from, const sl_async_part *part, message *token);
/* Computes the gradient that the node has asked for, and its loss. */
void sl_apart_gradient(simulator *s, uint32_t rank);
int sl_apart_end_round(simulator *s, sl_recorded *recorded, uint32_t rank, const sl_round *round,
                       sl_error *error);
/* All nodes as they are, under this number of a round. virtual_s: at this time; below 0: each at
 * its own. */
int sl_apart_report_all(const simulator *s, const sl_recorded *recorded, uint64_t round,
                        double virtual_s);
/* The exact average; what is still on its way belongs to it. */
int sl_apart_average(simulator *s, sl_recorded *recorded, sl_error *error);

/* ---- losses.c ---- */

/* All nodes rest before `round` if anything happens as it begins. */
void sl_sim_hold_before(simulator *s, uint64_t round);
/* Who is not there any more is closed, with all that it had: with leavers, those, too, who say that
 * they leave. How many were there? */
uint32_t sl_sim_close_gone(simulator *s, uint64_t round, bool leavers);
/* The view of those who are there; newcomers have a sponsor's model. */
int sl_sim_next_view(simulator *s, uint64_t round, uint64_t exchange, const sl_scene_view **out,
                     sl_error *error);
/* Lets it happen, before any node begins the round. */
int sl_sim_change_members(simulator *s, uint64_t round, sl_error *error);

/* All gradients of the round are there: who has one that is not finite, or such a loss, is set
 * aside, and the others are cut. It goes on in the next round from the model that it has; the third
 * time in 100 rounds it does not. More than half of the nodes: SL_EDIVERGED. */
int sl_sim_set_aside(simulator *s, uint64_t round, sl_error *error);

/* ---- averaging.c ---- */

/* All rounds are done: every node takes the exact average, and its record says how far they were
 * apart. */
int sl_sim_average(simulator *s, sl_error *error);
/* Is it of the last view? It may have done all its rounds, and then been lost. */
bool sl_sim_ends_with(const simulator *s, uint32_t rank);

/* ---- repeat.c ---- */

/* Is the node cut before it would combine this part? */
bool sl_sim_misses(const simulator *s, uint32_t rank, const sl_event *part);
/* Is the node cut before it hears that this part of its message has left? */
bool sl_sim_keeps_back(const simulator *s, uint32_t rank, const sl_outbound *sent, uint32_t part);
/* Nothing else goes on: cuts those who are where they were cut. *any: there are some. */
int sl_sim_cut(simulator *s, bool *any, sl_error *error);
/* sl_sim_step; a node that ends as it had in the run that is repeated ends alone. */
int sl_sim_deliver(simulator *s, uint32_t rank, const sl_event *event, sl_error *error);
/* The view begins for a member. */
int sl_sim_turn(simulator *s, uint32_t rank, const sl_scene_view *v, sl_error *error);
/* All nodes rest: begins their views, or lets them go on. */
int sl_sim_begin_repeated(simulator *s, uint64_t round, sl_error *error);
/* Has this step ended the node, and is a run repeated, in which the others went on? Then it is
 * closed. */
bool sl_sim_ends_alone(simulator *s, uint32_t rank, int result);
/* Closes nodes that stand still in the round: they were lost. SL_EFILE: all do. */
int sl_sim_close_lost(simulator *s, uint64_t round, sl_error *error);

#endif
