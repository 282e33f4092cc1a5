/* scenario.h - what a seed stands for: an experiment, and what goes wrong in it. */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "starling/starling.h"

enum { NODES_MAX = 8, ROUNDS_MAX = 8, FAULTS_MAX = 12, DIMENSION_MAX = 4096 };

typedef enum fault_kind {
    /* With these the run still ends as the simulator does. */
    FAULT_NONE,
    FAULT_STRANGER,
    FAULT_CROWD, /* of strangers, at about the same time */
    FAULT_SHORT_STOP,
    FAULT_SHORT_PARTITION,
    FAULT_BLACKOUT, /* of all hosts; then all go on from their checkpoints */
    /* These may end it. */
    FAULT_CUT,
    FAULT_HALF_OPEN,
    FAULT_MUTE,
    FAULT_CORRUPT,
    FAULT_KILL,
    FAULT_POWER,
    FAULT_STOP,
    FAULT_PARTITION,
    FAULT_TERM,
    FAULT_RESTART,
    FAULT_KINDS
} fault_kind;

typedef struct fault {
    fault_kind kind;
    double at_s;    /* since the start, or since `a` began `round` */
    uint64_t round; /* 0: since the start */
    uint32_t a, b;
    double seconds;
    bool done; /* of those that kill */
} fault;

enum { SCENARIO_TENSORS = 3 };
typedef struct scenario {
    uint64_t seed;
    char text[2048]; /* of the experiment */
    uint32_t nodes;
    uint64_t rounds, period; /* period: after so many an exchange has gone over each edge */
    size_t dimension;
    double timeout_s, connect_s, round_s, reconnect_s; /* 0: a broken connection ends the run */
    double gradient_s;                                 /* that one takes at most */
    double start_s[NODES_MAX];
    fault faults[FAULTS_MAX];
    int fault_count;
    bool may_fail;                 /* some fault may end the run */
    size_t ends[SCENARIO_TENSORS]; /* of its tensors, of which an agent tells, if it overlaps */
} scenario;

/* By which the ways are planned, in pieces of a frame. */
#define SCENARIO_LINKS                                                                             \
    " \"network\": {\"gradient_ms\": 20, \"latency_ms\": 0.5, \"bandwidth_mbit\": 5},"
#define SCENARIO_PIECES " \"partition_bytes\": 4096,"

/* Draws it; the world is open. */
void scenario_draw(scenario *out, uint64_t seed);
/* In one line. */
void scenario_print(const scenario *s);

/* What its nodes train; borrows the scenario. */
sl_task scenario_task(scenario *s);
/* In some seeds of what can do so it overlaps in one of the ways; else "none". */
const char *scenario_overlap(const scenario *s, const char *algorithm);
/* A gradient, of which nobody is told yet. */
double scenario_gradient(const scenario *s, uint32_t rank, uint64_t round, const float *x,
                         float *g);
/* It is there: an agent that overlaps tells so tensor by tensor, which takes a while. */
void scenario_tell(const scenario *s, uint32_t rank, const float *x, double loss);

#endif
