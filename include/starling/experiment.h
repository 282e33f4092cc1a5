/* experiment.h - reads the experiment file, JSON, into one checked struct, and derives the
 * settings of a learner and a node.
 *
 * Each key is a row of the table in src/config/keys.c, with type, range, default and help. Unknown
 * keys, wrong types and values out of range are refused; the error names file, key, value and what
 * is allowed. Relative paths are relative to the file's folder. */
#ifndef STARLING_EXPERIMENT_H
#define STARLING_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/algorithm.h"
#include "starling/api.h"
#include "starling/error.h"
#include "starling/faults.h"
#include "starling/keys.h"
#include "starling/learner.h"
#include "starling/node.h"
#include "starling/optimizer.h"
#include "starling/topology.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_RECORD_ROUNDS_MAX 4096
#define SL_SPEEDS_MAX 4096

/* Which models a run folder keeps: each node's and their mean, the mean only, or none. An agent by
 * itself knows no mean: of MEAN it keeps its own. */
typedef enum sl_kept_models { SL_MODELS_ALL, SL_MODELS_MEAN, SL_MODELS_NONE } sl_kept_models;

typedef struct sl_record_config {
    uint64_t every;    /* rounds between recorded (evaluated) rounds; 0: about 20 records a run. The
                          last round is always recorded */
    double every_ms;   /* of a simulation whose nodes go at their own times: milliseconds between
                          records, in place of rounds; 0: rounds */
    uint32_t evaluate; /* number of nodes whose models are evaluated, evenly spread; 0:
                          sl_record_evaluated */
    uint64_t parameters_at[SL_RECORD_ROUNDS_MAX]; /* rising; 0 = the initial parameters */
    size_t parameters_at_count;
    sl_kept_models models;
    bool trace;       /* of a simulation: what each node did when (starling/trace.h) */
    bool tensorboard; /* the run folder has event files, too */
    bool safetensors; /* models of the run folder also have names and shapes of tensors */
} sl_record_config;

/* Files from which a run goes on; see starling/checkpoint.h. */
typedef struct sl_checkpoint_config {
    uint64_t every;         /* rounds; 0: none are written */
    uint64_t keep;          /* files of each node */
    char path[SL_PATH_MAX]; /* their folder; empty: "checkpoints" in the run folder */
} sl_checkpoint_config;

/* Who may look at an agent from elsewhere; see starling/monitor.h. */
typedef struct sl_monitor_config {
    char listen[SL_NAME_MAX]; /* HOST:PORT, perhaps with {rank}; empty: nobody */
    bool is_public;           /* it may be beyond loopback, where anybody may look */
} sl_monitor_config;

/* Payloads straight between a GPU's memory and the network. */
typedef enum sl_gpu_direct {
    SL_GPU_DIRECT_OFF,
    SL_GPU_DIRECT_AUTO,
    SL_GPU_DIRECT_ON
} sl_gpu_direct;

/* Do agents of one host and user read what neighbours send in these neighbours' memory? */
typedef enum sl_memory { SL_MEMORY_AUTO, SL_MEMORY_OFF } sl_memory;

/* When a message begins to leave: once its gradient is there, or beside it, as starling/ranges.h
 * says. */
#define SL_OVERLAPS(X)                                                                             \
    X(NONE, "none")                                                                                \
    X(LAYERS, "layers")                                                                            \
    X(MERGED, "merged")                                                                            \
    X(PARTITIONED, "partitioned")
typedef enum sl_overlap {
#define SL_OVERLAP_ENUM(kind, name) SL_OVERLAP_##kind,
    SL_OVERLAPS(SL_OVERLAP_ENUM)
#undef SL_OVERLAP_ENUM
} sl_overlap;

/* In what ranges the vector is exchanged, each by itself. auto: as it overlaps, where nothing is
 * compressed and a message could not leave part by part: on a GPU, and of the planned ways in
 * all-reduce and servers; else whole. */
#define SL_BUCKETINGS(X)                                                                           \
    X(AUTO, "auto")                                                                                \
    X(WHOLE, "whole")                                                                              \
    X(LAYERS, "layers")                                                                            \
    X(MERGED, "merged")                                                                            \
    X(PARTITIONED, "partitioned")
typedef enum sl_buckets {
#define SL_BUCKETS_ENUM(kind, name) SL_BUCKETS_##kind,
    SL_BUCKETINGS(SL_BUCKETS_ENUM)
#undef SL_BUCKETS_ENUM
} sl_buckets;

