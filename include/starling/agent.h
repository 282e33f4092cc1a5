/* agent.h - one peer: libfabric and libevent around a node. */
#ifndef STARLING_AGENT_H
#define STARLING_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "starling/algorithm.h"
#include "starling/api.h"
#include "starling/checkpoint.h"
#include "starling/experiment.h"
#include "starling/keys.h"
#include "starling/launch.h"
#include "starling/observer.h"
#include "starling/roster.h"
#include "starling/task.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_agent_settings {
    const sl_experiment *experiment; /* borrowed for the agent's life, like all below */
    sl_task task;                    /* sl_learner_task(learner), or a training loop of your own */
    const sl_plan *plan;             /* of experiment and task; NULL: the agent computes it */
    uint32_t rank;
    uint32_t place;   /* among the agents of this host, from 0 (sl_launch_place): for the device */
    const char *host; /* to listen on; beyond loopback only if sl_security_goes_out */
    uint16_t port;    /* 0: any free one */
    uint64_t run_id;  /* equal on all agents of a run; 0 if there is none */
    const sl_credentials *credentials; /* of the experiment's security, as sl_security_load makes
                                          them; NULL: nothing is proved */
    sl_observer observer;              /* called on the agent's worker thread */
    const sl_checkpoints *checkpoints; /* NULL: none are written or read. All agents of a run go on,
                                          or none does */
    bool meets;  /* the task comes together with those of the other agents (a session's). Its
                    `initial` is called on the worker thread, when all neighbours are connected */
    bool yields; /* where the others train already, sl_agent_run ends with SL_ETRAINS at once: with
                    `joins`, another agent can take part */
    bool joins;  /* it takes the rank of a process that the others of a running run have lost
                    (membership.on_loss "continue"), with the model of one of them */
} sl_agent_settings;

typedef struct sl_agent sl_agent;

/* Will payloads travel straight from GPU memory to GPU memory (transport.gpu_direct)? Else they go
 * through page-locked host memory. SL_EINVAL: "on" demands what cannot be, and why; or this host
 * does not have transport.provider. note: what
 * "auto" stands for, and why; else empty. Opens no device. */
#define SL_PATH_NOTE_MAX 512
SL_API int sl_agent_find_path(const sl_experiment *experiment, bool *direct,
                              char note[SL_PATH_NOTE_MAX], sl_error *error);

/* Opens the provider, registers memory, listens. */
SL_API int sl_agent_open(sl_agent **out, const sl_agent_settings *settings, sl_error *error);
/* The port that it listens on. */
SL_API uint16_t sl_agent_port(const sl_agent *agent);
/* Connects to the neighbours, trains to the last round, says goodbye. Returns within the configured
 * time whatever the peers do; on SL_EPEER the text names the edge and the round. */
SL_API int sl_agent_run(sl_agent *agent, sl_roster *roster, sl_error *error);
/* Asks sl_agent_run to end with SL_ESTOPPED; safe in a signal handler and from any thread. */
SL_API void sl_agent_stop(sl_agent *agent);
/* Asks all agents of the run for a checkpoint of the same round, a few rounds ahead, and to go on;
 * or, if `leave`, to end after it: then sl_agent_run returns SL_ESAVED, everywhere. Where no
 * checkpoints are written, or before training, `leave` is sl_agent_stop. Safe as that is. */
SL_API void sl_agent_checkpoint(sl_agent *agent, bool leave);
/* Asks this agent to leave, while the others go on (membership.on_loss "continue"): once they have
 * agreed, or after 5 s, it ends the round under way, writes a checkpoint if there are any, and
 * sl_agent_run returns SL_ELEFT. If all leave at once, they end as after sl_agent_checkpoint with
 * `leave`; so does a run that cannot go on without an agent. Safe as that is. */
SL_API void sl_agent_leave(sl_agent *agent);
/* Asks sl_agent_run to end with this error, which all neighbours are told; from any thread. The
 * first call counts. */
SL_API void sl_agent_end(sl_agent *agent, const sl_error *why);
/* Reads the files of the experiment's security again, and the roster that `launch` (may be NULL)
 * was found by. All of it holds from the next connection on: further ranks are let in, and a pair
 * or a run's key that is another one is shown; a run's key before it holds for security.overlap_s
 * more. Who is revoked in the roster, or has another certificate there, loses its connection at
 * once; the latter may connect again. If anything is wrong, all stays as it was. Waits for the loop
 * that sl_agent_run runs; from any other thread. said: what has changed, or what is wrong, which
 * the observer is told, too. */
#define SL_AGENT_RELOAD_MAX 512
SL_API int sl_agent_reload(sl_agent *agent, sl_launch *launch, char said[SL_AGENT_RELOAD_MAX],
                           sl_error *error);
SL_API void sl_agent_close(sl_agent **agent);

/* Control frames, dropped frames, memory. */
typedef struct sl_agent_counters {
    uint64_t control_frames_sent, control_frames_received;
    uint64_t frames_corrupted, frames_dropped;
    uint64_t payload_bytes_copied; /* as they could not leave, or be read, where they stood */
    size_t receive_buffer_bytes /* of all neighbours, for control frames too */, vector_bytes;
} sl_agent_counters;
SL_API sl_agent_counters sl_agent_counters_read(const sl_agent *agent);

