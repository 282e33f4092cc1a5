/* observer.h - what a driver (agent, simulator) reports while it trains, and when. */
#ifndef STARLING_OBSERVER_H
#define STARLING_OBSERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/experiment.h"
#include "starling/node.h"
#include "starling/task.h"
#include "starling/view.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the time went, in seconds since the run began. */
typedef struct sl_times {
    double total;    /* wall clock since the first round began */
    double gradient; /* computing gradients */
    double encode;   /* adapting and encoding payloads, checksums */
    double exchange; /* from the first part offered to the last part combined */
    double wait;     /* waiting for neighbours: no gradient, encode or combine was running */
    double combine;
} sl_times;

/* Connections that were not those of neighbours, by what was wrong. Kind, its name. */
#define SL_REFUSED_KINDS_X(X)                                                                      \
    X(SL_REFUSED_SILENT, "silent")     /* they did not greet in time, or whole */                  \
    X(SL_REFUSED_GREETING, "greeting") /* they greeted as no neighbour does */                     \
    X(SL_REFUSED_HELLO, "hello")       /* they greeted, and did not agree */
typedef enum sl_refused {
#define SL_REFUSED_ENUM(name, text) name,
    SL_REFUSED_KINDS_X(SL_REFUSED_ENUM)
#undef SL_REFUSED_ENUM
        SL_REFUSED_KINDS
} sl_refused;

/* One recorded round of one node. */
typedef struct sl_record {
    uint32_t rank;
    double time_s;    /* since the run was started; the caller fills it in */
    double virtual_s; /* on the clock of a simulation whose nodes go at their own times; else 0 */
    sl_round round;
    bool averaged; /* final_average: the model is all nodes' average, which were this far apart, */
    double averaged_distance; /* as sl_consensus.distance says */
    sl_evaluation evaluation; /* of this node's model on held-out data; NaN: not evaluated */
    uint64_t bytes_sent, bytes_received;     /* data frames with headers, since the run began */
    uint64_t messages_sent, messages_silent; /* likewise: to each receiver, with and without a
                                                payload */
    sl_times times;
    uint64_t refused[SL_REFUSED_KINDS]; /* since the process began */
    uint64_t doubtful;                  /* as sl_round's, since the process began */
} sl_record;

/* Records a finished round and adds its traffic, with `header_bytes` for each frame, to the
 * totals. */
SL_API void sl_record_take_round(sl_record *record, const sl_round *round, size_t header_bytes);

/* Is the record's round the first one with elements that were perhaps decoded wrongly? Then *text
 * says so, and what to do. */
enum { SL_DOUBT_TEXT_MAX = 240 };
SL_API bool sl_record_doubts(const sl_record *record, char text[SL_DOUBT_TEXT_MAX]);

/* The totals of a record, for a checkpoint: SL_RECORD_PIECES of them. */
enum { SL_RECORD_PIECES = 10 };
SL_API void sl_record_pieces(sl_record *record, sl_piece out[SL_RECORD_PIECES]);

/* ---- the log of events ---- */

/* What happens to a run beside its rounds, as far as it takes to repeat it. Kind, its name, what it
 * says. */
#define SL_LOG_KINDS(X)                                                                            \
    X(SL_LOG_START, "start", "training begins: all neighbours are connected")                      \
    X(SL_LOG_RESUME, "resume", "the run goes on from a checkpoint")                                \
    X(SL_LOG_SETTINGS, "settings", "how it trains and records from this round on")                 \
    X(SL_LOG_EDGE, "edge", "how the connection to a neighbour is protected")                       \
    X(SL_LOG_DOWN, "down", "the connection to a neighbour broke")                                  \
    X(SL_LOG_UP, "up", "it is back")                                                               \
    X(SL_LOG_REQUEST, "request", "all nodes are asked to save a round ahead")                      \
    X(SL_LOG_CHECKPOINT, "checkpoint", "a file is there, or cannot be")                            \
    X(SL_LOG_LOST, "lost", "a peer is gone: killed, left, or cut off")                             \
    X(SL_LOG_CUT, "cut", "nothing more is exchanged, until a view")                                \
    X(SL_LOG_COMMIT, "commit", "all agree on the next view")                                       \
    X(SL_LOG_VIEW, "view", "other members go on, from a round on")                                 \
    X(SL_LOG_JOIN, "join", "an agent asks to take part again, with a sponsor's model")             \
    X(SL_LOG_END, "end", "the run has ended for a node")

