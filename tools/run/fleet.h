/* fleet.h - the agent processes of `starling run`: starts them, reads their reports, ends and
 * reaps them.
 *
 * When fleet_close returns, no agent is left, however the run went. An agent that fails reports
 * why. One that is killed cannot; its exit status says it. The other agents go on, if the
 * experiment says so; else they end within the transport's timeout, or are killed. */
#ifndef FLEET_H
#define FLEET_H

#include "run/agent_report.h"
#include "run/child.h"
#include "run/restarts.h"

/* Callbacks of the fleet's owner. A negative return value stops the run with that code. */
typedef struct fleet_handlers {
    void *context;
    void (*round)(void *context, uint32_t rank, uint64_t round);
    /* Returns where to put the floats (d) of rank's next report. */
    float *(*model)(void *context, uint32_t rank);
    /* A complete RECORD or PARAMETERS; `model` has the floats. */
    int (*report)(void *context, uint32_t rank, const report *r);
    /* May the next report of rank be read? */
    bool (*ready)(void *context, uint32_t rank);
    /* Rank has failed; the text says how. SL_EPEER: because of another agent, or without a word. */
    void (*failed)(void *context, uint32_t rank, const sl_error *error);
    /* The others go on without rank; the text says why. A code: of the owner. */
    int (*lost)(void *context, uint32_t rank, const sl_error *error);
    /* Rank takes part again, from this round on. */
    void (*returned)(void *context, uint32_t rank, uint64_t round);
    /* Rank, which was lost, is started again, or, if why_not is there, is not any more. */
    void (*restarted)(void *context, uint32_t rank, const sl_error *why_not);
    /* A message of rank to show. */
    void (*notice)(void *context, uint32_t rank, const char *text);
    /* Called several times a second. */
    void (*tick)(void *context);
} fleet_handlers;

typedef struct fleet_member {
    child child;
    uint16_t port;    /* 0: not listening yet */
    bool ended;       /* has reported FINISHED or FAILED */
    bool finished;    /* FINISHED */
    bool trains;      /* has begun a round */
    bool stopped;     /* by a signal such as SIGSTOP */
    double stopped_s; /* since when */
    bool killed;      /* this run had sent it SIGKILL when it ended */
    bool complained;  /* its failure, or its loss, was reported to the owner */
    bool lost;        /* the others go on without it */
    bool joins;       /* it was started again, and is not among the others yet */
    bool stays_out;   /* it is not started again */
    restarts again;
    int status; /* of waitpid */
    size_t got; /* bytes received of the current report: its struct, then its floats */
    report report;
} fleet_member;

typedef struct fleet {
    fleet_member members[CHILDREN_MAX];
    uint32_t count;
    size_t dimension;
    const fleet_handlers *handlers;
    const char *path;                  /* of the run folder; borrowed, as the next */
    const sl_checkpoints *checkpoints; /* that all begin with */
    sl_restart restart;
    char key[SL_RUN_KEY_FILE_BYTES + 1]; /* of this run alone; empty: the experiment says how
                                            agents prove who they are, or that they need not */
    double connect_timeout_s, timeout_s, reconnect_s;
    unsigned long starved; /* what child_starved() said before */
    double kill_at;        /* time in seconds at which agents are killed; 0: never */
    double still_since;    /* since when nobody does anything; 0: somebody does */
    bool roster_sent, interrupted, failed, killed;
    bool goes_on;               /* an agent that ends badly does not end the run */
    uint32_t diverged;          /* agents that have ended so */
    bool saves;                 /* agents write checkpoints */
    bool leaving;               /* they were asked to end after one */
    sig_atomic_t saves_asked;   /* how often they were asked for one otherwise */
    sig_atomic_t reloads_asked; /* the same, to read files again */
    uint32_t saved;             /* that have ended after a checkpoint */
    sl_error saved_how;
    sl_error error; /* of the owner's callbacks */
} fleet;

/* Starts an agent for each node, on the config.json of the run folder at `path`. */
int fleet_open(fleet *out, const trial *t, const char *path, const sl_checkpoints *checkpoints,
               const fleet_handlers *handlers, sl_error *error);
/* Runs until all agents have ended. Returns 0, SL_ESTOPPED, SL_ESAVED, SL_EPEER if an agent failed
 * (after calling `failed`), or the code of a callback. */
int fleet_run(fleet *f, sl_error *error);
/* Kills and reaps the agents that are left. */
void fleet_close(fleet *f);

#endif
