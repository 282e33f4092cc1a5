/* state.h - a session, for its own files.
 *
 * Two threads hand one model to and fro: the caller's, which trains, and the driver's, which calls
 * the task's hooks (an agent's worker, or the thread of sl_simulate).
 *
 *   driver: hand(model) ......... waits for a wish           round under way ....... hand(model)
 *   caller: waits ... handed: my_step(x), then a wish ....... waits (or computes) .. handed
 *
 * hand.c is that exchange. join.c, calls.c, together.c, saving.c and caller.c: what the caller
 * calls. numbers.c: x, in the caller's memory, and the snapshot of it that is published. rooms.c
 * and home.c: where both are read by neighbours. parts.c: rounds that come tensor by tensor.
 * memory.c: host or GPU. wishes.c: what the driver does with a wish. peer.c: the agent behind a
 * session. simulate.c: all peers in one process.
 */
#ifndef SL_SESSION_STATE_H
#define SL_SESSION_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "arena/window.h"
#include "async/machine.h"
#include "checkpoint/image.h"
#include "route/tree.h"
#include "session/layout.h"
#include "starling/agent.h"
#include "starling/launch.h"
#include "starling/monitor.h"
#include "starling/session.h"

/* No run has as many. */
#define SL_SESSION_ROUNDS (UINT64_MAX / 2)

/* What a state holds beside the node's pieces. */
typedef struct sl_moment {
    uint64_t
        round; /* the last that has ended, or at own times the cut's number; 0: there is no state
                */
    uint64_t form;           /* an sl_begun */
    uint64_t sum;            /* checksum of the caller's x */
    uint64_t behind;         /* 1: `base` is there */
    uint64_t apart;          /* 1: `snapshot` is there, as x has changed since */
    sl_checkpoint_view view; /* at own times: that begins */
} sl_moment;

/* The caller's x, during a call: one vector, or a place for each tensor. */
typedef struct sl_where {
    float *whole;          /* (d) or NULL: */
    float *const *tensors; /* (tensors of the layout) */
} sl_where;

/* Where x is; see memory.c. It stays as long as the session. */
typedef struct sl_session_memory {
    const sl_vec_ops *vec;
    void *stream;                /* the caller's */
    sl_vec_event *theirs, *ours; /* NULL on the host, as the next one */
    float *seen;                 /* (d) a vector of the device that the host looks at */
    float **places;              /* (tensors) of sl_session_place; NULL: it was not called */
    float *snapshot;             /* (d) the caller's x as a call took it, in a room or: */
    float *own_snapshot;         /* (d) NULL: none was made */
} sl_session_memory;

/* ---- the caller's ---- */

/* What the caller began, and has not ended. A state has these numbers as its form. */
typedef enum sl_begun {
    BEGUN_NONE,  /* it is between rounds */
    BEGUN_OFFER, /* or by mix, which ends what it begins */
    BEGUN_BEGIN,
    BEGUN_FINAL /* in no state: end comes before save */
} sl_begun;

/* The caller's round, until end; all 0: none is under way. */
typedef struct sl_caller_round {
    sl_begun begun;
    bool over;             /* the driver is done with it */
    const float *borrowed; /* the caller's x; NULL: a snapshot was taken */
    uint64_t borrowed_in;  /* this round */
    bool at_home;          /* the home's room is published */
    size_t final;          /* of BEGUN_FINAL: the first tensor that was given */
} sl_caller_round;

/* Pieces of x, each of one tensor, with options.borrow; they stay, as the first round made them. */
typedef struct sl_blocks {
    size_t *ends;   /* (count) where they end */
    uint64_t *sums; /* (count) checksums of what is borrowed */
    size_t count;
} sl_blocks;

/* What the run begins with, until start has returned. */
typedef struct sl_beginning {
    const float *x;    /* (d) of start */
    const void *state; /* (bytes) of load; NULL: nothing was loaded */
    uint64_t bytes;
} sl_beginning;

/* The caller's thread alone writes it. */
typedef struct sl_session_caller {
    bool started;
    sl_caller_round round;
    sl_blocks blocks;
    sl_beginning beginning;
    bool *left; /* (tensors) of a round of BEGUN_FINAL: the caller has it; NULL: there was none */
    sl_moment moment; /* of the state that was loaded, or of the one that is saved */
} sl_session_caller;

/* ---- both threads' ---- */