typedef struct sl_transport_config {
    char provider[SL_NAME_MAX]; /* libfabric provider: "tcp", "verbs" */
    sl_gpu_direct gpu_direct;   /* see sl_agent_find_path */
    sl_memory memory;
    uint32_t chunk_bytes; /* payload of one frame */
    bool checksums;       /* of the payloads that this agent sends */
    double norm_limit;    /* of a part that comes, in norms of the own one; 0: any is taken */
    sl_overlap overlap;
    sl_buckets buckets;
    uint64_t partition_bytes; /* at most, of what is partitioned */
    uint64_t window_chunks;   /* receive buffers for each neighbour; SL_COUNT_AUTO: by where the
                                 agent listens */
    double timeout_s;         /* silence after which a neighbour counts as dead */
    double connect_timeout_s; /* how long to wait for all neighbours to come up */
    double reconnect_s;       /* how long a broken connection may be connected anew */
    double round_timeout_s;   /* how long a living neighbour may keep a round waiting */
} sl_transport_config;

/* Who may connect. Without a key there is no authentication, and no encryption: then an agent
 * listens beyond loopback only if trusted_network is set. */
typedef enum sl_security_mode {
    SL_SECURITY_AUTO, /* SL_SECURITY_KEY if there is a key, else SL_SECURITY_NONE */
    SL_SECURITY_NONE,
    SL_SECURITY_KEY,         /* a run's key, which all agents share */
    SL_SECURITY_CERTIFICATES /* a pair for each node, pinned in the roster or signed by a CA */
} sl_security_mode;
typedef enum sl_security_seal {
    SL_SEAL_AUTO,          /* SL_SEAL_ON beyond loopback, else SL_SEAL_HANDSHAKE_ONLY */
    SL_SEAL_ON,            /* all frames are sealed */
    SL_SEAL_OFF,           /* SL_SEAL_HANDSHAKE_ONLY on loopback; refused beyond it */
    SL_SEAL_HANDSHAKE_ONLY /* agents prove who they are; data is neither encrypted nor proved */
} sl_security_seal;
typedef struct sl_security_config {
    sl_security_mode mode;
    char key[SL_PATH_MAX];     /* a run key's file, or the NAME of a node's pair */
    char ca[SL_PATH_MAX];      /* CAs that vouch for certificates; "": the roster pins them */
    char revoked[SL_PATH_MAX]; /* their lists of revoked ones; "": there are none */
    sl_security_seal seal;
    double overlap_s;     /* for how long a run's key before the one that was read again holds */
    bool trusted_network; /* everybody who can reach this network is trusted */
} sl_security_config;

/* What the others do when a peer is lost. */
typedef enum sl_on_loss {
    SL_ON_LOSS_AUTO, /* once read: one of the next two */
    SL_ON_LOSS_STOP,
    SL_ON_LOSS_CONTINUE
} sl_on_loss;
/* Which agents `starling run` starts again, when they have ended before the run has. */
typedef enum sl_restart {
    SL_RESTART_NEVER,
    SL_RESTART_ON_FAILURE, /* not who has left on request */
    SL_RESTART_ALWAYS
} sl_restart;
typedef struct sl_membership_config {
    sl_on_loss on_loss;
    double grace_s;    /* how long a peer may be silent before it counts as lost */
    uint32_t quorum;   /* members of a view that agree on the next one; 0: the majority */
    double minority_s; /* how long a part without a quorum rests before it ends */
    sl_restart restart;
    uint32_t joiners; /* ranks beyond the topology's nodes, which may join later */
} sl_membership_config;

/* The platform for which a simulation predicts the time. All 0: no prediction. */
typedef struct sl_network_config {
    double bandwidth_mbit; /* of each node's uplink and downlink, in 10^6 bit/s; 0: infinite */
    double latency_ms;
    double gradient_ms; /* of one gradient, on a node of speed 1; 0: as measured */
    sl_switch coding;   /* count measured encoding and combining? auto: if the gradient's time is
                           measured, too */
    double speeds[SL_SPEEDS_MAX]; /* by rank; none: all 1 */
    size_t speed_count;
    sl_number_rows links;      /* of single pairs: [i, j, bandwidth_mbit] or with latency_ms */
    sl_number_rows compute_ms; /* of one gradient of each rank, a row for each gradient by turns; no
                                  rows: from gradient_ms and speeds */
    double jitter;             /* a gradient takes 1 - jitter to 1 + jitter times that */
    double straggler_share, straggler_factor; /* so many of them take so many times as long */
} sl_network_config;

