/* session.h - gossip inside a training loop of your own.
 *
 *   sl_session_join(&s, "experiment.json", d, &options, &error);
 *   sl_session_start(s, x, &error);          x (d): the parameters, float32
 *   for (...) {
 *       my_step(x);
 *       sl_session_mix(s, x, &error);        one round of the experiment's algorithm
 *   }
 *   sl_session_average(s, x, average, &distance, &error);
 *   sl_session_leave(&s, &error);
 *
 * Numbers: each call takes the numbers as they are at the call, wherever they are, and keeps no
 * pointer to them. What you do to x between two calls is your displacement, and counts as a step.
 *
 * mix runs one round with the displacement as gradient, g := x_before - x at rate 1, where x_before
 * is what the call before left in x. So every algorithm works with any optimizer. d-psgd leaves W x
 * in x, its variant combine-while-adapt W x_before + (x - x_before).
 *
 * Overlap (d-psgd, with options.overlap): begin publishes a snapshot of x, which is mixed while you
 * compute the next gradient; end gives x <- (mixed snapshot) + (x - snapshot), which is W x where
 * you have not changed x; then you take the step with that gradient. This is D-PSGD's original
 * form.
 *
 *   for (...) {
 *       sl_session_begin(s, x, &error);
 *       my_gradient(x, g);
 *       sl_session_end(s, x, &error);
 *       my_update(x, g);
 *   }
 *
 * All peers make the same calls in the same order, but for leave.
 *
 * Threads: a session belongs to the thread that joined. That thread makes all calls; another one
 * gets SL_EINVAL. Only sl_session_status, sl_session_edges, sl_session_fd, sl_session_ready and
 * sl_session_stop may come from any thread, until leave or abort begins. Hooks of a backward pass
 * may call sl_session_final, await, place and stream on its thread, while the one that joined waits
 * for that pass. Callbacks come from the threads that their comments name.
 *
 * Processes: a session stays with the process that joined. In a forked child every call returns
 * SL_EINVAL, and leave and abort set the child's pointer to NULL.
 *
 * Errors: a call that is not allowed, such as end without begin or one without a session (NULL),
 * returns SL_EINVAL and leaves the session as it was; so do SL_EVOID, and what a call says. Any
 * other error ends the session: the neighbours are told why, and all later calls return the same
 * error. Then sl_session_abort frees it.
 */
#ifndef STARLING_SESSION_H
#define STARLING_SESSION_H

#include <stdint.h>

#include "starling/api.h"
#include "starling/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_session sl_session;
typedef struct sl_session_home sl_session_home;
typedef struct sl_simulation sl_simulation;

#define SL_SESSION_TENSOR_AXES_MAX 16
#define SL_SESSION_TEXT_MAX 256
#define SL_SESSION_SAID_MAX 512                /* of sl_session_reload */
#define SL_SESSION_SUM_MAX (UINT64_C(1) << 40) /* numbers of one sum */

/* A range of x. The tensors stand one behind the other in x, in this order. */
typedef struct sl_session_tensor {
    const char *name;      /* "conv1.weight"; "": none */
    const uint64_t *shape; /* (axes) each at least 1; NULL where axes is 0: one number */
    uint64_t axes;         /* at most SL_SESSION_TENSOR_AXES_MAX */
} sl_session_tensor;

/* Fill it with sl_session_defaults, then change what you like. Nothing is kept but what `context`
 * and the callbacks point to. */