typedef enum sl_wish {
    WISH_NONE,    /* the caller trains */
    WISH_ROUND,   /* `given` is the model after the step */
    WISH_AVERAGE, /* fill `average` */
    WISH_SUM,     /* add up `numbers` */
    WISH_SAVE,    /* write `image` */
    WISH_LEAVE,   /* no more steps; end with the others */
    WISH_GONE     /* no more calls: aborted, or simulated and the peer's function has returned */
} sl_wish;

/* What a wish is about: the caller fills it before the wish, the driver answers in it. */
typedef struct sl_call_asked {
    const float *given;    /* (d) of WISH_ROUND and WISH_AVERAGE; NULL: the peer leaves */
    bool lends;            /* WISH_ROUND: `given` itself is published */
    bool moves;            /* and the model is left in another room, for the home */
    const sl_where *parts; /* WISH_ROUND: in place of `given`, what comes tensor by tensor */
    float *average;        /* (d) of WISH_AVERAGE, and of those that come while it leaves */
    double distance;       /* out of WISH_AVERAGE */
    double *numbers;       /* (number_count) of WISH_SUM; NULL: it adds zeros */
    uint64_t number_count; /* equal on all peers that add some */
    uint64_t givers;       /* out of WISH_SUM */
    bool is_void;          /* out of both: a loss has cut it */
} sl_call_asked;

/* Work that the driver's thread may share while it waits for a wish. */
typedef struct sl_chore {
    void (*work)(void *context); /* NULL: there is none */
    void *context;
    bool taken;
} sl_chore;

/* Whose models are averaged. */
typedef struct sl_member_list {
    uint32_t *ranks; /* (count) rising */
    uint32_t count;
    uint64_t epoch; /* views that have begun */
} sl_member_list;

/* How far the driver has gone with the session; it never goes back. */
typedef enum sl_driving {
    DRIVING,        /* the caller's wishes are waited for */
    DRIVING_ENDING, /* no more; but the driver still holds the session */
    DRIVING_ENDED   /* it does not; `error` says why, code 0: all have left */
} sl_driving;

/* A round that comes and goes tensor by tensor. */
typedef struct sl_session_parts {
    sl_where x;
    size_t final;       /* the first element that the caller has given */
    size_t *missing;    /* (tensors) elements that the round has not mixed; NULL: none ever was */
    const float *mixed; /* the model that these are in */
} sl_session_parts;

/* Under the mutex. */
typedef struct sl_session_shared {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int fd;      /* of sl_signal_open: readable while handed or ended */
    bool handed; /* it is the caller's turn */
    sl_wish wish;
    sl_call_asked asked;
    sl_session_parts parts;
    sl_image image; /* of WISH_SAVE, in the caller's memory */
    size_t bytes;   /* of it, sealed */
    sl_chore chore;
    sl_driving driving;
    sl_error error;    /* the first one counts */
    volatile int stop; /* by atomic operations, as calls outside the mutex look at it, too */
    sl_member_list members;
    const float *model; /* (d) the driver's, that was handed */
    uint64_t round;     /* of the gradient that comes next */
    double push_sum_weight;
    uint64_t ahead;   /* simulated: as sl_session_report's, as the round began */
    sl_record record; /* simulated: of the last recorded round. Else of its neighbour_distance only:
                         the agent has the rest */
    double waited_s;  /* by the caller, in all */
    uint64_t copied;  /* bytes, by the caller, in all */
} sl_session_shared;

/* Of a caller's x; see home.c. */
struct sl_session_home {
    sl_window *window;
    uint64_t dimension;
    uint32_t holders; /* the caller, and sessions; by atomic operations */
};

/* Memory that neighbours read where it is; see rooms.c. Each thread has it in its turn. */
typedef struct sl_session_rooms {
    sl_arena *arena; /* held; NULL: there are none */
    float *memory;   /* (SL_NODE_ROOMS, stride) in it */
    size_t stride;
    unsigned free;     /* a bit each */
    sl_window *window; /* of the home, which shows one of them, or none; NULL: it cannot */
    uint32_t next;     /* the room that end shows; SL_WINDOW_OWN: none */
} sl_session_rooms;

/* ---- the driver's ---- */

typedef struct sl_session_driver {
    sl_machine node;
    sl_wish wish;   /* as it took it */
    size_t vectors; /* of the node's pieces */
    const float *lent;
    float *base; /* (d) behind: the model that the caller knows, where rounds went by without it */
    bool behind;
    double ask[5];               /* what the peers of a meeting ask for; see wishes.c */
    double weight;               /* of push-sum, in an average: this peer's, then the sum of all */
    const sl_progress *progress; /* hears of gradients that come in ranges; NULL: nobody does */
} sl_session_driver;