/* Milliseconds that the node's gradient number `round` (from 1) takes in a simulation, where one on
 * a node of speed 1 takes usual_ms: the same for the same seed. */
SL_API double sl_network_gradient_ms(const sl_network_config *network, double usual_ms,
                                     uint64_t seed, uint32_t rank, uint64_t round);
/* Does that differ from round to round, or by a list? */
SL_API bool sl_network_draws(const sl_network_config *network);

typedef struct sl_experiment {
    char name[SL_NAME_MAX];
    uint64_t seed;
    uint64_t rounds; /* 0: from epochs, see sl_learner_rounds */
    double epochs;
    bool final_average;       /* after the last round all nodes take their models' exact average */
    char device[SL_NAME_MAX]; /* where vectors live; see starling/device.h */
    double device_memory_gb; /* 10^9 bytes of a GPU's memory that one agent may take; 0: no limit */
    double loss_limit; /* a batch loss above it ends the run; 0: a million times the first loss */
    sl_algorithm_config algorithm;
    sl_optimizer_config optimizer;
    sl_model_config model;
    sl_data_config data;
    sl_record_config record;
    sl_checkpoint_config checkpoint;
    sl_monitor_config monitor;
    sl_transport_config transport;
    sl_security_config security;
    sl_network_config network;
    sl_membership_config membership;
    sl_faults faults;          /* owned; of the simulator */
    sl_topology *topology;     /* owned */
    bool chose_lazy;           /* weights that nobody named are lazy, for the algorithm's steps */
    char library[SL_PATH_MAX]; /* algorithm.library: a shared object with algorithms; "": none */
    char *warnings; /* owned; one line for each key that was given without effect; "": none */
} sl_experiment;

/* Reads the file, applies overrides ("optimizer.learning_rate=0.2"; the value is JSON, or else
 * text), fills in defaults, validates, opens the topology. Close with sl_experiment_close. */
SL_API int sl_experiment_load(sl_experiment **out, const char *path, const char *const *overrides,
                              size_t override_count, sl_error *error);
/* The same; watch (may be NULL) hears how far the topology's weights are optimized. */
SL_API int sl_experiment_load_watched(sl_experiment **out, const char *path,
                                      const char *const *overrides, size_t override_count,
                                      const sl_watch *watch, sl_error *error);
/* The same from text. Relative paths are relative to `folder`. `where` names the source in errors.
 */
SL_API int sl_experiment_parse(sl_experiment **out, const char *json, const char *where,
                               const char *folder, const char *const *overrides,
                               size_t override_count, sl_error *error);
/* Of a training loop of one's own, a session (starling/session.h). */
typedef struct sl_session_reading {
    const char *const *overrides;
    size_t override_count;
    bool overlap;    /* it sends old models, where the algorithm has such a form */
    uint32_t nodes;  /* of a topology that does not say it; 0: it says it */
    const char *key; /* in place of security.key; NULL: that */
    bool records;    /* keys of record are used, too: there is a run folder */
    bool simulates;  /* keys of network are: it gives times to a simulation */
} sl_session_reading;
/* source: a path, or JSON text that begins with {. Keys of model, data, rounds and optimizer are
 * not needed and not used: `warnings` has a line for each that is given. SL_EINVAL: momentum or
 * weight decay, or vectors on a GPU. */
SL_API int sl_experiment_load_session(sl_experiment **out, const char *source,
                                      const sl_session_reading *how, sl_error *error);
/* device_memory_gb in bytes. */
SL_API size_t sl_experiment_device_bytes(const sl_experiment *experiment);
SL_API void sl_experiment_close(sl_experiment **experiment);

/* Do its nodes go at their own times, and not in rounds that all share? */
SL_API bool sl_experiment_is_asynchronous(const sl_experiment *experiment);
/* SL_EINVAL: a session cannot run its algorithm. */
SL_API int sl_experiment_check_session(const sl_experiment *experiment, sl_error *error);
/* Why agents of this experiment cannot go on without a lost peer, as words that follow the
 * algorithm's name; NULL: they can. */
SL_API const char *sl_experiment_why_stop(const sl_experiment *experiment);
/* Does its simulation, one with faults, go on without a node whose loss or gradient is not finite?
 */
SL_API bool sl_experiment_recovers(const sl_experiment *experiment);

