/* recorded.h - records of nodes that go at their own times: a round is reported when all nodes have
 * ended it, round by round and in a round by rank, as sl_sim_run says; until then its models are
 * copied. The last record is of the models as they are when the run is over. */
#ifndef SL_SIM_RECORDED_H
#define SL_SIM_RECORDED_H

#include "starling/observer.h"

/* A round that some nodes have ended. */
typedef struct sl_recorded_round {
    struct sl_recorded_round *next; /* a later one */
    uint64_t round;
    uint32_t ended;     /* so often */
    sl_record *records; /* (nodes) */
    double *weights;    /* (nodes) of push-sum */
    float *models;      /* (nodes, dimension) */
} sl_recorded_round;

typedef struct sl_recorded {
    const sl_experiment *experiment;
    const sl_task *task;
    const sl_observer *observer;
    uint32_t nodes;
    bool by_time;    /* rounds are not recorded, but for the last one */
    uint16_t *does;  /* (nodes, rounds + 1) how often each ends a round: a process that joins
                        may do again what its rank has done. NULL: all end all, once */
    uint64_t *first; /* (nodes) the first that each ends, of those who are there now; UINT64_MAX: it
                        is not. NULL: all are */
    uint32_t *ranks; /* (nodes) room for a list, where there is `does` */
    uint64_t told;   /* the round that was reported last */
    uint64_t from;   /* some nodes begin with this round: those before are not reported */
    sl_recorded_round *first_round; /* of those that are open */
} sl_recorded;

/* A node has ended a round, with this model and weight: keeps what is recorded of it, and reports
 * the round if it was the last. A negative value of the observer's is returned. */
int sl_recorded_take(sl_recorded *r, const sl_record *record, const float *x, double weight,
                     sl_error *error);
/* From this round on the rank is there; UINT64_MAX: it is not any more, and what it did is not
 * reported. */
void sl_recorded_let(sl_recorded *r, uint32_t rank, uint64_t first);
/* Reports rounds that all have ended who are there now. */
int sl_recorded_flush(sl_recorded *r);
/* Reports a node's record with its model as it is. */
int sl_recorded_report(const sl_recorded *r, const sl_record *record, const float *x);
/* Tells the observer who is there from this round on, if that is others than before. */
void sl_recorded_tell_members(sl_recorded *r, uint64_t round);
void sl_recorded_close(sl_recorded *r);

#endif
