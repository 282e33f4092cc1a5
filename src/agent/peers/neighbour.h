/* neighbour.h - one neighbour: the protocol on the connection to it.
 *
 * Knows frames, connections and the outbox, not the agent: what a frame means for the run is
 * returned.
 */
#ifndef SL_NEIGHBOUR_H
#define SL_NEIGHBOUR_H

#include <stdbool.h>

#include "agent/peers/admission.h"
#include "agent/peers/channel.h"
#include "agent/peers/heartbeat.h"
#include "agent/peers/outbox.h"
#include "arena/arena.h"
#include "starling/agent.h"
#include "stream/stream.h"
#include "wire/frame.h"
#include "world/fabric.h"

enum { SL_REFUSAL_MAX = 320 };
#define SL_ANY_SUCCESSOR UINT64_MAX

/* Fixed when the agent is opened. */
typedef struct sl_side_limits {
    double timeout_s, connect_timeout_s, reconnect_s;
    uint32_t window;     /* receive buffers for data, per neighbour */
    uint32_t told_every; /* half of what a neighbour with vectors on the host sends ahead: after
                            so many frames it is told what came, and what it may send */
    uint32_t receive_buffers; /* for control frames too */
    size_t part_bytes_max;
    size_t header_bytes; /* of a data frame, before its payload */
    size_t payload_stride;
} sl_side_limits;

/* What this agent is at. */
typedef struct sl_side_now {
    uint64_t round;     /* under way, for errors */
    uint64_t exchange;  /* the latest that the node has begun */
    uint32_t view;      /* number of the view that the node is in; 0: in none yet */
    bool trains;        /* opening is over: neighbours' other incarnations are refused */
    bool unbegun;       /* it ends before any round, or with one that does */
    bool varies;        /* the next exchange has other neighbours */
    bool retry_soon;    /* a send found no room: nothing will wake the loop, so it looks again in
                           a millisecond */
    bool out_of_memory; /* for what is to be sent */
    sl_heartbeat says;
    uint64_t news; /* how often that has changed in more than times */
} sl_side_now;

/* This agent's side of all its connections. */
typedef struct sl_side {
    sl_fabric *fabric;
    const sl_roster *roster;
    const sl_vec_ops *vec;                  /* where the node's vectors are */
    const sl_connection_handlers *handlers; /* of connections to neighbours */
    sl_hello hello;
    char *words; /* hello.settings, then hello.layout, as they are sent; registered */
    uint32_t rank;
    uint64_t incarnation; /* of this process */
    uint32_t ranks;       /* that the run may ever have */
    bool goes_on;         /* a neighbour that is lost does not end the run */
    bool shares;          /* training samples are the members': a joining process brings none */
    bool joins;           /* this process takes the place of one that is lost */
    bool meets;           /* neighbours want to know at once which exchange it is in */
    bool direct;          /* payloads leave from and come to the device's memory */
    sl_side_limits limits;
    uint8_t *payload_memory; /* (neighbours, receive_buffers, payload_stride) on the device; NULL:
                                payloads come to the host */
    sl_guard guard;          /* what its connections prove, and are sealed with */
    sl_copies copies;        /* of parts that may have to be sent again, or are read here */
    sl_arena *arena;         /* where these are; NULL: nobody else reads them */
    sl_arena *published;     /* of the device: messages leave from there, while all who exchange
                                with this agent read it; two take turns. NULL: there is none */
    const sl_share_ops *device; /* whose arenas are read where they are; NULL: none */
    size_t published_bytes;
    uint32_t turn;  /* of the two, the latest that was taken */
    size_t shared;  /* bytes of `arena` that are taken */
    bool has_rooms; /* there the node's model is, too, and moves; or what the task lends */
    float *rooms;   /* these (SL_NODE_ROOMS, room_bytes) */
    size_t room_bytes;
    bool reads;          /* neighbours' arenas, where it can */
    bool reads_in_place; /* and what is there: nothing that would have to be checked first */
    double now_s;        /* when the loop last looked */
    sl_side_now now;
    sl_agent_counters counters;
} sl_side;

enum { SL_REFUSALS = 2 };

