/* folder.h - the run folder: what a run leaves behind. A run can be repeated from it alone.
 *
 *   config.json          resolved configuration, topology inline (quadratic: problem.json beside
 *                        it)
 *   events-<rank>.jsonl  what happened beside rounds (starling/event_log.h)
 *   metrics-<rank>.jsonl one line per recorded round; of more than SL_FOLDER_METRICS_MAX nodes
 *                        metrics.jsonl, one line per round and node
 *   consensus.jsonl      one line per recorded round: consensus distance, and the averaged model's
 *                        loss and accuracy
 *   parameters.jsonl     {"round", "node", "parameters": [...], "push_sum_weight"} at
 *                        record.parameters_at, by round, then node
 *   model-<rank>.npy     final parameters of each node, float32 (d); model.npy their mean
 *   model-best.npy       the best mean, or agent's model, so far; model-last.npy the last recorded
 *                        mean of a run that failed
 *   model*.safetensors   beside model.npy, model-best, model-last, and an agent's own: the same
 *                        with names and shapes of tensors
 *   summary.json         the final table
 *   trace.json           what each node did when, with record.trace (starling/trace.h)
 *
 * record.models says which models are kept; others are passed over. */
#ifndef STARLING_FOLDER_H
#define STARLING_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/experiment.h"
#include "starling/observer.h"
#include "starling/tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SL_FOLDER_METRICS_MAX = 100 };

typedef struct sl_folder sl_folder;

/* Creates a folder, with its parents. */
SL_API int sl_folder_make(const char *path, sl_error *error);
/* Creates the folder with its parents and config.json, which proves that it is writable.
 * all_nodes: the writer of a whole run (sim, run); a folder that holds a run is refused. Otherwise
 * one agent: it may join a folder with an equal config.json, and its parameters go to
 * parameters-<rank>.jsonl. */
SL_API int sl_folder_open(sl_folder **out, const char *path, const sl_experiment *experiment,
                          bool all_nodes, sl_error *error);
/* The folder of a run that goes on, by all of its nodes (rank -1) or one agent, each from a round
 * of its own: `rounds` has one for each of them. Lines of these and later ones are taken out of its
 * files, those of all nodes from the first one on; config.json becomes this experiment's. *seconds:
 * what had passed by the last line that stays. */
SL_API int sl_folder_resume(sl_folder **out, const char *path, const sl_experiment *experiment,
                            int64_t rank, const uint64_t *rounds, double *seconds, sl_error *error);
/* *round: the latest from which all nodes of a run can go on without a gap in its lines: those of
 * earlier rounds, but not before `from`, that `experiment`, of so many rounds, records are there.
 */
SL_API int sl_folder_complete(uint64_t *round, const char *path, const sl_experiment *experiment,
                              uint64_t rounds, uint64_t from, sl_error *error);
/* May a run (rank -1), or agent `rank`, write to a folder at `path`? Refuses a folder with a
 * finished run, another configuration, or files of this rank. Creates nothing. */
SL_API int sl_folder_check(const char *path, const sl_experiment *experiment, int64_t rank,
                           sl_error *error);
/* From now on models are written as safetensors too, unless record.safetensors is false. */
SL_API int sl_folder_layout(sl_folder *folder, const sl_tensor *tensors, size_t count,
                            sl_error *error);
SL_API int sl_folder_metrics(sl_folder *folder, const sl_record *record, sl_error *error);
SL_API int sl_folder_consensus(sl_folder *folder, uint64_t round, const sl_consensus *consensus,
                               sl_error *error);
SL_API int sl_folder_parameters(sl_folder *folder, uint64_t round, uint32_t rank, const float *x,
                                size_t dimension, double push_sum_weight, sl_error *error);
/* Writes x (dimension) as model-RANK<which>.npy, or for rank -1 as model<which>.npy, and all but
 * one of many nodes' beside it as .safetensors. */
SL_API int sl_folder_model(sl_folder *folder, int64_t rank, const char *which, const float *x,
                           size_t dimension, sl_error *error);

/* Writes x (dimension) as model-best.npy (rank -1) or model-RANK-best.npy if it is the best so
 * far: by accuracy, then loss; by loss alone if accuracy means nothing. One rank per folder. The
 * summary names the round. */
SL_API int sl_folder_best(sl_folder *folder, int64_t rank, uint64_t round,
                          const sl_evaluation *evaluation, const float *x, size_t dimension,
                          sl_error *error);

/* Remembers a copy of x (dimension) for sl_folder_rescue, if its loss is finite. */
SL_API int sl_folder_remember(sl_folder *folder, uint64_t round, const sl_evaluation *evaluation,
                              const float *x, size_t dimension, sl_error *error);
/* After a failed run: writes the remembered model as model-last.npy (rank -1) or
 * model-RANK-last.npy. *round: its round; 0: there is none. */
SL_API int sl_folder_rescue(sl_folder *folder, int64_t rank, uint64_t *round, sl_error *error);

/* The final table, as printed and as in summary.json. */
/* A node that the others have gone on without. */
typedef struct sl_loss {
    uint32_t rank;
    bool left;          /* on request */
    uint64_t round;     /* that it is last known to have begun */
    uint64_t returned;  /* the round in which it took part again; 0: it has not */
    uint32_t restarts;  /* how often it was started again since */
    double restarted_s; /* the last time, in seconds since the run began */
    char why[SL_ERROR_TEXT_MAX];
} sl_loss;

typedef struct sl_summary {
    const char *driver; /* "run", "sim", "agent" */
    uint64_t rounds;
    uint32_t nodes; /* nodes of the run; `records` has one record each (an agent: one) */
    size_t record_count;
    const sl_record *records; /* the last record of each node, by rank */
    bool has_consensus;
    sl_consensus consensus;
    double seconds;
    double predicted_seconds; /* on the experiment's network; 0: not asked for */
    const sl_loss *losses;    /* (loss_count) */
    size_t loss_count;
    const uint32_t *members; /* (member_count) at the end; count 0: all, from the first round on */
    uint32_t member_count;
    bool minority;       /* sl_is_minority */
    const char *missing; /* who was lost and is not back, in a sentence; NULL: nobody */
} sl_summary;
/* A record of a node whose model is the final average; NULL: there is none. */
SL_API const sl_record *sl_summary_averaged(const sl_summary *summary);
SL_API int sl_folder_summary(sl_folder *folder, const sl_summary *summary, sl_error *error);
/* A whole run that no command has begun, such as sl_simulate's. */
typedef struct sl_run_end {
    const char *driver;
    const char *why;     /* it failed; NULL: it came to its end */
    double began, ended; /* seconds since 1970, UTC */
    uint64_t sent, received;
} sl_run_end;
/* Writes the folder's config.json anew, and run.json as the commands do. */
SL_API int sl_folder_end(const char *path, const sl_experiment *experiment, const sl_run_end *end,
                         sl_error *error);
/* Sorts parameters.jsonl by round, then node. */
SL_API int sl_folder_close(sl_folder **folder, sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
