/* neighbour.h - one neighbour: the protocol on the connection to it.
 *
 * Knows frames, connections and the outbox, not the agent: what a frame means for the run is
 * returned.
 */
#ifndef SL_NEIGHBOUR_H
#define SL_NEIGHBOUR_H

#include <stdbool.h>

#include "agent/channel.h"
#include "agent/guard.h"
#include "agent/heartbeat.h"
#include "agent/kept.h"
#include "agent/outbox.h"
#include "starling/agent.h"
#include "wire/frame.h"
#include "world/fabric.h"

enum { SL_REFUSAL_MAX = 320 };
#define SL_ANY_HEIR UINT64_MAX

/* This agent's side of all its connections. */
typedef struct sl_side {
    sl_fabric *fabric;
    const sl_roster *roster;
    const sl_vec_ops *vec;                  /* where the node's vectors are */
    const sl_connection_handlers *handlers; /* of connections to neighbours */
    sl_hello hello;
    char *words;          /* hello.settings, then hello.layout, as they are sent; registered */
    uint64_t incarnation; /* of this process */
    bool trains;          /* opening is over: neighbours' other incarnations are refused */
    bool unbegun;         /* this agent ends before any round, or with one that does */
    bool goes_on;         /* a neighbour that is lost does not end the run */
    uint32_t ranks;       /* that the run may ever have */
    bool shares;          /* training samples are the members': who joins brings none */
    bool joins;           /* this process takes the place of one that is lost */
    uint32_t rank;
    double now_s;      /* when the loop last looked */
    uint64_t round;    /* under way, for errors */
    uint64_t exchange; /* the latest that the node has begun */
    uint32_t view;     /* number of the view that the node is in; 0: in none yet */
    bool meets;        /* neighbours want to know it at once */
    sl_heartbeat says; /* of this agent, now */
    uint64_t news;     /* how often that has changed in more than times */
    bool varies;       /* the next exchange has other neighbours */
    double timeout_s, connect_timeout_s, reconnect_s;
    uint32_t window;     /* receive buffers for data, per neighbour */
    uint32_t told_every; /* half of what a neighbour with vectors on the host sends ahead: after
                            so many frames it is told what came, and what it may send */
    uint32_t receive_buffers; /* for control frames too */
    size_t part_bytes_max;
    bool direct;             /* payloads leave from and come to the device's memory */
    size_t header_bytes;     /* of a data frame, before its payload */
    uint8_t *payload_memory; /* (neighbours, receive_buffers, payload_stride) on the device; NULL:
                                payloads come to the host */
    size_t payload_stride;
    sl_guard guard;  /* what its connections prove, and are sealed with */
    sl_kept kept;    /* copies of parts that may have to be sent again */
    bool retry_soon; /* a send found no room: nothing will wake the loop, so it looks again in a
                        millisecond */
    sl_agent_counters counters;
} sl_side;

enum { SL_REFUSALS = 2 };