/* What both say of what they do. */
typedef struct sl_beats {
    uint64_t news_told; /* of side->now.news */
    bool waits_told;    /* in that, this agent waited */
    double told_s;      /* the last HEARTBEAT to it */
    double said_s;      /* the last one from it; 0: none came */
    sl_heartbeat said;
} sl_beats;

/* Of one connection. */
typedef struct sl_neighbour_link {
    sl_connection *connection; /* NULL between attempts to connect */
    sl_channel *channel;       /* on it; NULL: nothing is proved or sealed */
    bool connected;
    bool hello_sent;
    bool agreed; /* its HELLO came and equals ours */
    bool abort_sent;
    bool asked;            /* to tell at once what has come */
    sl_mailbox *mailbox;   /* where its memory comes; NULL: it is not wanted, or has come */
    sl_memory_offer offer; /* this agent's to it; bytes 0: none */
    bool offers;           /* it is to be told of that */
    bool awaits;           /* it was, and data waits for its answer */
    sl_mailbox_name to;    /* where it was put */
    bool answers;          /* its offer is to be answered */
    uint64_t attempt;      /* this agent's, to make it; 0: the neighbour made it */
    uint32_t view_told;    /* the view that this agent is in, as it was told last; 0: it was not */
    double dialed_s, heard_s, sent_s;
    uint64_t bytes_heard;   /* by its socket, at the last look; 0: none since a frame */
    uint64_t exchange_told; /* of this agent's; see sl_process.exchange */
    sl_beats beats;
} sl_neighbour_link;

/* Of the neighbour's process, over all connections to it. */
typedef struct sl_process {
    uint64_t incarnation; /* 0: it has not agreed yet */
    uint64_t id;          /* likewise, as views call it: SL_FOUNDER: it began with the run */
    uint64_t attempt;     /* the latest of its attempts to connect */
    bool bye_sent, bye_received;
    bool parted;          /* both have said BYE, and it closed the connection */
    bool convicted;       /* its message made no sense: it is not taken back */
    uint64_t exchange;    /* the latest that it is known to have begun */
    double exchange_s;    /* since when that is known */
    uint64_t open;        /* the latest that it is in, or next to be in, as far as is known */
    uint64_t open_told;   /* likewise, of this agent, as READY has told it */
    uint32_t view;        /* the latest that it is known to have been in; 0: none */
    const sl_arena *lent; /* what it was offered last */
    bool lends;           /* it reads that, over all connections */
    uint32_t row;         /* parts that a reference to there may be of, at most */
    bool borrows;         /* this agent reads its memory */
    sl_frame_abort ends;  /* of what `cause` was the cause */
    char cause[SL_FRAME_TEXT_MAX];    /* what its last ABORT said; "": none has come */
    char why_apart[SL_ARENA_WHY_MAX]; /* why one of the two does not read the other's memory; "": it
                                         does, or that was not asked for */
    bool apart_told;                  /* that was said */
} sl_process;

/* Of its absence: since a connection broke, or the neighbour is looked for. */
typedef struct sl_absence {
    bool gone;       /* it counts as lost, until it is reached again */
    bool superseded; /* meanwhile another process came that wants its rank */
    bool left;       /* it was let go: a view without it, by which nobody was lost, was agreed on */
    uint64_t followed; /* it has said that another process has this agent's rank, in the view of
                          this number; 0: no */
    uint32_t refusals; /* of its port, one after the other; SL_REFUSALS: its process has ended */
    double sought_s;   /* since when it is looked for, for the first time; 0: it is not */
    double lost_s;     /* when the connection broke; 0: it has not */
    sl_error lost;     /* why, with edge and round */
} sl_absence;

/* Of this agent's attempts to reach it. */
typedef struct sl_dialing {
    uint64_t count;
    uint32_t turned_away; /* one after the other, before anything was proved: it backs off */
    bool doubted;         /* somebody greeted as this neighbour with another configuration */
    bool ahead;           /* it has said that it trains already, and that this agent may join it */
    double next_s;
    char refusal[SL_REFUSAL_MAX]; /* why it is not here yet; empty: nothing came */
} sl_dialing;

/* A letter of which some frames have come. */
typedef struct sl_letter_part {
    uint8_t *bytes; /* (size) of which `come` have come */
    size_t size, come;
} sl_letter_part;

