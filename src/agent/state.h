/* state.h - what the agent's own files share: the agent, and its side of each neighbour.
 *
 * opening.c puts an agent together; agent.c drives rounds; neighbour.c speaks the protocol on each
 * connection. All of it runs on the loop's thread.
 */
#ifndef SL_AGENT_STATE_H
#define SL_AGENT_STATE_H

#include <stdbool.h>

#include "agent/fabric.h"
#include "agent/loop.h"
#include "agent/worker.h"
#include "starling/agent.h"
#include "wire/checksum.h"
#include "wire/frame.h"

typedef struct neighbour {
    sl_agent *agent;
    uint32_t rank;
    sl_link *link; /* NULL between attempts to connect */
    bool connected;
    bool agreed; /* its HELLO came and equals ours */
    bool bye_sent, bye_received;
    bool told; /* ABORT has been sent */
    double next_attempt_s, heard_s, sent_s;
    uint32_t next_part;     /* of this message's parts, the next one to send */
    uint64_t data_sent;     /* frames since the start */
    uint64_t credit;        /* data frames that it lets us send, since the start */
    uint64_t data_consumed; /* its data frames that we are through with */
    uint64_t credit_told;   /* what it knows of our credit */
} neighbour;

typedef enum agent_phase {
    PHASE_CONNECTING, /* until every neighbour has agreed */
    PHASE_TRAINING,
    PHASE_GOODBYE, /* the last round is done: report it, tell everyone, wait for everyone */
    PHASE_OVER     /* done, or `error` says why not */
} agent_phase;

struct sl_agent {
    sl_agent_settings settings;
    const sl_roster *roster;
    agent_phase phase;
    bool parting;                  /* over, and telling the neighbours why */
    sl_error error;                /* why the run ends early */
    char cause[SL_FRAME_TEXT_MAX]; /* the same for the neighbours: names the edge where it began */
    sl_loop *loop;
    sl_fabric *fabric;
    sl_worker *worker;
    sl_node *node;
    const sl_vec_ops *vec; /* where its vectors are */
    sl_hello hello;
    int stop_descriptor;
    int notify_fd; /* signalled when a device has done what the node waits for */
    double now_s;  /* when the loop last looked */
    bool tick_due;
    bool
        retry_soon; /* a send found no room: nothing will wake us, so look again in a millisecond */
    uint32_t window;          /* receive buffers for data, per neighbour */
    uint32_t receive_buffers; /* for control frames too */
    bool direct;              /* payloads leave from and come to the device's memory */
    size_t header_bytes;      /* of a data frame, before its payload */
    uint8_t *payload_memory;  /* (neighbour_count, receive_buffers, payload_stride) on the device;
                                 NULL: payloads come to the host */
    size_t payload_stride;
    sl_plan plan;

    neighbour *neighbours; /* (neighbour_count) sorted by rank */
    uint32_t neighbour_count;

    /* The message under way: its parts are encoded once and sent to every out-neighbour. */
    bool publishing;
    sl_outbound message;
    neighbour **receivers; /* (receiver_count) */
    uint32_t receiver_count;
    uint32_t encoded;
    sl_payload *payloads;    /* (parts) */
    uint64_t *payload_sums;  /* (parts) 0 where they are direct */
    uint32_t *payload_users; /* (parts) neighbours that it has not left for yet */

    double began_s, publish_s, exchange_ended_s, gradient_ended_s;
    double
        busy_since_gradient_s; /* encode and combine since the gradient of this round was there */
    double progress_s;         /* when the node last made a step */
    double deadline_s;         /* end of the phase, where it has one */
    sl_record record;
    sl_agent_counters counters;
};

/* neighbour.c */
const sl_fabric_handlers *sl_neighbour_handlers(void);
neighbour *sl_neighbour_find(sl_agent *agent, uint32_t rank);
/* Connects where it is our turn and time; keeps silence from being mistaken for death; notices the
 * silent. */
void sl_neighbour_tick(neighbour *n);
/* Sends the next part of the message under way. False: nothing to send, no credit or no room. */
bool sl_neighbour_send_part(neighbour *n);
/* A receive buffer of its data is free again. */
void sl_neighbour_consumed(neighbour *n, uint8_t *buffer);
/* Tells it why this agent ends, if need be once it is connected. False: it is gone, and there is
 * nothing left to do. */
bool sl_neighbour_part(neighbour *n, const char *cause);
/* True when the frame is on its way. */
bool sl_neighbour_send_control(neighbour *n, sl_frame_type type, const void *payload, size_t bytes);

/* agent.c */
/* The loop, which wakes for the fabric, the worker, a request to stop, the device's notify_fd, and
 * time.
 */
int sl_agent_open_loop(sl_agent *agent, sl_error *error);
/* Ends the run: the first call counts. `cause` is what the neighbours are told. */
void sl_agent_fail(sl_agent *agent, int code, const char *text, const char *cause);
void sl_agent_deliver(sl_agent *agent, const sl_event *event);
/* `part` has left for one more neighbour. */
void sl_agent_part_left(sl_agent *agent, uint32_t part);
/* False: a device is still at it, and notify_fd will be signalled; or it cannot be encoded, and the
 * run is over. */
bool sl_agent_encode_next(sl_agent *agent);

#endif