/* The agent behind a session, in a process of its own; see peer.c. */
typedef struct sl_session_process {
    sl_launch *launch;
    sl_credentials *credentials;
    sl_checkpoints checkpoints;
    sl_agent *agent;     /* under the mutex; NULL: none runs */
    uint64_t uses;       /* by calls under way, under the mutex: `agent` is not closed meanwhile */
    sl_monitor *monitor; /* likewise; NULL: nobody is served */
    sl_agent *meets;     /* the same, for its worker, which ends before the agent is closed */
    pthread_t runner;
    bool runs;
} sl_session_process;

struct sl_session {
    /* What join read; nothing of it changes. */
    sl_experiment *experiment; /* owned, but in a simulation */
    sl_layout layout;
    sl_session_options options; /* without what they borrow; a simulation in them owns the session
                                 */
    uint32_t rank;
    pid_t pid;
    pthread_t thread; /* the caller's */

    sl_session_memory memory;
    sl_session_rooms rooms;
    sl_session_caller caller;
    sl_session_shared shared;
    sl_session_driver driver;
    sl_session_process process;
};

/* Has the driver let go of the session? The mutex is held. */
static inline bool sl_session_has_ended(const sl_session *s) {
    return s->shared.driving == DRIVING_ENDED;
}

/* ---- options.c ---- */

/* What the caller gave, by its size, with defaults for the rest; given NULL: the defaults. */
int sl_session_take_options(sl_session_options *out, const sl_session_options *given,
                            sl_error *error);

/* ---- together.c ---- */

/* SL_EVOID: a loss has cut the call. */
int sl_session_fail_void(sl_session *s, const char *call, sl_error *error);

/* ---- rooms.c, as a session is put together ---- */

/* Until sl_session_close_rooms. */
void sl_session_hold_home(sl_session *s);
int sl_session_check_options_home(const sl_session_options *o, uint64_t dimension, sl_error *error);

/* ---- caller.c ---- */

/* Does the driver publish the caller's x as it is, from where it is? */
bool sl_session_lends(const sl_session *s);
/* Is it the caller's thread? */
int sl_session_check_caller(const sl_session *s, const char *call, sl_error *error);
/* The error of a session that has ended. */
int sl_session_check_alive(sl_session *s, sl_error *error);
/* Both. */
int sl_session_check_call(sl_session *s, const char *call, sl_error *error);
/* The same of a call that hooks of a backward pass make, which have a thread of their own. */
int sl_session_check_hook(sl_session *s, const char *call, sl_error *error);
/* And has it started; is a round under way, or not, as the call wants? */
int sl_session_check_round(sl_session *s, const char *call, bool in_round, sl_error *error);
/* Of the gradient that comes next. */
uint64_t sl_session_round(sl_session *s);
/* Waits until the driver is done with the round under way, whose end still comes. */
int sl_session_finish_round(sl_session *s, sl_error *error);
/* Ends the session with this error, or with one that came before it. */
int sl_session_end_with(sl_session *s, const sl_error *why, sl_error *error);
/* `call` found no memory, which ends the session. */
int sl_session_run_short(sl_session *s, const char *call, size_t bytes, sl_error *error);

/* ---- memory.c ---- */

size_t sl_session_bytes(const sl_session *s); /* of x */
int sl_session_open_memory(sl_session *s, sl_error *error);
void sl_session_close_memory(sl_session *s);
/* The caller's thread. Can the caller's stream take part in an exchange now? */
int sl_session_check_stream(const sl_session *s, const char *call, sl_error *error);
/* The caller's thread. Is x memory that a call can take? name: what x is. */
int sl_session_check_floats(const sl_session *s, const char *call, const char *name, const float *x,
                            sl_error *error);
/* `snapshot` becomes the session's own. */
int sl_session_open_snapshot(sl_session *s, const char *call, sl_error *error);
/* The thread's work comes after the driver's. */
void sl_session_follow_driver(sl_session *s);
/* The driver's comes after what the caller's stream has by now, and the other way round. */
void sl_session_give_turn(sl_session *s);
void sl_session_take_turn(sl_session *s);
/* Between the two the calling thread's operations are work of the caller's stream. */
void sl_session_enter_stream(const sl_session *s);
void sl_session_leave_stream(const sl_session *s);
/* The driver's thread. The caller may read the model; what the caller's stream did comes before
 * what follows. */
