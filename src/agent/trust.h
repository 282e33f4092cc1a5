/* trust.h - whom an agent trusts, anew while it runs: roster and key files are read again, and what
 * they say holds from the next connection on. A peer that is not trusted any more loses its
 * connections at once.
 *
 * The thread that asks reads the files. The loop looks whether all of it fits, and takes all or
 * nothing. A run's key that is another one holds beside the one before for security.overlap_s.
 */
#ifndef SL_AGENT_TRUST_H
#define SL_AGENT_TRUST_H

#include <pthread.h>

#include "starling/agent.h"

struct sl_agent;

typedef enum sl_trust_state {
    SL_TRUST_NOT_YET, /* the loop does not run yet */
    SL_TRUST_RUNS,
    SL_TRUST_OVER
} sl_trust_state;

enum { SL_TRUST_TIME_MAX = 32 };

typedef struct sl_trust {
    /* under the agent's mutex */
    pthread_cond_t changed;
    bool open;
    sl_trust_state state;
    bool asked;                  /* what follows is for the loop */
    sl_credentials *credentials; /* NULL: as before; so is the roster */
    sl_roster *roster;
    sl_error error; /* the loop's answer; code 0: it has taken both */
    char said[SL_AGENT_RELOAD_MAX];

    /* the loop's */
    sl_credentials *own_credentials; /* that it has taken; NULL: those that it was opened with */
    sl_roster *own_roster;
    sl_roster *before_own;   /* the one before it, where that is the agent's, too */
    const sl_roster *before; /* the last one that named other certificates; NULL: none has */
    char key_time[SL_TRUST_TIME_MAX], roster_time[SL_TRUST_TIME_MAX]; /* when they were changed */
    double overlap_ends_s; /* of the run's key before; 0: there is none */
    bool told_end;         /* that the CA's list has ended */
} sl_trust;

int sl_trust_open(struct sl_agent *agent, sl_error *error);
void sl_trust_close(struct sl_agent *agent);
/* The loop runs, or does not any more. */
void sl_trust_begin(struct sl_agent *agent);
void sl_trust_end(struct sl_agent *agent);
/* Somebody has asked. */
void sl_trust_take(struct sl_agent *agent);
/* The run's key before may have come to its end, or the CA's list. */
void sl_trust_tick(struct sl_agent *agent);

#endif