typedef struct sl_session_options {
    uint64_t size; /* of this struct, so that it can grow */

    /* ---- which peer this is, as in starling/launch.h ---- */
    int64_t rank;  /* -1: from the environment of the launcher */
    int64_t nodes; /* peers in all; -1: as many as the topology has, or, where it does not say, the
                      launcher has started */
    const char
        *roster; /* a file, a list with commas, or a pattern with {rank}; NULL: environment */
    const char *master; /* HOST:PORT where rank 0 tells the roster; NULL: environment */
    const char *listen; /* HOST:PORT where this peer listens; NULL: from roster or environment */
    uint64_t run_id;    /* equal on all peers of a run; 0: from the environment,
                           or see sl_launch_run_id */

    /* ---- how ---- */
    uint64_t overlap;    /* 1: begin and end will be called (d-psgd). Equal on all peers */
    uint64_t same_start; /* 1: start gives all peers the x of rank 0. Equal on all peers */
    uint64_t borrow;     /* 1, with overlap: begin copies nothing. x is sent from your memory, one
                            vector, which must be the same at end and must not change until then.
                            A change ends the session with SL_EINVAL and the tensor's name, and
                            nothing of it is mixed by others, where x is on the host. Where
                            memory is registered (transport.provider "verbs", gpu_direct) begin
                            copies all the same */
    double deadline_s; /* longest that one call may wait; a call that waits longer ends the session;
                          0: as long as the experiment's transport.* allows */
    const char *const *overrides; /* (override_count) "optimizer.momentum=0", as with --set */
    uint64_t override_count;

    /* ---- what x is ---- */
    const sl_session_tensor *tensors; /* (tensor_count) whose sizes add up to the dimension; NULL:
                                         x is one tensor. Peers whose tensors differ refuse each
                                         other, and name the first one that differs */
    uint64_t tensor_count;

    /* ---- callbacks, all may be NULL ---- */
    void *context; /* their first argument */
    /* A line for people: whom the session waits for, or, beginning with "warning: ", what has no
     * effect or whom it has refused. From the calling thread in join, else from the session's own
     * thread. */
    void (*log)(void *context, const char *text);
    /* While a call waits, about ten times a second, from the calling thread. Not 0: the call
     * returns SL_ESTOPPED, and the session ends. For interpreters that look for Ctrl-C here. */
    int (*waiting)(void *context);

    /* Inside sl_simulate: what it gave; else NULL. */
    sl_simulation *simulation;

    const char *key; /* in place of the experiment's security.key, such as "run.key"; NULL: that */
    uint64_t joins; /* 1: joins peers that train (membership.on_loss "continue"): as the rank of one
                       that was lost, or one beyond the topology's (membership.joiners). Needs
                       `roster`, the others' with a line for it. start waits until they take it
                       in, in a round of theirs, and gives x their model */

    /* ---- of sl_simulate only ---- */
    const char *out; /* the run folder that it leaves behind, as `starling sim` does
                        (starling/folder.h); NULL: none */
    /* With `out`: a model's loss on held-out data, and its accuracy; both are NaN before, not
     * known. Called in rounds of record.every, for the models of nodes and for their mean; on the
     * simulator's thread, while no peer's runs. NULL: nothing is evaluated. */
    void (*evaluate)(void *context, const float *x, uint64_t dimension, double *loss,
                     double *accuracy);

    sl_session_home *home; /* where all of x is; NULL: elsewhere */
} sl_session_options;

/* size: sizeof(sl_session_options). */
SL_API void sl_session_defaults(sl_session_options *options, uint64_t size);

/* Reads the experiment: a path, or JSON text that begins with {. Opens what the session needs, and
 * listens. Keys of model, data and rounds have no effect; momentum and weight decay are refused.
 * options NULL: the defaults. Waits for nobody. */
SL_API int sl_session_join(sl_session **out, const char *experiment, uint64_t dimension,
                           const sl_session_options *options, sl_error *error);

/* Connects to the neighbours, with x (d) as the first model. Here and below, x NULL: at the places
 * of sl_session_place. With same_start, x then is rank 0's;
 * with options.joins, a neighbour's, and status has the round that it was of.
 * SL_EPEER: one did not come within transport.connect_timeout_s. SL_EDIVERGED: as in mix. After
 * load, SL_EINVAL: x is not as it was; the session stays as it was. */
SL_API int sl_session_start(sl_session *session, float *x, sl_error *error);

/* ---- x on a GPU ---- */

