/* fleet.h - the agent processes of `starling run`: started, listened to, ended, reaped.
 *
 * However the run goes, when fleet_close returns no agent is left. An agent that fails tells why;
 * one that is killed cannot, so that its exit status speaks for it. The others end themselves
 * within the transport's timeout; whoever does not is killed.
 */
#ifndef FLEET_H
#define FLEET_H

#include <sys/types.h>

#include "run/agent_report.h"

#define FLEET_MAX 64u

/* What the fleet tells its owner. A negative return stops the run with that code. */
typedef struct fleet_handlers {
    void *context;
    void (*round)(void *context, uint32_t rank, uint64_t round);
    /* Where the floats of rank's next report go (d). */
    float *(*model)(void *context, uint32_t rank);
    /* A complete RECORD or PARAMETERS; the floats are in `model`. */
    int (*report)(void *context, uint32_t rank, const report *r);
    /* May rank's next report be read? */
    bool (*ready)(void *context, uint32_t rank);
    /* Rank has ended badly: the text says how; SL_EPEER: because of another one, or without a word.
     */
    void (*failed)(void *context, uint32_t rank, const sl_error *error);
    /* A line of rank for people. */
    void (*notice)(void *context, uint32_t rank, const char *text);
    /* Called several times a second. */
    void (*tick)(void *context);
} fleet_handlers;

typedef struct fleet_member {
    pid_t pid;       /* 0: not started, or reaped */
    int fd;          /* -1: closed */
    uint16_t port;   /* 0: not listening yet */
    bool ended;      /* said FINISHED or FAILED */
    bool trains;     /* has begun a round */
    bool stopped;    /* by a signal such as SIGSTOP */
    bool complained; /* its failure is told */
    int status;      /* of waitpid */
    size_t got;      /* bytes of the report under way: its struct, then its floats */
    report report;
} fleet_member;

typedef struct fleet {
    fleet_member members[FLEET_MAX];
    uint32_t count;
    size_t dimension;
    const fleet_handlers *handlers;
    double connect_timeout_s, timeout_s;
    double kill_at; /* seconds; 0: nobody has to be killed */
    bool roster_sent, interrupted, failed, killed;
    sl_error error; /* of the owner's handlers */
} fleet;

/* Starts `count` agents on the experiment file `config`, with a random run id. */
int fleet_open(fleet *out, uint32_t count, const char *config, const sl_experiment *experiment,
               size_t dimension, const fleet_handlers *handlers, sl_error *error);
/* Until all have ended: 0, SL_ESTOPPED, or SL_EPEER when any failed (which `failed` has been told),
 * or a handler's code. */
int fleet_run(fleet *f, sl_error *error);
/* Kills and reaps whoever is left. */
void fleet_close(fleet *f);

#endif