void sl_session_show_model(sl_session *s);
void sl_session_follow_caller(sl_session *s);
/* A vector's numbers on the host, or so many numbers, until the next call. */
const float *sl_session_view(sl_session *s, const float *v);
const float *sl_session_view_some(sl_session *s, const float *v, size_t count);

/* ---- numbers.c, the caller's thread ---- */

size_t sl_session_tensors(const sl_session *s); /* at least 1 */
/* Where x of a call is: x, or for NULL the places of sl_session_place. */
int sl_session_locate(const sl_session *s, const char *call, const float *x, sl_where *out,
                      sl_error *error);
/* snapshot <- x, in a room if there is a free one, and it is to be lent. SL_ENOMEM */
int sl_session_snapshot(sl_session *s, const char *call, const sl_where *x, bool lent,
                        sl_error *error);
/* to (d) <- x, which is counted as copied. */
void sl_session_copy_x(sl_session *s, const sl_where *x, float *to);
/* x as one vector: itself, or a snapshot. */
int sl_session_take_x(sl_session *s, const char *call, const sl_where *x, bool lent,
                      const float **out, sl_error *error);
/* x <- the model that was handed; moved: + (x - snapshot). */
void sl_session_leave_x(sl_session *s, const sl_where *x, bool moved);
/* Waits for the caller's stream, as the next two do. */
uint64_t sl_session_checksum(sl_session *s, const sl_where *x);
/* x is borrowed from here on: notes its checksums. SL_ENOMEM */
int sl_session_borrow(sl_session *s, const float *x, uint64_t round, sl_error *error);
/* Is what is borrowed as it was, from one element to before another? SL_EINVAL names the tensor.
 * From either thread. */
int sl_session_check_borrowed(sl_session *s, size_t from, size_t to, sl_error *error);
/* An element of what is borrowed was changed: SL_EINVAL with its tensor. */
int sl_session_fail_changed(sl_session *s, size_t element, sl_error *error);

size_t sl_session_beginning_of(const sl_session *s, size_t tensor);
size_t sl_session_end_of(const sl_session *s, size_t tensor);
/* That an element is in. */
size_t sl_session_tensor_at(const sl_session *s, size_t element);
float *sl_session_memory_of(const sl_session *s, const sl_where *x, size_t tensor);

/* False: the session fails, as numbers of the caller's, from an element on, are not finite. */
bool sl_session_check_numbers(sl_session *s, const float *x, size_t from, size_t count);

/* ---- rooms.c ---- */

/* The driver's: the agent is open, and is lent what it sends. */
void sl_session_open_rooms(sl_session *s, const sl_agent *agent);
/* The home keeps its numbers. */
void sl_session_close_rooms(sl_session *s);
/* The driver's, before each round: which rooms are free, of those that it does not lend now. */
void sl_session_hear_rooms(sl_session *s, unsigned free);
/* The driver's: leaves the model in a free room, for the next one. */
void sl_session_leave_next(sl_session *s, const float *model);
/* (d) that nobody reads; NULL: there is none. */
float *sl_session_take_room(sl_session *s);
/* ---- home.c, the caller's thread ---- */

/* *given: the room that the home shows, which is published; NULL: it shows none, or x is elsewhere.
 * freezes: the caller may write to x while others read it. SL_ENOMEM */
int sl_session_lend_home(sl_session *s, const sl_where *x, bool freezes, const float **given,
                         sl_error *error);
/* The home's room is as it was lent, or SL_EINVAL names the tensor that was changed. */
int sl_session_check_home(sl_session *s, sl_error *error);
/* x, the home, shows that room; or the model is copied. What fails ends the session. */
int sl_session_take_next(sl_session *s, const sl_where *x, sl_error *error);

/* ---- parts.c ---- */

/* The driver's thread: the gradient of a round that comes in ranges, of the model `before`. */
void sl_session_answer_parts(sl_session *s, const float *before, float *g);
/* Elements of the round's model are there. */
void sl_session_take_mixed(sl_session *s, const float *model, size_t from, size_t count);
/* The caller's thread, with a round of BEGUN_FINAL that is over, or of which these tensors have
 * come: leaves those in x that it does not have. */
void sl_session_leave_tensors(sl_session *s, const sl_where *x, size_t first, size_t count);

/* ---- saving.c ---- */