/* With "device": "cuda:N" in the experiment, x of all calls is memory of that GPU, and `stream` is
 * the cudaStream_t on which you write and read it, until the next call of this; NULL, as before the
 * first one: the default stream. A call's reads of x come after what the stream has by then, and
 * what it gets later comes after the call's writes. While the stream is captured, calls are refused
 * (SL_EINVAL). Nothing else waits for the stream but save,
 * load's start and options.borrow; no call waits for the device, or changes the thread's current
 * device. What average and sum give is memory of the host. */
SL_API int sl_session_stream(sl_session *session, void *stream, sl_error *error);

/* ---- x where neighbours read it ---- */

/* Memory of the host for x: *x (dimension) zeros, from the start of a page on. With options.home, x
 * of begin under options.borrow, and of mix under options.overlap, is read there by neighbours of
 * this host, and nothing is copied to send it: end leaves the mixed x in pages that nobody reads,
 * and puts these at the same address. What is changed between begin and end is not seen by
 * neighbours, as it gets pages of its own. Where that cannot be (Linux before 5.13), or no page is
 * free, as one reads late, x is sent as from other memory. A forked process shares the numbers of a
 * session that has started: it must not write there. SL_ENOMEM */
SL_API int sl_session_home_open(sl_session_home **out, uint64_t dimension, float **x,
                                sl_error *error);
/* The memory stays until its session has ended, and has the numbers then, too. *home NULL is left.
 */
SL_API void sl_session_home_close(sl_session_home **home);

/* ---- x in pieces ---- */

/* For parameters that do not lie one behind the other: where each of options.tensors lies from now
 * on. The pointers are copied. A call that is given x NULL takes the numbers from these places, and
 * leaves them there; their memory must be there during such calls. On a GPU they are memory
 * there. */
SL_API int sl_session_place(sl_session *session, float *const *tensors, sl_error *error);

/* ---- going on after a stop ---- */

/* Writes all that this peer's next rounds follow from, beside x and the experiment, to state
 * (*bytes), for you to keep with x and your optimizer. state NULL: sets *bytes to what it takes
 * now. x: the parameters as they are. All peers save after the same calls; then all go on from
 * there with the bits that they would have had. After the first round; also between begin, or
 * offer, and end, where it holds a snapshot that differs from x, too. Waits for an exchange that is
 * under way, and so for all peers whose x it needs; changes nothing. Where peers go at their own
 * times it waits at the same place among all peers' calls, as average does, and a view of them
 * begins (membership.on_loss "continue", or sl_simulate; not between offer and end). SL_EVOID
 * as there: there is no state. */
SL_API int sl_session_save(sl_session *session, const float *x, void *state, uint64_t *bytes,
                           sl_error *error);

/* Between join and start: goes on from what this rank has saved (bytes). start then wants x as it
 * was, leaves it so, and refuses neighbours that go on from another round, or begin; what follows
 * is the call that would have followed save. state is read until start has returned. SL_EFILE: it
 * is of another rank or experiment, damaged or cut short; the session stays as it was. */
SL_API int sl_session_load(sl_session *session, const void *state, uint64_t bytes, sl_error *error);

/* ---- rounds ---- */

/* One round. In: the model after your step; out: the model after the exchange. SL_EDIVERGED: x
 * holds a number that is not finite; the other peers' next call names this rank and the round.
 * SL_EPEER: a neighbour did not call in time (transport.round_timeout_s), or is gone. */
SL_API int sl_session_mix(sl_session *session, float *x, sl_error *error);

/* mix in two halves, for those who wait elsewhere: takes a snapshot of x, and returns. SL_ENOMEM,
 * as in begin: there is no memory for it; the session stays as it was. */
SL_API int sl_session_offer(sl_session *session, const float *x, sl_error *error);

/* Publishes a snapshot of x, and returns; with options.borrow, x itself. */
SL_API int sl_session_begin(sl_session *session, const float *x, sl_error *error);
/* Waits for the round that begin, or offer, has begun: x <- its result + (x - snapshot). SL_EINVAL
 * with options.borrow: x was changed since begin; this ends the session. */