/* Counts of frames are of data frames, since the start, over all connections. */
typedef struct sl_neighbour {
    sl_side *side;
    uint32_t index, rank;
    bool near;                 /* the node exchanges with it; others are there for when it will */
    sl_pool *pool;             /* receive buffers */
    sl_connection *connection; /* NULL between attempts to connect */
    sl_channel *channel;       /* on it; NULL: nothing is proved or sealed */

    /* of this connection */
    bool dialed; /* by this agent */
    bool connected;
    bool hello_sent;
    bool agreed;        /* its HELLO came and equals ours */
    bool bye_sent;      /* and repeated on the next */
    bool told;          /* ABORT has been sent */
    bool asked;         /* to tell at once what has come */
    bool awaited;       /* this agent waits for it (waits.c) */
    uint32_t view_told; /* the view that this agent is in, as it was told last; 0: it was not */
    double dialed_s, heard_s, sent_s;
    uint64_t bytes_heard;       /* by its socket, at the last look; 0: none since a frame */
    uint64_t exchange_told;     /* of this agent's; see `exchange` */
    uint64_t open_told;         /* likewise; see `open` */
    uint64_t news_told;         /* of side->news */
    bool wait_told;             /* in that, this agent waited */
    double news_told_s, said_s; /* the last HEARTBEAT to it, and from it; 0: none came */
    sl_heartbeat said;          /* in that */

    /* of all connections to this incarnation */
    uint64_t incarnation; /* 0: it has not agreed yet */
    uint64_t process;     /* likewise, as epochs call it: SL_FOUNDER: it began with
                             the run */
    uint64_t attempt;     /* the latest of its attempts to connect */
    bool bye_received;
    bool parted;            /* both have said BYE, and it closed the connection */
    bool mutual;            /* in the step of the last message to it, it sends its own */
    uint64_t first;         /* number of the frame of part 0 of the message in the outbox */
    uint64_t sent;          /* frames handed to the connection that it has, or will have */
    uint64_t sent_ever;     /* the same, also if they are to be sent again */
    uint64_t left;          /* of those sent, out of this agent's memory */
    uint64_t come;          /* of those, it said that they came */
    uint64_t given_up;      /* the first so many are not sent again */
    uint32_t *places;       /* (window) of frames sent that may not have come, by number: in
                               side->kept; SL_KEPT_NOWHERE: in the outbox */
    uint64_t credit;        /* frames that it lets us send */
    uint64_t received;      /* its frames */
    uint64_t received_told; /* what it knows of them */
    uint64_t credit_told;   /* what it knows of our credit */
    uint32_t held;          /* buffers of frames that are not released yet */
    uint64_t meets;         /* its MEET frames */
    uint64_t meets_heard;   /* of ours, when it connected last */
    uint64_t meets_sent;    /* of ours, that it has heard or will */
    uint64_t exchange;      /* the latest that it is known to have begun */
    double exchange_s;      /* since when that is known */
    uint64_t open;          /* the latest that it is in, or next to be in, as far as is known */
    uint32_t view;          /* that it is in, as it said last; 0: in none */

    bool renewed; /* it is another process than before, and the node has not heard of it */

    /* of its loss (members.c) */
    bool gone;          /* it counts as lost, until it is reached again */
    uint64_t followed;  /* it has said that another process has this agent's rank, in the epoch of
                           this number; 0: no */
    uint64_t convicted; /* the process whose message made no sense: it is not taken back */
    bool superseded;    /* while it was away another process came that wants its rank */
    uint64_t heir;      /* incarnation that may take its place; 0: none, SL_ANY_HEIR: any */
    uint32_t refusals;  /* of its port, one after the other; SL_REFUSALS: its process has ended */
    double sought_s;    /* since when it is looked for, for the first time; 0: it is not */
    uint8_t *letter;    /* (letter_bytes) of which letter_come have come */
    size_t letter_bytes, letter_come;

    /* of this agent's attempts */
    uint64_t attempts;
    uint32_t turned_away; /* one after the other, before anything was proved: it backs off */
    bool back;            /* a connection was agreed on, and the agent has not heard of it */
    bool doubted;         /* somebody greeted as this neighbour with another configuration */
    bool ahead;           /* it has said that it trains already, and that this agent may join it */
    double lost_s;        /* when the connection broke; 0: it has not, or there is another one */
    double next_attempt_s;
    sl_error lost;                 /* why, with edge and round */
    char refusal[SL_REFUSAL_MAX];  /* why it is not here yet; empty: nothing came */
    char cause[SL_FRAME_TEXT_MAX]; /* what its last ABORT said; "": none has come */
    sl_frame_abort ends;           /* and of what that was the cause */
} sl_neighbour;

/* Opens what its connections share. The caller has set side, index and rank. */
int sl_neighbour_open(sl_neighbour *n, sl_error *error);
void sl_neighbour_close(sl_neighbour *n);
/* Who connects: of two neighbours the higher rank. */
bool sl_neighbour_is_dialed(const sl_neighbour *n);
/* Is it in the roster? */
bool sl_neighbour_has_address(const sl_neighbour *n);
/* Have members agreed on another process of its rank than this one, as epochs call it? */
bool sl_neighbour_has_other(const sl_neighbour *n, uint64_t process);
/* How epochs call the process that says this. */
uint64_t sl_standing_process(const sl_standing *theirs);
/* Is it lost, and not only silent: its port refuses, or it has none that could be asked? */
bool sl_neighbour_is_dead(const sl_neighbour *n);
/* How long a broken connection is waited for. */
double sl_side_return_s(const sl_side *side);
/* Of a connection that this agent makes. */
sl_passage sl_side_passage(const sl_side *side, uint32_t to);
/* What differs between two agents that should run the same experiment, as a sentence; false:
 * nothing. */
bool sl_hello_differs(const sl_side *side, const sl_hello *theirs, uint32_t peer,
                      char text[SL_REFUSAL_MAX]);
/* This side's HELLO, on any connection; completes *frame. As sl_connection_send. */
int sl_side_send_hello(const sl_side *side, sl_channel *channel, sl_connection *connection,
                       const sl_standing *standing, sl_frame *frame);

/* Connects where it is this agent's turn, and time. */
void sl_neighbour_dial_if_due(sl_neighbour *n);
/* May this neighbour go on where it stands? If not, why. Counts of another process of this agent
 * become those of this one. */
bool sl_neighbour_may_go_on(sl_neighbour *n, sl_standing *theirs, char text[SL_REFUSAL_MAX]);
/* Takes a connection and its channel over, on which a HELLO came that equals ours; older ones are
 * closed. */
