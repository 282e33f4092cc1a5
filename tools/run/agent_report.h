/* agent_report.h - what an agent of `starling run` reports to it, over a socket pair.
 *
 * A report is this struct; for RECORD and PARAMETERS the model's floats follow. Both ends are the
 * same program on the same machine. The other direction carries the run id and the port first, then
 * the key of a run that makes its own, and when all agents listen, the roster: its length in 4
 * bytes, then its text.
 */
#ifndef AGENT_REPORT_H
#define AGENT_REPORT_H

#include "cli/tool.h"

typedef enum report_type {
    REPORT_LISTENING = 1, /* on `port` */
    REPORT_ROUND,         /* `round` has begun; now and then */
    REPORT_RECORD,        /* `record` */
    REPORT_PARAMETERS,    /* of `round`, with `weight` */
    REPORT_ASIDE,         /* the others go on without it; `error` says why */
    REPORT_RETURNED,      /* it takes part again, from `round` on */
    REPORT_NOTICE,        /* `error.text`: sl_observer's notice */
    REPORT_FAILED,        /* with `error`; the last one */
    REPORT_FINISHED       /* the last one */
} report_type;

typedef struct report {
    uint32_t type; /* a report_type */
    uint16_t port;
    uint64_t round;
    double weight;
    sl_record record;
    sl_error error;
} report;

enum { ROSTER_BYTES_MAX = 1 << 16 };

/* Returns 0, or SL_ESTOPPED if the other end is closed. x may be NULL. Blocks. */
int report_send(int fd, const report *r, const float *x, size_t dimension);
/* Sends it if there is room within wait_ms. */
bool report_try(int fd, const report *r, int wait_ms);
/* What an agent is told first. */
typedef struct orders {
    uint64_t run_id; /* no other process may learn it */
    uint16_t port;   /* where to listen; 0: anywhere */
} orders;
int report_send_orders(int fd, const orders *told);
int report_wait_orders(int fd, orders *told, sl_error *error);
/* Its key, which is wiped here once it is among the credentials. */
int report_send_key(int fd, const char key[SL_RUN_KEY_FILE_BYTES]);
int report_wait_key(int fd, sl_credentials **credentials, sl_error *error);
/* Waits for the roster: text of at most ROSTER_BYTES_MAX bytes, which the caller frees.
 * SL_ESTOPPED if the other end is closed or a signal asks to stop. */
int report_wait_roster(int fd, char **text, sl_error *error);
int report_send_roster(int fd, const char *text);

#endif