SL_API int sl_session_end(sl_session *session, float *x, sl_error *error);

/* ---- a round beside the backward pass ---- */

/* With transport.overlap, in place of mix: tensors from number `first` on are as your step leaves
 * them, on a GPU once the stream has done what it has by now, and go into the round; parts of its
 * message leave as they come. `first` falls with each call of a round, to 0. You change nothing of
 * them then until await or end. SL_EINVAL: `first` does not fall, or some tensors of the round
 * before were not awaited. */
SL_API int sl_session_final(sl_session *session, float *x, uint64_t first, sl_error *error);
/* After final of 0: waits until tensors [first, first + count) of the round are there, and leaves
 * them in x, each once; on a GPU in the stream's order. The next gradient may begin with those. Of
 * gossip they come one by one, else with the round. end does so for all that are left. Returns at
 * once where no round is under way, or all of them were awaited. */
SL_API int sl_session_await(sl_session *session, float *x, uint64_t first, uint64_t count,
                            sl_error *error);

/* Would sl_session_end return without waiting? 1 or 0. From any thread. */
SL_API int sl_session_ready(sl_session *session);
/* A descriptor that is readable while sl_session_ready is 1, for poll loops; do not read from it.
 * Closed by leave. -1 in sl_simulate, or in a forked child. From any thread. */
SL_API int sl_session_fd(sl_session *session);

/* The mean of all peers' models as they are at the call, summed in double and rounded once; the
 * same bits for all; x stays as it is. Push-sum: what its rounds conserve, sum_i (w_i z_i + step_i)
 * / n. Of who has left: as its last round left it. Waits until all peers call it, or have left.
 * average (d), on the host; distance: how far the models are apart, sqrt((1/n) sum_i ||x_i -
 * average||^2). Both may be NULL. Not between begin and end. SL_EVOID, under membership.on_loss
 * "continue": a peer was lost while the average was made. Then average holds this peer's own
 * model, distance is NaN, and the session goes on: this call is behind all peers, some of which may
 * have the mean. */
SL_API int sl_session_average(sl_session *session, const float *x, float *average, double *distance,
                              sl_error *error);

/* Adds up numbers of the caller's over all peers, in double: values (count) in: this peer's; out:
 * the sums, the same bits for all; *givers: the peers that gave some, as who has left gives none.
 * givers may be NULL. Waits as average does, at the same place among all peers' calls and with the
 * same count. SL_EVOID as there: values stay as they were. */
SL_API int sl_session_sum(sl_session *session, double *values, uint64_t count, uint64_t *givers,
                          sl_error *error);

/* Ends this peer's part. Its model still takes part in rounds, with displacement 0, until all peers
 * have left; then leave returns. The session is freed and *session set to NULL, on an error too. A
 * NULL *session is left. */
SL_API int sl_session_leave(sl_session **session, sl_error *error);

/* Ends the session at once, and tells the neighbours why (text of up to SL_SESSION_TEXT_MAX bytes;
 * NULL: nothing to say): their next call fails with that text. Frees the session and sets *session
 * to NULL. After an error it only frees. */
SL_API void sl_session_abort(sl_session **session, const char *why);

/* Ends the call that is under way, and the session, with SL_ESTOPPED. From any thread; safe in a
 * signal handler. */
SL_API void sl_session_stop(sl_session *session);

/* Reads the experiment's keys and the roster's file again: further ranks are let in, another pair
 * or run's key is used from the next connection on, and a peer that is revoked in the roster loses
 * its connections at once; see sl_agent_reload. If a file is wrong, all stays as it was, and the
 * session goes on. said (may be NULL): what has changed, in words. Waits for the files and names
 * only, and not for other peers. From any thread, after start. */
SL_API int sl_session_reload(sl_session *session, char said[SL_SESSION_SAID_MAX], sl_error *error);

