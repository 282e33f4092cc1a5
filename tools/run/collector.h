/* collector.h - collects the records of all nodes, for the run folder, the consensus distance, the
 * live view and the final table. */
#ifndef COLLECTOR_H
#define COLLECTOR_H

#include "cli/tool.h"
#include "run/live_view.h"
#include "run/missing.h"
#include "run/run_info.h"

typedef struct collector {
    const trial *trial;
    sl_folder *folder;
    run_info info;
    live_view *view;
    const char *driver;
    sl_record *records; /* (nodes) the last of each */
    bool *waiting;      /* (nodes) has its record of the current round arrived? */
    uint32_t waiting_count;
    uint32_t *members; /* (member_count) who takes part */
    uint32_t member_count;
    uint32_t absent; /* nodes that do not */
    uint64_t *since; /* (nodes) the round from which one that has returned records; 0: it is a
                        member, or away */
    uint32_t comers; /* those, whose records are not waited for yet */
    uint64_t round;  /* that is recorded, or was last */
    uint64_t *from;  /* (nodes) the first that each tells of; 1, or where it has gone on from */
    uint64_t from_first, from_last; /* of these */
    float *copies; /* (nodes, d) agents at their own times wait for nobody's record: the models that
                      they told of last; else NULL */
    sl_loss *losses; /* (loss_count) */
    uint32_t loss_count;
    bool incomplete;       /* a node is gone: no round will be complete */
    const float **models;  /* (nodes) models (d) as they came with the records; borrowed, or copies;
                              NULL: none has come */
    const float **present; /* (member_count) the members' */
    float *mean;           /* (d) of the last round that all nodes have recorded */
    bool has_consensus;
    sl_consensus consensus;  /* of the last round that all nodes have recorded */
    sl_timeline *timeline;   /* owned; NULL: no prediction */
    const char *compared_at; /* the folder that keeps it; NULL: none does */
    const sl_checkpoints *checkpoints;
    bool saved; /* the run has ended after a checkpoint */
    missing missing;
    sl_error cause; /* it did not come to its end; code 0: it did, or nobody knows */
    double began;
} collector;

/* Creates the run folder at `path`, or goes on in it. Checkpoints are borrowed. */
int collector_open(collector *out, const trial *t, const char *driver, const char *path,
                   const sl_checkpoints *checkpoints, live_view *view, sl_error *error);
/* x (d) must not change before all nodes have recorded this round. Writes the models of the last
 * round. */
int collector_record(collector *c, const sl_record *record, const float *x, sl_error *error);
/* This one records no more, and the others go on. It was last known in loss->round. */
int collector_lose(collector *c, const sl_loss *loss, sl_error *error);
/* It is started again. */
void collector_restart(collector *c, uint32_t rank);
/* It does again, from `round` on. */
void collector_return(collector *c, uint32_t rank, uint64_t round);
/* Of a simulation: from this round on only these ranks (count, rising) record. SL_ENOMEM. */
int collector_members(collector *c, uint64_t round, const uint32_t *ranks, uint32_t count,
                      sl_error *error);
/* What nodes that share rounds did when, as predicted. */
int collector_spans(const collector *c, void (*take)(void *context, const sl_span *span),
                    void *context, sl_error *error);
/* Writes the averaged model and the summary and closes the folder. The summary is valid until
 * collector_close. */
int collector_finish(collector *c, sl_summary *summary, sl_error *error);
/* Why the run did not come to its end, for its file. What was said first counts. */
void collector_explain(collector *c, const sl_error *cause);
/* Closes what is open. Files stay. */
void collector_close(collector *c);

#endif