void sl_neighbour_adopt(sl_neighbour *n, sl_connection *connection, sl_channel *channel,
                        bool connected, const sl_standing *theirs);
void sl_neighbour_connected(sl_neighbour *n);
/* What came. */
typedef enum sl_arrived {
    SL_ARRIVED_NOTHING, /* that is not done already */
    SL_ARRIVED_DATA,    /* *event is for the node, and the buffer its token */
    SL_ARRIVED_CALL,    /* *frame is MEET, WANT or SUM; the caller releases the buffer */
    SL_ARRIVED_CUT,     /* *frame is CUT; likewise */
    SL_ARRIVED_LETTER,  /* *frame is LETTER; likewise */
    SL_ARRIVED_MODEL,   /* *frame is FETCH or MODEL; likewise */
    SL_ARRIVED_BROKEN   /* nothing that it sent: the connection is lost, *error says why */
} sl_arrived;
/* Looks at a message: sl_arrived, or negative: the run ends. */
int sl_neighbour_take(sl_neighbour *n, sl_buffer *buffer, size_t bytes, sl_event *event,
                      sl_frame *frame, sl_error *error);
/* It is lost: of what was sent and may not have come, nothing is sent again. */
void sl_neighbour_abandon(sl_neighbour *n);
/* Forgets the connection. `why` is kept until it has agreed. */
void sl_neighbour_drop(sl_neighbour *n, const char *why);

/* ---- alive.c ---- */

/* How long it may be silent. */
double sl_neighbour_patience_s(const sl_neighbour *n);
/* The keys that say so, and how long a broken connection is waited for. */
const char *sl_neighbour_silence_key(const sl_neighbour *n);
const char *sl_neighbour_return_key(const sl_neighbour *n);
/* Has it said lately what it does? */
bool sl_neighbour_has_said(const sl_neighbour *n);
/* Sends heartbeats, notices silence: negative when it has lasted too long. */
int sl_neighbour_tick(sl_neighbour *n, sl_error *error);

/* ---- sending.c ---- */

/* How many data frames it may have sent. */
uint64_t sl_neighbour_credit(const sl_neighbour *n);
/* Nothing, where there is no room: the next tick tries again. */
void sl_neighbour_say_hello(sl_neighbour *n);
/* Tells how many data frames came, and may come, where that is due. */
void sl_neighbour_tell_counts(sl_neighbour *n);
/* Tells that this agent is in this exchange, or through with the one before: where side->varies, it
 * gets no more than the first parts of a message until it says so. */
void sl_neighbour_tell_open(sl_neighbour *n, uint64_t exchange);
/* A data frame has left this agent's memory. */
void sl_neighbour_left(sl_neighbour *n);
/* Is this part of the message in the outbox out of this agent's memory? Did it come? */
static inline bool sl_neighbour_part_left(const sl_neighbour *n, uint32_t part) {
    return n->left > n->first + part;
}
static inline bool sl_neighbour_part_came(const sl_neighbour *n, uint32_t part) {
    return n->come > n->first + part;
}
/* Is it what keeps the next part of the message in the outbox from being overwritten? */
bool sl_neighbour_holds_up(const sl_neighbour *n, const sl_outbox *outbox);
/* From now on this part, which may not have come, is sent again from side->kept. */
void sl_neighbour_keep(sl_neighbour *n, uint32_t part, uint32_t place);
/* A data frame's buffer is free again. */
void sl_neighbour_consumed(sl_neighbour *n, sl_buffer *buffer);
/* Sends the next part: one that has to be sent again, or the outbox's. 1: sent; 0: nothing to send,
 * no credit, or no room; negative: it could not be encoded. */
int sl_neighbour_send_part(sl_neighbour *n, sl_outbox *outbox, sl_error *error);
/* True when the frame is on its way. The payload may go then. */
bool sl_neighbour_send_control(sl_neighbour *n, sl_frame_type type, const void *payload,
                               size_t bytes);
/* The same for a MEET, WANT or CUT frame. */
bool sl_neighbour_send_frame(sl_neighbour *n, const sl_frame *frame);
/* The same for a LETTER frame, whose payload may go. */
bool sl_neighbour_send_copy(sl_neighbour *n, const sl_frame *frame, const void *payload);
/* The same for a SUM or MODEL frame, whose payload may go when the neighbour has said that it came.
 */
bool sl_neighbour_send_payload(sl_neighbour *n, const sl_frame *frame, const void *payload);
/* Tells it why this agent ends. */
void sl_neighbour_tell(sl_neighbour *n, const char *cause);
/* The same: that this agent goes on without it. */
void sl_neighbour_tell_dropped(sl_neighbour *n, const char *why);
/* The first `count` data frames have come to it. */
void sl_neighbour_came(sl_neighbour *n, uint64_t count);

#endif