/* Answers whoever looks at this peer at HOST:PORT (port 0: a free one), over HTTP, until the
 * session ends: /metrics for Prometheus, /livez, /readyz and /status; see starling/monitor.h.
 * Nothing can be changed through it. *port (may be NULL): where it listens. Once, from any thread,
 * after start. SL_EINVAL: the place is none, is taken, or beyond loopback without is_public. */
SL_API int sl_session_serve(sl_session *session, const char *place, int is_public, uint16_t *port,
                            sl_error *error);

/* ---- status ---- */

typedef enum sl_session_state {
    SL_SESSION_JOINED,  /* start comes next */
    SL_SESSION_STARTED, /* between rounds */
    SL_SESSION_ROUND,   /* between offer, or begin, and end */
    SL_SESSION_LEFT,    /* answers for the others */
    SL_SESSION_FAILED
} sl_session_state;

typedef struct sl_session_report {
    uint64_t size;  /* in: of this struct, so that it can grow */
    uint64_t state; /* sl_session_state */
    uint64_t rank, nodes;
    uint64_t round;            /* that have ended */
    double neighbour_distance; /* sqrt(sum_j W_ij ||x_j - x_i||^2) when last measured; NaN:
                                  never. Measured every record.every rounds, else 10 */
    double push_sum_weight;    /* 1 unless push-sum */
    uint64_t bytes_sent;       /* data frames with their headers, since start */
    uint64_t bytes_received;   /* likewise */
    double exchange_s;         /* exchanges, since start */
    double wait_s;             /* this peer's calls waited, since start */
    char waits_for[SL_SESSION_TEXT_MAX]; /* whom and what, and who is at the end of the
                                            wait, in words; "": for nobody */
    uint64_t epoch; /* counts who takes part: 1, and one more each time that peers are gone,
                       or join */
    /* Of algorithms whose peers go at their own times (docs/asynchronous.md); else 0. */
    uint64_t ahead;     /* rounds of this peer, less those of its slowest neighbour; below it: 0 */
    uint64_t staleness; /* how old what the last round combined was: sl_round's */
    double virtual_s;   /* the clock of sl_simulate, as the last round ended */
    uint64_t bytes_copied; /* since start, of models that were to be sent: snapshots, and what could
                              not leave, or be read, where it was, as seen some times a second */
} sl_session_report;

/* Fills *out. From any thread. */
SL_API int sl_session_status(sl_session *session, sl_session_report *out, sl_error *error);

/* Who takes part, by rank: fills up to `max`, and returns how many they are. Under
 * membership.on_loss "continue" a peer that is lost takes no part from a round on; the others go on
 * without it. From any thread. */
SL_API uint64_t sl_session_members(sl_session *session, uint64_t *out, uint64_t max);

typedef struct sl_session_edge {
    uint64_t rank;      /* the neighbour */
    uint64_t connected; /* 1: both have agreed on the run */
    uint64_t awaited;   /* 1: the round under way waits for it */
} sl_session_edge;

/* Fills up to `max` edges, by rank, and returns how many neighbours there are. From any thread. */
SL_API uint64_t sl_session_edges(sl_session *session, sl_session_edge *out, uint64_t max);

/* ---- many peers in one process ---- */

/* Calls `peer` for each of n ranks, each on a thread of its own, of which only one runs at a time,
 * in the same order in each run. Each joins with the options that it is given (which it may copy
 * and change, but for rank, nodes and simulation) and makes the calls that it would make as a
 * process: the numbers are the same bits as those of n processes. join's experiment is not read
 * there; it may be NULL. After leave a peer may join again, if all do.
 *
 * experiment: as in join. options: for all ranks; NULL: the defaults. `peer` returns 0, or what
 * ends the simulation, and then fills *error. Returns the first such error by rank. */
SL_API int sl_simulate(const char *experiment, uint64_t n,
                       int (*peer)(void *context, const sl_session_options *options,
                                   sl_error *error),
                       void *context, const sl_session_options *options, sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