typedef struct sl_neighbour {
    sl_side *side;
    uint32_t index, rank;
    sl_pool *pool; /* receive buffers */

    sl_neighbour_link link;
    sl_stream stream;
    sl_arena_map *map, *former; /* its memory; what came of a process before may be in `former` */
    sl_process process;
    sl_absence absence;
    sl_dialing dialing;
    sl_letter_part letter;
    sl_agent_traffic traffic;

    double missed_s;    /* since when it takes no part, for those who look; 0: it does */
    bool near;          /* the node exchanges with it; others are there for when it will */
    uint64_t successor; /* incarnation that may take its place; 0: none, SL_ANY_SUCCESSOR: any */
    uint64_t first;     /* data frames to it before part 0 of the message in the outbox */
    uint32_t row;       /* parts of that message in one frame, but for the last */
    bool mutual;        /* in the step of that message, it sends its own */
    bool awaited;       /* this agent waits for it (waits.c) */
    sl_span out, in;    /* messages to it and from it that are not told yet (tracing.c) */
    bool back;          /* a connection was agreed on, and the agent has not heard of it */
    bool renewed;       /* likewise, that it is another process than before */
} sl_neighbour;

/* Opens what its connections share. The caller has set side, index and rank. */
int sl_neighbour_open(sl_neighbour *n, sl_error *error);
void sl_neighbour_close(sl_neighbour *n);
/* Does this agent connect to it? Of two neighbours the higher rank does. */
bool sl_neighbour_is_dialed(const sl_neighbour *n);
/* Is it in the roster? */
bool sl_neighbour_has_address(const sl_neighbour *n);
/* Have members agreed on another process of its rank than this one, as views call it? */
bool sl_neighbour_has_other(const sl_neighbour *n, uint64_t process);
/* How views call the process that says this. */
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
    SL_ARRIVED_CALL,    /* *frame is BARRIER, SUM_CREDIT or SUM; the caller releases the buffer */
    SL_ARRIVED_CHECKPOINT, /* *frame is CHECKPOINT; likewise */
    SL_ARRIVED_MEMBERSHIP, /* *frame is MEMBERSHIP; likewise */
    SL_ARRIVED_MODEL,      /* *frame is FETCH or MODEL; likewise */
    SL_ARRIVED_ACCOUNT,    /* *frame is ACCOUNT; likewise */
    SL_ARRIVED_BROKEN      /* nothing that it sent: the connection is lost, *error says why */
} sl_arrived;
/* Looks at a message: sl_arrived, or negative: the run ends. */
int sl_neighbour_take(sl_neighbour *n, sl_buffer *buffer, size_t bytes, sl_event *event,
                      sl_frame *frame, sl_error *error);
/* Forgets the connection. `why` is kept until it has agreed. */
void sl_neighbour_drop(sl_neighbour *n, const char *why);

/* ---- memory.c ---- */

/* Its HELLO names a mailbox: this agent's memory is put there. */
void sl_neighbour_hand_over(sl_neighbour *n, const sl_mailbox_name *to);
/* It has put its own into this agent's. */
void sl_neighbour_hear_offer(sl_neighbour *n, const uint8_t payload[SL_OFFER_BYTES]);
/* It has told whether it reads what was offered: of so many frames at once, each of so many parts.
 */
void sl_neighbour_hear_answer(sl_neighbour *n, uint32_t read_at_once, uint32_t row);
/* How many parts may a reference to its memory be of? */
uint32_t sl_neighbour_row(const sl_neighbour *n);
/* Does it read this where it is? */
bool sl_neighbour_reads(const sl_neighbour *n, const void *payload);
/* Device memory for a message of this agent, which has these neighbours; NULL: it has to leave from
 * the host, as some of them do not read it there; or *waits is set: some have not read the last but
 * one, and will. */
void *sl_side_publish(sl_side *side, const sl_neighbour *neighbours, uint32_t count, size_t bytes,
                      bool *waits);
/* Where the data is that has come, if it is all there; else NULL. */
const void *sl_neighbour_find_data(const sl_neighbour *n, const sl_frame *frame, sl_buffer *buffer,
                                   size_t *bytes, bool *on_device);
/* Brings the payload of another frame that refers to it to where it would have come to. False: it
 * is not there, or not any more. */