/* Is x what the loaded state was saved with? True without a state. */
int sl_session_check_x(sl_session *s, const sl_where *x, sl_error *error);
/* start has returned: the caller stands where it stood when it saved. */
int sl_session_stand(sl_session *s, const sl_where *x, sl_error *error);
/* The driver's: the node is open, and has not started. Fills it from the loaded state. */
int sl_session_open_node(sl_session *s, const sl_machine *node, sl_error *error);
/* While the node rests: fills `image`. */
void sl_session_write(sl_session *s);
/* The same at own times, where the caller waits for it: the view begins. */
void sl_session_cut(sl_session *s, uint64_t round, const sl_checkpoint_view *view);

/* ---- hand.c, the driver's thread ---- */

/* Gives the model to the caller and waits for its next wish. */
void sl_session_hand(sl_session *s, const float *model);
/* From either thread: the run is to end with this error. The first one counts. */
void sl_session_fail(sl_session *s, const sl_error *error);
/* The run is over: nobody waits for wishes any longer. The caller still waits. */
void sl_session_let_go(sl_session *s);
/* The driver is done with the session; error NULL, or of code 0: all have left. */
void sl_session_end_driver(sl_session *s, const sl_error *error);

/* ---- hand.c, the caller's thread ---- */

void sl_session_wish(sl_session *s, sl_wish wish);
/* Waits for the next turn; negative: the session has ended with this error. */
int sl_session_wait(sl_session *s, sl_error *error);
/* The same, or for these tensors of the round's model. */
int sl_session_wait_for(sl_session *s, size_t first, size_t count, sl_error *error);
/* Waits until the driver is done. */
void sl_session_wait_end(sl_session *s);
/* Calls work(context) here, and beside it on the driver's thread if that waits for a wish; returns
 * when both are done. */
void sl_session_share_work(sl_session *s, void (*work)(void *context), void *context);

/* ---- status.c ---- */

bool sl_session_is_forked(const sl_session *s);
/* Is there a session, and in this process? `call` names who asks. */
int sl_session_check_process(const sl_session *s, const char *call, sl_error *error);

/* The caller's call that waits, in words. The mutex is held. */
const char *sl_session_name_wish(const sl_session *s);

/* Whom the session waits for, in words; "": nobody, or nobody knows. The mutex is held. */
void sl_session_name_wait(sl_session *s, char out[SL_SESSION_TEXT_MAX]);

/* ---- reading.c ---- */

/* The peers that a run begins with, those of the topology. */
uint32_t sl_session_nodes(const sl_session *s);
/* All of which take part; up to `ranks` may later. */
int sl_session_count_members(sl_session *s, uint32_t ranks, sl_error *error);

/* The experiment of a session; logs its warnings. */
int sl_session_read(sl_experiment **out, const char *experiment, const sl_session_options *options,
                    bool simulates, sl_error *error);
void sl_session_free(sl_session *s);

/* ---- wishes.c, the driver's thread ---- */

/* The model of `round` is there: hands it over, unless a wish goes on. */
void sl_session_take(sl_session *s, uint64_t round, const float *x, double push_sum_weight);
/* The round's gradient at x into g, or into s->driver.lent. */
void sl_session_answer(sl_session *s, const float *x, float *g);
/* Does a wish ask for what all peers meet for? Of a save only where they go at their own times. */
bool sl_session_asks(sl_wish wish);
/* Fulfilled: do all peers save? */
bool sl_session_saves(const sl_session *s);
/* Fulfils what all peers have come for, an average or a sum, for those sessions that a driver has
 * (count). The adder adds their shares (count) up with those of all peers. */
typedef int sl_session_adder(void *context, const sl_share *shares, sl_error *error);
int sl_session_fulfil(sl_session *const *all, uint32_t count, sl_session_adder *adder,
                      void *context, sl_share *shares, sl_error *error);
/* The same where a loss has cut it: what this peer itself has. */
void sl_session_keep_own(sl_session *s);
/* What both drivers' tasks have in common, without context and hooks of the round. */
sl_task sl_session_task(const sl_session *s);

/* ---- peer.c ---- */

/* Opens the peer of a session in a process of its own; connects it, on a thread of its own. */
int sl_peer_open(sl_session *s, const sl_session_options *options, sl_error *error);
int sl_peer_start(sl_session *s, sl_error *error);
void sl_peer_close(sl_session *s);

/* ---- simulate.c ---- */

/* Puts the session in its place; *experiment is the simulation's. */
int sl_simulation_join(sl_session *s, const sl_session_options *options, sl_error *error);
/* The session's start has come: lets the others go on. */
void sl_simulation_park(sl_session *s);

#endif
