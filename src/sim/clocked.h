/* clocked.h - what the files of the clocked simulator share: clocked.c has the clock, changes.c
 * what becomes of its nodes by faults and cuts. */
#ifndef SL_SIM_CLOCKED_H
#define SL_SIM_CLOCKED_H

#include "sim/heap.h"
#include "sim/ports.h"
#include "sim/recorded.h"
#include "sim/simulator.h"
#include "wire/frame.h"

typedef enum kind {
    COMES,
    ARRIVES,
    ACKNOWLEDGED,
    START,
    GRADIENT,
    TURN,
    CHANGE,
    RECORD,
    NOTHING /* it was to happen to a node that is gone, or is on its way no more */
} kind;

/* What an event is, beside its time and rank. */
typedef struct body {
    kind kind;
    uint32_t rank, peer; /* whom it happens to; the sender */
    message *message;    /* NULL: a silent part */
    sl_async_part part;
    uint64_t left; /* of a message: when it was handed over */
    uint32_t next_free;
} body;

#define SL_NO_BODY UINT32_MAX

typedef struct clocked {
    simulator *s;
    sl_heap heap;
    sl_ports ports;
    sl_recorded recorded;
    body *bodies; /* (body_room) */
    uint32_t body_room, free_body;
    uint64_t now;
    uint64_t *since;                      /* (nodes) when its gradient began, or was there */
    uint64_t record_every, last_recorded; /* nanoseconds, 0: by rounds; the number of the last */
    bool is_timed;                        /* does the experiment say how long anything takes? */
    bool *held;                           /* (nodes) its gradient waits for what other nodes do */
    uint32_t finished;
    uint64_t view;       /* its number */
    uint64_t fault;      /* the next round that has one; 0: none has */
    bool changes, rests; /* its round has come; all are to rest */
    uint32_t *everybody; /* (nodes) 0, 1, ...: members of views after cuts */
    uint64_t cut;        /* the number of the last one; 0: there was none */
    bool goes_on;        /* from a cut, now */
} clocked;

/* ---- clocked_nodes.c ---- */

/* Of its frame. */
static inline double sl_clocked_bytes(const sl_async_part *part) {
    return (double)(part->payload.bytes + SL_FRAME_HEADER_BYTES);
}
int sl_clocked_add(clocked *c, uint64_t at, const body *event, sl_error *error);
/* What the rank has done since c->since. */
void sl_clocked_show(const clocked *c, sl_span_kind what, uint32_t rank, uint32_t to,
                     uint64_t begin);
/* An event of a node; what it sends then is on its way. */
int sl_clocked_deliver(clocked *c, uint32_t rank, const sl_event *event, sl_error *error);
uint32_t sl_clocked_count_there(const clocked *c);

/* ---- changes.c ---- */

/* SL_ENOMEM. */
int sl_changes_open(clocked *c, sl_error *error);
/* CHANGE: a fault's round has come. */
int sl_changes_go_on(clocked *c, sl_error *error);
/* Is anything to happen but records and a change that waits? */
bool sl_changes_await(const clocked *c);
int sl_changes_tell_all(clocked *c, const sl_event *event, sl_error *error);
/* The node begins the view, from a round of its own on. */
int sl_changes_begin_own(clocked *c, uint32_t rank, const sl_node_view *view, uint64_t round,
                         sl_error *error);

#endif