typedef enum sl_log_kind {
#define SL_LOG_ENUM(name, text, meaning) name,
    SL_LOG_KINDS(SL_LOG_ENUM)
#undef SL_LOG_ENUM
} sl_log_kind;

/* What follows on a checkpoint that was asked for. */
typedef enum sl_log_then { SL_LOG_GO_ON, SL_LOG_LEAVE } sl_log_then;
/* How a run ended: all of its rounds, after a checkpoint that was asked for, on request, not well,
 * or on request while the others go on. */
typedef enum sl_log_outcome {
    SL_LOG_DONE,
    SL_LOG_SAVED,
    SL_LOG_STOPPED,
    SL_LOG_FAILED,
    SL_LOG_LEFT
} sl_log_outcome;

enum { SL_LOG_PASSED_MAX = 16, SL_LOG_WORD_MAX = 32 };
#define SL_LOG_ALL UINT32_MAX /* rank of an entry that is of all nodes: the simulator's */

/* One event. Only the members that its kind names mean something. */
typedef struct sl_log_entry {
    sl_log_kind kind;
    uint32_t rank;
    uint64_t round; /* start, settings: the first, 0: it joins; resume, checkpoint, request: the one
                       that is saved; edge, down, up, cut, commit: under way; join: the last that it
                       ended; lost, view: the first without the peer, of the view; end: the last
                       that ended, 0: none */
    uint64_t rounds, run_id;                 /* start: of the run */
    uint64_t incarnation;                    /* start: of the process, random, below 2^53 */
    uint64_t simulations;                    /* start; the log fills it in, as the next three: so
                                                many of the run had begun before, in its folder */
    char version[SL_LOG_WORD_MAX];           /* start */
    char kernels[SL_LOG_WORD_MAX];           /* start: sl_kernels_name */
    char blas[SL_LOG_WORD_MAX];              /* start: sl_learner_blas */
    uint64_t passed_over[SL_LOG_PASSED_MAX]; /* resume: newer rounds that it had a file of */
    size_t passed_over_count;
    const char *settings;  /* settings: sl_experiment_settings, borrowed; NULL: unknown */
    uint32_t peer;         /* edge, down, up, lost; join: the sponsor */
    uint64_t after;        /* join: the round after which the sponsor had the model; commit:
                              the last one before the view */
    const uint32_t *ranks; /* view: (members) rising, borrowed */
    uint64_t members;      /* view */
    const sl_pair *broken; /* view: (broken_count) edges that it does without, borrowed */
    uint64_t broken_count;
    double gap;                  /* view: the spectral gap of their topology; NaN: unknown */
    uint64_t exchange;           /* down, up; cut: sl_node_reach; view: the last before it */
    uint32_t step, part;         /* cut: sl_node_reach */
    double seconds;              /* up: how long it was down */
    sl_log_then then;            /* request */
    sl_log_outcome outcome;      /* end */
    char why[SL_ERROR_TEXT_MAX]; /* edge (its protection), down, lost, view (who they are),
                                    checkpoint (empty: it was written), end (empty: all
                                    rounds are done) */
} sl_log_entry;

/* What is repeated of a node's log. */
typedef struct sl_history {
    sl_log_entry *entries; /* (count) cuts, views and joins, in order; a join is of one that then
                              comes, of the process or of a new one, with the view that follows */
    size_t count;
    sl_act *acts; /* (act_count) of a node at its own times, in order */
    size_t act_count;
} sl_history;

/* The end of a run that returned error->code. */
SL_API sl_log_entry sl_log_end(uint64_t round, const sl_error *error);

/* What a node did for a while. Seconds are those of the driver's clock, an agent's sl_clock's. */
typedef enum sl_span_kind {
    SL_SPAN_GRADIENT, /* it computed one */
    SL_SPAN_WAIT,     /* since then, before its round was over */
    SL_SPAN_MESSAGE,  /* simulated: it was on its way */
    SL_SPAN_ENCODE,   /* an agent adapted and encoded */
    SL_SPAN_COMBINE,  /* or combined */
    SL_SPAN_SEND,     /* an agent's message, from the first part handed over until all has left */
    SL_SPAN_RECEIVE   /* from the first part taken to the last one */
} sl_span_kind;
typedef struct sl_span {
    sl_span_kind kind;
    uint32_t rank, peer; /* peer: MESSAGE, SEND: its receiver; RECEIVE: its sender */
    uint64_t round;      /* but of MESSAGE; SEND, RECEIVE: the exchange */
    double begins_s, ends_s;
} sl_span;