/* What the loop saw when it last looked, which it does several times a second. From any thread
 * until sl_agent_close. */
#define SL_AGENT_WAIT_MAX 256
typedef enum sl_agent_doing {
    SL_AGENT_CONNECTS,
    SL_AGENT_COMPUTES, /* a gradient, an evaluation, or the caller's own step */
    SL_AGENT_EXCHANGES,
    SL_AGENT_ENDS,   /* says goodbye, or has ended */
    SL_AGENT_SILENT, /* seen from another: it is connected, and says nothing */
    SL_AGENT_AWAY    /* seen from another: it is not connected */
} sl_agent_doing;
/* "computes", "is silent". */
SL_API const char *sl_agent_doing_name(sl_agent_doing doing);

/* An agent, as it sees itself, or as another has heard of it. */
typedef struct sl_agent_view {
    uint32_t rank;
    sl_agent_doing doing;
    uint64_t round; /* under way; 0: none, or not known */
    double still_s; /* since its node last made a step, it began to connect, or was heard last */
} sl_agent_view;

typedef struct sl_agent_progress {
    sl_record record;                  /* of the last round, with sums since the first */
    char waits_for[SL_AGENT_WAIT_MAX]; /* in words; empty: for nobody */
    sl_agent_view own;
    bool waits;         /* and knows for whom in the end: */
    sl_agent_view root; /* as neighbours have said */
    double distance;    /* the last neighbour_distance that was measured; NaN: none */
    double contraction; /* what a round has left of it since the one before; NaN: not known */
    double ended_s;     /* of a clock that does not jump (CLOCK_MONOTONIC): the last round */
    double saved_s;     /* the same: the last checkpoint was written; 0: none was */
    uint64_t exchange;  /* the latest that its node has begun */
    double ago_s;       /* since the loop looked last; 0: it does not run yet */
    uint32_t members;   /* that take part, as far as its node knows */
    uint32_t view;      /* the number of theirs; 0: all, since the run began */
    bool rests;         /* too few members are reached for another view */
    sl_agent_counters counters;
    uint64_t reloads; /* how often sl_agent_reload has ended, the last time: */
    bool reloaded;    /* well, and */
    char reload[SL_AGENT_RELOAD_MAX];
} sl_agent_progress;
SL_API sl_agent_progress sl_agent_progress_read(sl_agent *agent);

/* After sl_agent_run: who took part at the end, rising; false: all did, in each round. *ranks:
 * (*count) borrowed until the agent is closed. *minority: as sl_is_minority says. */
SL_API bool sl_agent_members(const sl_agent *agent, const uint32_t **ranks, uint32_t *count,
                             bool *minority);
/* The same: who of the first roster was lost, has not come back, and had not left on request, the
 * index-th of them; false: there are no more. *round: in which this agent lost it; 0: not known. */
SL_API bool sl_agent_missing(const sl_agent *agent, uint32_t index, uint32_t *rank,
                             uint64_t *round);
/* Did sl_agent_run end with SL_ELEFT because too few members were reached for
 * membership.minority_s, and nobody asked for it? */
SL_API bool sl_agent_lacked_quorum(const sl_agent *agent);

/* What a connection has proved, and whether its frames are sealed: "TLS 1.3, key, AES-256-GCM",
 * "TLS 1.3, certificate sha256:..., handshake-only", "unprotected". */
#define SL_AGENT_PROTECTION_MAX 128

/* Between an agent and a neighbour, over all connections. */
typedef struct sl_agent_traffic {
    uint64_t sent_bytes, received_bytes; /* of data frames with headers, as sl_record's; also of
                                            what is read in memory */
    uint64_t connections;                /* on which both have agreed: 1, and how often again */
    double waited_s;     /* for it; looked at 20 times a second, beside waits for others */
    double round_trip_s; /* of the connection's bytes, as the kernel sees it; 0: not known */
} sl_agent_traffic;

typedef struct sl_agent_edge {
    uint32_t rank;
    bool agreed; /* connected, with the same experiment: */
    char protection[SL_AGENT_PROTECTION_MAX];
    bool memory; /* each reads what the other one sends in that one's memory (transport.memory) */
    uint64_t exchange; /* that it is in, as far as is known; at own times: its round */
    bool awaited;      /* the step under way waits for its message, or for it to take one */
    bool heard;        /* it has said what it does: */
    double ago_s;
    sl_agent_view said;
    uint32_t waits_for; /* a neighbour of it; itself: nobody */
    sl_agent_view root; /* for whom it waits in the end; itself: nobody, or not known yet */
    sl_agent_traffic traffic;
} sl_agent_edge;
/* Of neighbour `index`, by rank; false: there are no more. */
SL_API bool sl_agent_edge_read(sl_agent *agent, uint32_t index, sl_agent_edge *out);

/* Who takes no part at this moment, and should: its connection is broken, or it was lost and has
 * not left on request. */
typedef struct sl_agent_lost {
    uint32_t rank;
    bool is_member; /* of the view that the node is in: it may still come back in time */
    double since_s; /* for so long */
} sl_agent_lost;
/* The index-th by rank, once training has begun; false: there are no more. From any thread. */
SL_API bool sl_agent_lost_read(sl_agent *agent, uint32_t index, sl_agent_lost *out);

#ifdef __cplusplus
}
#endif
#endif
