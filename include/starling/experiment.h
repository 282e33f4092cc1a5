/* experiment.h - the experiment file: JSON to one validated struct, and from it the settings of a
 * learner and of a node.
 *
 * Every key is a row of the table in src/config/keys.c, with type, range, default and help. Unknown
 * keys, wrong types and values out of range are refused; the error names file, key, value and what
 * is allowed. Paths in the file are relative to the file's folder.
 */
#ifndef STARLING_EXPERIMENT_H
#define STARLING_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/algorithm.h"
#include "starling/api.h"
#include "starling/error.h"
#include "starling/learner.h"
#include "starling/node.h"
#include "starling/optimizer.h"
#include "starling/topology.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_RECORD_ROUNDS_MAX 4096
#define SL_SPEEDS_MAX 4096

typedef struct sl_record_config {
    uint64_t every;    /* rounds between recorded (evaluated) rounds; 0 = about 20 times a run; the
                          last round always is */
    uint32_t evaluate; /* nodes whose models are evaluated, evenly spread; 0: sl_record_evaluated */
    uint64_t parameters_at[SL_RECORD_ROUNDS_MAX]; /* rising; 0 = the initial parameters */
    size_t parameters_at_count;
    bool safetensors; /* models of the run folder also have names and shapes of tensors */
} sl_record_config;

/* Payloads straight between a GPU's memory and the network. */
typedef enum sl_gpu_direct {
    SL_GPU_DIRECT_OFF,
    SL_GPU_DIRECT_AUTO,
    SL_GPU_DIRECT_ON
} sl_gpu_direct;

typedef struct sl_transport_config {
    char provider[SL_NAME_MAX]; /* libfabric provider: "tcp", "verbs" */
    sl_gpu_direct gpu_direct;   /* see sl_agent_find_path */
    uint32_t chunk_bytes;       /* payload of one frame */
    uint32_t window_chunks;     /* receive buffers granted to each neighbour */
    double timeout_s;           /* silence after which a neighbour counts as dead */
    double connect_timeout_s;   /* how long to wait for all neighbours to come up */
    double round_timeout_s;     /* longest that a living neighbour may keep a round waiting */
} sl_transport_config;

/* Who may connect. "none" neither encrypts nor authenticates, so that an agent listens beyond
 * loopback only where the experiment also says that it trusts the network. */
typedef enum sl_security_mode { SL_SECURITY_NONE } sl_security_mode;
typedef struct sl_security_config {
    sl_security_mode mode;
    bool trusted_network; /* everybody who can reach this network's addresses is trusted */
} sl_security_config;

/* What a simulation predicts the time for. All 0: nothing is predicted. */
typedef struct sl_network_config {
    double bandwidth_mbit; /* of each node's link, out and in, in 10^6 bit/s; 0 = infinite */
    double latency_ms;
    double gradient_ms; /* of one gradient, on a node of speed 1; 0 = as measured in the run */
    sl_switch coding; /* do encoding and combining take the time that was measured? auto: where the
                         gradient's is measured too */
    double speeds[SL_SPEEDS_MAX]; /* by rank; none: all 1 */
    size_t speed_count;
} sl_network_config;

typedef struct sl_experiment {
    char name[SL_NAME_MAX];
    uint64_t seed;
    uint64_t rounds; /* 0: from epochs, see sl_learner_rounds */
    double epochs;
    char device[SL_NAME_MAX]; /* where vectors live; see starling/device.h */
    double device_memory_gb;  /* 10^9 bytes that one agent may take there; 0: no bound */
    double loss_limit; /* a batch loss above it ends the run; 0: a million times the first one */
    sl_algorithm_config algorithm;
    sl_optimizer_config optimizer;
    sl_model_config model;
    sl_data_config data;
    sl_record_config record;
    sl_transport_config transport;
    sl_security_config security;
    sl_network_config network;
    sl_topology *topology; /* owned */
    char *warnings; /* owned; a line for each key that was given and has no effect; "": none */
} sl_experiment;

/* Reads, applies overrides ("optimizer.learning_rate=0.2", value parsed as JSON, else taken as a
 * string), fills defaults, validates, opens the topology. Free with sl_experiment_close. */
SL_API int sl_experiment_load(sl_experiment **out, const char *path, const char *const *overrides,
                              size_t override_count, sl_error *error);
/* The same from text; relative paths are taken from `folder`. `where` names the source in errors.
 */
SL_API int sl_experiment_parse(sl_experiment **out, const char *json, const char *where,
                               const char *folder, const char *const *overrides,
                               size_t override_count, sl_error *error);
/* Of a training loop of one's own, a session (starling/session.h). */
typedef struct sl_session_reading {
    const char *const *overrides;
    size_t override_count;
    bool overlap;   /* the topology's own weights are lazy, as sl_topology_parse_lazy says */
    uint32_t nodes; /* of a topology that does not say it; 0: it says it */
} sl_session_reading;
/* source: a path, or JSON text that begins with {. Keys of model, data, rounds and optimizer are
 * not needed and not used: `warnings` has a line for each that is given. SL_EINVAL: momentum or
 * weight decay, or vectors on a GPU. */
SL_API int sl_experiment_load_session(sl_experiment **out, const char *source,
                                      const sl_session_reading *how, sl_error *error);