/* What a driver reports to its caller. Calls come from the driver's threads, one at a time. A
 * negative return value ends the run with that code. Each may be NULL. */
typedef struct sl_observer {
    void *context;
    /* A recorded round: x (d) is the model after it, borrowed for the call. */
    int (*record)(void *context, const sl_record *record, const float *x);
    /* The parameters in a round of record.parameters_at; round 0: initial. */
    int (*parameters)(void *context, uint64_t round, uint32_t rank, const float *x,
                      double push_sum_weight);
    /* `rank` is about to compute the gradient of `round`. */
    void (*round)(void *context, uint32_t rank, uint64_t round);
    /* The others go on without `rank`, which returns by itself: its loss, gradient or model in
     * `round` is not finite, or it was silent for too long, or cut off; `why` says it. */
    void (*aside)(void *context, uint32_t rank, uint64_t round, const char *why);
    /* `rank`, without which the others had gone on, takes part again from `round` on. */
    void (*returned)(void *context, uint32_t rank, uint64_t round);
    /* A message to show: for whom the driver waits, or, if it begins with "warning: ", whom it has
     * refused. Twenty a second at most. Comes from another thread than the calls above, at any
     * time. */
    void (*notice)(void *context, const char *text);
    /* An agent goes on from the checkpoint of `round`, on which all have agreed; before any record.
     * On the agent's loop. Negative: the run ends. */
    int (*resumed)(void *context, uint64_t round);
    /* The agent's loop goes round; on it, several times a second. */
    void (*alive)(void *context);
    /* An event, before anything that follows from it is sent. From any of the driver's threads, at
     * any time; it does not wait for another. */
    void (*log)(void *context, const sl_log_entry *entry);
    /* What the agent's node, which goes at its own times, has done; on the agent's loop, in order.
     */
    void (*act)(void *context, const sl_act *act);
    /* Of a simulation whose nodes go at their own times: a round of one of them has ended, recorded
     * or not. */
    void (*ended)(void *context, const sl_record *record);
    /* Of such a simulation, and of an agent, on its loop. */
    void (*span)(void *context, const sl_span *span);
    /* From `round` on, these ranks take part (count, rising); before it is called, all do. */
    void (*members)(void *context, uint64_t round, const uint32_t *ranks, uint32_t count);
} sl_observer;

/* Of the nodes that a run began with, `gone` were lost, and did not leave on purpose: are fewer
 * than half left? */
SL_API bool sl_is_minority(uint32_t began, uint32_t gone);

/* The resolved record.every: as configured, or about 20 times a run. */
SL_API uint64_t sl_record_every(const sl_record_config *config, uint64_t rounds);
/* Is `round` (1..rounds) evaluated and recorded: a multiple of sl_record_every, or the last? */
SL_API bool sl_record_due(const sl_record_config *config, uint64_t round, uint64_t rounds);
/* The number of nodes whose models are evaluated: record.evaluate, or all up to
 * SL_RECORD_NODES_ALL nodes, and SL_RECORD_NODES_SAMPLE of more. */
enum { SL_RECORD_NODES_ALL = 100, SL_RECORD_NODES_SAMPLE = 32 };
SL_API uint32_t sl_record_evaluated(const sl_record_config *config, uint32_t nodes);
/* Is the model of `rank` evaluated? Those are spread evenly; the others have evaluation NaN. */
SL_API bool sl_record_evaluates(const sl_record_config *config, uint32_t nodes, uint32_t rank);
SL_API bool sl_record_parameters_due(const sl_record_config *config, uint64_t round);

/* Over all nodes of one recorded round. */
typedef struct sl_consensus {
    sl_evaluation mean_model; /* evaluation of the averaged model */
    double distance;          /* consensus distance sqrt((1/n) sum_i ||x_i - mean||^2) */
    double bytes_sent;        /* by a node since the run began, mean over nodes */
    double virtual_s;         /* when the last node had ended the round, as sl_record's */
} sl_consensus;
/* models: n pointers to d floats. Writes their mean (double sums in rank order, rounded once) to
 * `mean` (d). */
SL_API double sl_consensus_distance(const float *const *models, uint32_t nodes, size_t dimension,
                                    float *mean);

#ifdef __cplusplus
}
#endif
#endif