/* What SL_SECURITY_AUTO stands for. */
SL_API sl_security_mode sl_security_mode_of(const sl_security_config *config);
/* Is nothing said of who may connect? `starling run` then makes a key of its own. */
SL_API bool sl_security_is_unsaid(const sl_security_config *config);
/* May an agent listen beyond loopback? */
SL_API bool sl_security_goes_out(const sl_security_config *config);
/* Reads the key's files; *out is NULL where there is none. rank: in place of {rank} in the path;
 * -1: it is not known. */
SL_API int sl_security_load(sl_credentials **out, const sl_security_config *config, int64_t rank,
                            sl_error *error);
/* Reads the CA's files alone, and says when they end; zeros: there is no CA. */
SL_API int sl_security_look(const sl_security_config *config, sl_authority_ends *ends,
                            sl_error *error);

/* The plan of the experiment's algorithm for the task, also where it goes by a task's samples.
 * SL_EINVAL. */
SL_API int sl_experiment_plan(sl_plan *out, const sl_experiment *experiment, const sl_task *task,
                              sl_error *error);

/* In which order the experiment's nodes send, and exchange, the ranges of their vector. */
typedef struct sl_sending {
    sl_ranges leaves, buckets; /* no ranges: sl_node_settings has NULL */
    double *fractions;         /* (tensors) of the entries that are sent; NULL: all the same */
    sl_sending_costs costs;    /* that they follow from; zeros: from none */
} sl_sending;
/* Of the plan's algorithm on the topology that begins the run. SL_EINVAL, SL_ENOMEM. */
SL_API int sl_experiment_sending(sl_sending *out, const sl_experiment *experiment,
                                 const sl_plan *plan, const sl_task *task, sl_error *error);
SL_API void sl_sending_close(sl_sending *sending);

/* All that a run may ever have: those of the topology, which begin it, and membership.joiners. */
SL_API uint32_t sl_experiment_ranks(const sl_experiment *experiment);
/* Those of a simulation, in which nobody joins but by `faults`. */
SL_API uint32_t sl_experiment_simulated(const sl_experiment *experiment);
/* The settings of the experiment's learner. */
SL_API sl_learner_settings sl_experiment_learner(const sl_experiment *experiment);
/* The settings that all nodes of the experiment share, with vectors on the CPU. The driver sets
 * rank, inbox_parts and measure_every. Experiment, plan and sending are borrowed for the nodes'
 * life; sending NULL: one of zeros. */
SL_API sl_node_settings sl_experiment_node(const sl_experiment *experiment, const sl_plan *plan,
                                           const sl_sending *sending, size_t dimension,
                                           uint64_t rounds);

/* The memory that a run needs, in bytes: a forecast, without what processes take for themselves. */
typedef struct sl_run_memory {
    size_t vectors; /* vectors of the largest node: model, gradient, momentum, the algorithm's own,
                       replicas */
    size_t buffers; /* largest agent: encoded message, receive buffers */
    size_t task;    /* data set and working memory; each agent has its own */
    size_t agent;   /* largest agent */
    size_t agents;  /* all agents, on one host */
    size_t simulator; /* all nodes in one process */
    size_t available; /* on this host, for all its processes; 0: unknown */
    size_t limit;     /* for this process or an agent (RLIMIT_AS, RLIMIT_DATA); 0: none */
    bool on_device;   /* a GPU keeps the vectors; the host keeps a copy of each model */
} sl_run_memory;
/* task_bytes: sl_learner_memory, or what a task of your own takes in each process. This process
 * must hold them already. */
SL_API void sl_experiment_memory(sl_run_memory *out, const sl_experiment *experiment,
                                 const sl_plan *plan, size_t dimension, size_t task_bytes);

/* Descriptors that the agent with the most neighbours needs (RLIMIT_NOFILE). */
SL_API uint64_t sl_experiment_descriptors(const sl_experiment *experiment);

/* What to watch in an experiment that runs as it is; of a session whose rounds are not known, with
 * task->rounds UINT64_MAX. */
enum { SL_WARNINGS_MAX = 8 };
typedef struct sl_warnings {
    char texts[SL_WARNINGS_MAX][SL_PLAN_TEXT_MAX]; /* (count) */
    size_t count;
} sl_warnings;
SL_API void sl_experiment_warnings(sl_warnings *out, const sl_experiment *experiment,
                                   const sl_plan *plan, const sl_task *task);

/* Why weights that nobody named are lazy, in a line; empty: they are not, or were named. */
SL_API void sl_experiment_say_weights(const sl_experiment *experiment, char *out, size_t bytes);

