/* checkpoint.h - checkpoints: all of a node's state in a file, from which a run goes on bit for
 * bit.
 *
 * Every checkpoint.every rounds, and when it is asked to, a node writes round-R-rank-I.safetensors:
 * its vectors as tensors, its numbers and whom it belongs to as metadata, and a checksum of each.
 * Rounds are lock-step, so the files of one round of all ranks are a consistent cut, and no node
 * waits for another. A file is there whole or not at all: written beside its name, synced, renamed.
 */
#ifndef STARLING_CHECKPOINT_H
#define STARLING_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/experiment.h"
#include "starling/node.h"
#include "starling/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What must be equal for a run to go on from a file: name in the file, what a refusal calls it. */
#define SL_CHECKPOINT_OWNERS(X)                                                                    \
    X(run, "run")                                                                                  \
    X(nodes, "number of nodes")                                                                    \
    X(dimension, "number of parameters")                                                           \
    X(seed, "seed")                                                                                \
    X(topology, "topology")                                                                        \
    X(layout, "layout of the model")                                                               \
    X(data_set, "data set")                                                                        \
    X(algorithm, "section algorithm of the experiment")                                            \
    X(optimizer, "section optimizer of the experiment")                                            \
    X(model, "section model of the experiment")                                                    \
    X(data, "section data of the experiment")

typedef struct sl_checkpoint_owner {
#define SL_CHECKPOINT_OWNER(name, text) uint64_t name;
    SL_CHECKPOINT_OWNERS(SL_CHECKPOINT_OWNER)
#undef SL_CHECKPOINT_OWNER
} sl_checkpoint_owner;

/* run_id: tells this run from others with an equal experiment. */
SL_API int sl_checkpoint_owner_of(sl_checkpoint_owner *out, const sl_experiment *experiment,
                                  const sl_task *task, uint64_t run_id, sl_error *error);

struct sl_machine; /* a node, of either kind: sessions, which fill it, know more */
struct sl_checkpoint_view;

/* What a driver (agent, simulator) does with checkpoints, beside checkpoint.every and .keep. */
typedef struct sl_checkpoints {
    const char *folder; /* of the files; made if its parent is there. Borrowed. NULL: `opened` */
    uint64_t run_id;
    bool resume;    /* go on from the newest round of which all nodes have a good file */
    uint64_t round; /* of resume, if it is known (sl_checkpoint_newest); agents agree on it if 0 */
    uint64_t end_after; /* the simulator: the round after which it ends with SL_ESAVED, whatever
                           checkpoint.every says; 0: it does not */
    const struct sl_history *history; /* the simulator: (nodes) losses of a run that is repeated
                                         (starling/observer.h); NULL: none is. Borrowed */
    const volatile int *asked; /* the simulator: how often somebody has asked for a checkpoint more,
                                  read between rounds; NULL: nobody does. Borrowed */
    /* In place of files: each node before it starts. Who keeps its state fills it, if it is to
     * resume, and may read it later, between two rounds (starling/node.h). NULL: there are files */
    int (*opened)(void *context, uint32_t rank, const struct sl_machine *node, sl_error *error);
    /* With `opened`, of nodes at their own times: an agent's is at rest, or all of the simulator's,
     * and `view` begins, which all of SL_MEET_CUT wait for (src/agent/collectives). To go on from
     * there, `round` and `view` are given then. */
    void (*cut)(void *context, uint64_t round, const struct sl_checkpoint_view *view);
    /* The simulator: do all tasks wait for a cut? Asked after each event. */
    bool (*wants_cut)(void *context);
    const struct sl_checkpoint_view *view; /* borrowed; NULL: there is none */
    void *context;                         /* borrowed */
} sl_checkpoints;

/* checkpoint.path, or else RUN/checkpoints. */
SL_API void sl_checkpoint_folder(const sl_experiment *experiment, const char *run,
                                 char out[SL_PATH_MAX]);

/* Of nodes at their own times `round` only counts cuts. */
typedef struct sl_checkpoint_file {
    uint64_t round;
    uint32_t rank;
} sl_checkpoint_file;

/* The view that a file was written in: one of some of the ranks. number 0: all of the topology's.
 */
enum { SL_CHECKPOINT_RANKS_MAX = 1024 };
typedef struct sl_checkpoint_view {
    uint64_t number;
    uint64_t members[SL_CHECKPOINT_RANKS_MAX / 64]; /* a bit for each rank */
} sl_checkpoint_view;
static inline bool sl_checkpoint_view_has(const sl_checkpoint_view *view, uint32_t rank) {
    return view->number == 0 ||
           (rank < SL_CHECKPOINT_RANKS_MAX && (view->members[rank / 64] >> rank % 64 & 1) != 0);
}
/* SL_EFILE. */
SL_API int sl_checkpoint_view_of(sl_checkpoint_view *out, const char *folder,
                                 sl_checkpoint_file file, sl_error *error);

/* The first round that a node tells of which goes on from this file: the file's, or at its own
 * times the one that it was in. SL_EFILE. */
SL_API int sl_checkpoint_begins(uint64_t *round, const char *folder, sl_checkpoint_file file,
                                sl_error *error);

/* All files of a folder, by round, then rank: malloc'ed, the caller frees. A folder that is not
 * there has none. */
SL_API int sl_checkpoint_list(sl_checkpoint_file **out, size_t *count, const char *folder,
                              sl_error *error);
/* Reads all of a file, and holds it against its checksums and `owner` (NULL: any owner). SL_EFILE
 * names file, field or tensor, and place. *nodes (NULL: not asked): of its run. */
SL_API int sl_checkpoint_check(const char *folder, sl_checkpoint_file file,
                               const sl_checkpoint_owner *owner, uint32_t *nodes, sl_error *error);
/* Reads the model of a file into x (dimension), and its push-sum weight, 1 without. SL_EFILE. */
SL_API int sl_checkpoint_model(float *x, size_t dimension, double *weight, const char *folder,
                               sl_checkpoint_file file, sl_error *error);
/* The latest view that a file of that round was written in. SL_EFILE. */
SL_API int sl_checkpoint_view_at(sl_checkpoint_view *out, const char *folder, uint64_t round,
                                 sl_error *error);
/* The newest round, but not after `most`, of which ranks [from, to) all have a good file, as far as
 * they are of its view. SL_EFILE:
 * there is none, and which rank lacks which round, or another process writes to the folder. A newer
 * round that is passed over is told in one line. */
SL_API int sl_checkpoint_newest(uint64_t *round, const char *folder,
                                const sl_checkpoint_owner *owner, uint32_t from, uint32_t to,
                                uint64_t most, void (*notice)(void *context, const char *text),
                                void *context, sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