bool sl_neighbour_fetch(const sl_neighbour *n, sl_frame *frame, uint8_t *payload);
/* Memory (bytes) SL_VEC_ALIGNMENT in the arena, until that is closed; NULL: there is no room. */
void *sl_side_share(sl_side *side, size_t bytes);
/* Is this there? */
bool sl_side_shares(const sl_side *side, const void *memory);
/* Rooms of the model that nobody needs, a bit each; none, where nobody would read the next one. */
unsigned sl_side_free_rooms(const sl_neighbour *neighbours, uint32_t count);
/* Makes a frame one that says where its payload is; returns that. */
void sl_neighbour_refer(const sl_neighbour *n, sl_frame *frame, const void *payload,
                        uint8_t out[SL_REFERENCE_BYTES]);

/* ---- keepalive.c ---- */

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

/* Nothing, where there is no room: the next tick tries again. */
void sl_neighbour_say_hello(sl_neighbour *n);
/* Tells what memory is offered, and whether what it offered is read, once it can be told. */
void sl_neighbour_tell_memory(sl_neighbour *n);
/* Tells how many data frames came, and may come, where that is due. */
void sl_neighbour_tell_counts(sl_neighbour *n);
/* Tells that this agent is in this exchange, or through with the one before: where
 * side->now.varies, it gets no more than the first parts of a message until it says so. */
void sl_neighbour_tell_open(sl_neighbour *n, uint64_t exchange);
/* The data frame with this part of the message in the outbox. */
static inline uint64_t sl_neighbour_frame_of(const sl_neighbour *n, uint32_t part) {
    return n->first + part / n->row;
}
/* Is it out of this agent's memory? Did it come? Is there a copy of it? */
static inline bool sl_neighbour_part_left(const sl_neighbour *n, uint32_t part) {
    return n->stream.left > sl_neighbour_frame_of(n, part);
}
static inline bool sl_neighbour_part_came(const sl_neighbour *n, uint32_t part) {
    return n->stream.acknowledged.data > sl_neighbour_frame_of(n, part);
}
static inline bool sl_neighbour_part_is_copied(const sl_neighbour *n, uint32_t part) {
    return sl_stream_has_copy(&n->stream, sl_neighbour_frame_of(n, part));
}
/* Has it all left this agent's memory that has begun to? */
static inline bool sl_neighbour_has_left(const sl_neighbour *n) {
    return n->stream.left >= n->stream.sent.data;
}
/* Is it what keeps the next part of the message in the outbox from being overwritten? */
bool sl_neighbour_holds_up(const sl_neighbour *n, const sl_outbox *outbox);
/* It gets no more data. Once. */
void sl_neighbour_say_bye(sl_neighbour *n);
/* Has that left on the connection that there is? */
static inline bool sl_neighbour_bye_has_left(const sl_neighbour *n) {
    return n->process.bye_sent && n->stream.sent.frames == n->stream.numbered.frames;
}
/* A data frame's buffer is free again. */
void sl_neighbour_consumed(sl_buffer *buffer);
/* Sends what is numbered and has not been, as far as there is room. True: something was. */
bool sl_neighbour_flush(sl_neighbour *n);
/* May it be sent one more data frame? */
bool sl_neighbour_takes_data(const sl_neighbour *n);
/* Sends it one, from this place in side->copies, or from where it is. False: out of memory. */
bool sl_neighbour_post(sl_neighbour *n, const sl_frame *frame, const void *payload, uint32_t copy);
/* Sends the outbox's next part. 1: sent; 0: nothing to send, no credit, or no room; negative: it
 * could not be encoded. */
int sl_neighbour_send_part(sl_neighbour *n, sl_outbox *outbox, sl_error *error);
/* The frame comes to it, after all that were sent before, unless its process is lost. `own`: the
 * payload may go; else it stays until it is acknowledged, or void. False: there is no process, or
 * it is lost. */
bool sl_neighbour_send(sl_neighbour *n, sl_frame frame, const void *payload, bool own);
/* A frame of the connection's own, which may be lost. True: on its way. */
bool sl_neighbour_send_control(sl_neighbour *n, sl_frame frame, const void *payload);
/* Tells it why this agent ends. */
void sl_neighbour_tell(sl_neighbour *n, const char *cause);
/* The same: that this agent goes on without it. */
void sl_neighbour_tell_dropped(sl_neighbour *n, const char *why);
#endif