/* device_memory_gb in bytes. */
SL_API size_t sl_experiment_device_bytes(const sl_experiment *experiment);
SL_API void sl_experiment_close(sl_experiment **experiment);

/* The settings of the experiment's learner. */
SL_API sl_learner_settings sl_experiment_learner(const sl_experiment *experiment);
/* What all nodes of the experiment share, with vectors on the CPU. The driver adds rank,
 * inbox_parts and measure_every. Experiment and plan are borrowed for the nodes' life. */
SL_API sl_node_settings sl_experiment_node(const sl_experiment *experiment, const sl_plan *plan,
                                           size_t dimension, uint64_t rounds);

/* What a run needs, in bytes; a forecast that leaves out what processes take for themselves. */
typedef struct sl_run_memory {
    size_t vectors;   /* largest node: model, gradient, momentum, the algorithm's own, replicas */
    size_t buffers;   /* largest agent: encoded message, receive buffers */
    size_t task;      /* data set and working memory; each agent has its own */
    size_t agent;     /* largest agent */
    size_t agents;    /* all agents, on one host */
    size_t simulator; /* all nodes in one process */
    size_t available; /* on this host, for all its processes; 0: unknown */
    size_t limit;     /* for this process or an agent (RLIMIT_AS, RLIMIT_DATA); 0: none */
    bool on_device;   /* a GPU keeps the vectors; the host keeps a copy of each model */
} sl_run_memory;
/* task_bytes: sl_learner_memory, or what a task of your own takes in each process; this process has
 * them already. */
SL_API void sl_experiment_memory(sl_run_memory *out, const sl_experiment *experiment,
                                 const sl_plan *plan, size_t dimension, size_t task_bytes);

/* The resolved configuration, every key present, topology inline: sl_experiment_parse takes it back
 * to an equal experiment. Indented JSON; malloc'ed, caller frees. */
SL_API char *sl_experiment_json(const sl_experiment *experiment);

/* What must agree between agents, hashed by section so that a refusal can say which one differs.
 * The topology has its own hash; name, record, transport, network and device may differ. */
#define SL_SECTIONS(X) X(run) X(algorithm) X(optimizer) X(model) X(data)
typedef enum sl_section {
#define SL_SECTION_ENUM(name) SL_SECTION_##name,
    SL_SECTIONS(SL_SECTION_ENUM)
#undef SL_SECTION_ENUM
        SL_SECTION_COUNT
} sl_section;
SL_API const char *sl_section_name(sl_section section);
/* Paths are left out of the hash: two hosts may keep the same data in different folders (the
 * learner's fingerprint compares content). 0: out of memory. */
SL_API uint64_t sl_experiment_section_hash(const sl_experiment *experiment, sl_section section);

/* ---- keys ---- */

typedef enum sl_key_type {
    SL_KEY_TEXT,    /* char[SL_NAME_MAX] */
    SL_KEY_PATH,    /* char[SL_PATH_MAX] */
    SL_KEY_CHOICE,  /* an enum, one of `choices` */
    SL_KEY_BOOL,    /* bool */
    SL_KEY_SWITCH,  /* sl_switch: true, false or "auto" */
    SL_KEY_SERVER,  /* int64_t: a rank, or SL_SERVER_SHARDED for "sharded" */
    SL_KEY_U32,     /* uint32_t */
    SL_KEY_U64,     /* uint64_t */
    SL_KEY_REAL,    /* double */
    SL_KEY_REALS,   /* double[], rising, with a size_t count */
    SL_KEY_FACTORS, /* double[], in any order, with a size_t count */
    SL_KEY_U32S,    /* uint32_t[] with a size_t count */
    SL_KEY_U64S     /* uint64_t[], rising, with a size_t count */
} sl_key_type;

/* One key of the experiment file. */
typedef struct sl_key {
    const char *path; /* "optimizer.momentum" */
    sl_key_type type;
    size_t offset, count_offset; /* of its value in sl_experiment, and of a list's length */
    double min, max;             /* of a number, or of each in a list */
    size_t length_max;           /* of a list */
    const char *const *choices;  /* CHOICE: names in the order of the enum; TEXT: values that are
                                    known, or NULL. Ends with NULL */
    const char *(*names)(size_t index); /* TEXT: the same from a function, or NULL */
    const char *fallback;               /* JSON text of the default */
    const char *help;
    /* The key has an effect where the key `user` has one of the values `users`, separated by
     * spaces, or none of them where `users` begins with "!". user NULL: always; users NULL: with
     * those that sl_algorithm_reads or sl_compressor_reads names. */
    const char *user, *users;
} sl_key;

/* All keys but `topology`, in the order of docs/experiment.md: *count rows. */
SL_API const sl_key *sl_experiment_keys(size_t *count);
/* The known value `index` of a CHOICE, or of a TEXT that has some; NULL: there are no more. */
SL_API const char *sl_key_choice(const sl_key *key, size_t index);
/* What a key allows, in words: "an integer from 1 to 32767". */
SL_API void sl_key_allowed(const sl_key *key, char *out, size_t bytes);
/* One line a key: path, what is allowed, default, help. malloc'ed; NULL: out of memory. */
SL_API char *sl_experiment_keys_help(void);

#ifdef __cplusplus
}
#endif
#endif