/* The resolved configuration: every key, the topology inline. sl_experiment_parse reads an equal
 * experiment from it. Indented JSON, malloc'ed, the caller frees. */
SL_API char *sl_experiment_json(const sl_experiment *experiment);
/* The same without the keys that have no effect on it. */
SL_API char *sl_experiment_resolved(const sl_experiment *experiment);
/* The sections that must agree between agents. Each has its own hash, so that a refusal names the
 * section. The topology has a hash of its own; name, record, network, device, and transport
 * but for overlap, buckets and partition_bytes may differ; where an order of sending follows from
 * network.*, that is of the run. */
#define SL_SECTIONS(X) X(run) X(algorithm) X(optimizer) X(model) X(data) X(checkpoint)
typedef enum sl_section {
#define SL_SECTION_ENUM(name) SL_SECTION_##name,
    SL_SECTIONS(SL_SECTION_ENUM)
#undef SL_SECTION_ENUM
        SL_SECTION_COUNT
} sl_section;
SL_API const char *sl_section_name(sl_section section);
/* Leaves out paths: hosts may keep equal data in different folders, and the learner compares
 * content. 0: out of memory. */
SL_API uint64_t sl_experiment_section_hash(const sl_experiment *experiment, sl_section section);
/* Of the topology and all sections: what all peers of a run have alike. */
SL_API uint64_t sl_experiment_hash(const sl_experiment *experiment);

/* What differs from the keys' defaults in the sections, and the topology where it is short: lines
 * "KEY VALUE" with JSON values. Not empty. malloc'ed; NULL: out of memory. */
SL_API char *sl_experiment_differences(const sl_experiment *experiment);
enum { SL_DIFFERENCE_MAX = 96 };
typedef struct sl_difference {
    char key[SL_DIFFERENCE_MAX], ours[SL_DIFFERENCE_MAX], theirs[SL_DIFFERENCE_MAX];
} sl_difference;
/* The first key of a section, or "topology", whose values are others in these two, of which the
 * second may come from anybody. false: none that they hold, or that fits. */
SL_API bool sl_experiment_difference(sl_difference *out, const char *section, const char *ours,
                                     size_t our_bytes, const char *theirs, size_t their_bytes);

/* ---- going on from a checkpoint ---- */

/* Refuses what neighbours compare and is another than in `before`, the experiment of the file
 * `where`. The length, learning rate and schedule may be others. SL_EINVAL names key and values. */
SL_API int sl_experiment_goes_on(const sl_experiment *before, const sl_experiment *now,
                                 const char *where, sl_error *error);
/* sl_experiment_section_hash without what may be another there. 0: out of memory. */
SL_API uint64_t sl_experiment_lasting_hash(const sl_experiment *experiment, sl_section section);
/* What may be another there and the numbers of a round follow from: JSON, an object of paths of
 * keys and values. malloc'ed; NULL: out of memory. */
SL_API char *sl_experiment_settings(const sl_experiment *experiment);
/* Is it such a key? */
SL_API bool sl_experiment_is_setting(const char *path);

/* ---- keys ---- */

#define SL_KEYS_MAX 256
/* All keys but `topology` and `faults`, in the order of docs/experiment.md. Of an algorithm's or
 * compressor's key that several read it is the row of the first of them. */
typedef struct sl_key_list {
    const sl_key *items[SL_KEYS_MAX]; /* (count) */
    size_t count;
} sl_key_list;
SL_API void sl_experiment_keys(sl_key_list *out);
/* Has the key an effect on this experiment? */
SL_API bool sl_key_is_read(const sl_key *key, const sl_experiment *experiment);
/* Value number `index` of a CHOICE, or of a TEXT with known values; NULL: past the end. */
SL_API const char *sl_key_choice(const sl_key *key, size_t index);
#define SL_ALLOWED_MAX 768 /* bytes that hold what any key allows */
/* What a key allows, such as "an integer from 1 to 32767". */
SL_API void sl_key_allowed(const sl_key *key, char *out, size_t bytes);
#define SL_HELP_MAX 1536 /* bytes that hold what any key means */
/* What a key means, to each that reads it. */
SL_API void sl_key_help(const sl_key *key, char *out, size_t bytes);
/* One line per key: path, what is allowed, default, help. malloc'ed; NULL: out of memory. */
SL_API char *sl_experiment_keys_help(void);

#ifdef __cplusplus
}
#endif
#endif
