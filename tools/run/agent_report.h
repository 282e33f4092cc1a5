/* agent_report.h - what an agent that `starling run` has started tells it, over a socket pair.
 *
 * A report is this struct, and for RECORD and PARAMETERS the model's floats behind it: both ends
 * are the same program on the same machine. The other way go the run id, at once, and when all
 * listen the roster's text behind its length in 4 bytes.
 */
#ifndef AGENT_REPORT_H
#define AGENT_REPORT_H

#include "cli/tool.h"

typedef enum report_type {
    REPORT_LISTENING = 1, /* on `port` */
    REPORT_ROUND,         /* `round` has begun; now and then */
    REPORT_RECORD,        /* `record` */
    REPORT_PARAMETERS,    /* of `round`, with `weight` */
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

/* 0; SL_ESTOPPED when the other end is gone. x may be NULL. Blocks. */
int report_send(int fd, const report *r, const float *x, size_t dimension);
/* Sends it if that needs no waiting. */
void report_try(int fd, const report *r);
/* The run id, which no other process should learn. */
int report_send_run_id(int fd, uint64_t run_id);
int report_wait_run_id(int fd, uint64_t *run_id, sl_error *error);
/* Waits for the roster; SL_ESTOPPED also when a signal asks us to stop. Text of at most
 * ROSTER_BYTES_MAX, freed by the caller. */
int report_wait_roster(int fd, char **text, sl_error *error);
int report_send_roster(int fd, const char *text);

#endif
