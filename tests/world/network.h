/* network.h - what network.c (the world's side) and fabric.c (the agent's) share. */
#ifndef NETWORK_H
#define NETWORK_H

#include "virtual.h"

enum { SLOTS_MAX = 192, BUFFERS_MAX = 64, FROM_PORT = 7000, PORTS_MAX = 64 };

/* A message on its way, or that a socket has taken and the owner has not. */
typedef struct message {
    struct message *next;
    const void *payload; /* the sender's, until it has left */
    size_t payload_bytes, bytes;
    uint64_t payload_sum;
    bool data;
    uint32_t cookie;
    uint8_t body[]; /* (bytes) */
} message;

typedef struct queue {
    message *first, **end;
    size_t count, bytes;
} queue;

/* One direction of a wire, from one end to the other. */
typedef struct lane {
    queue offered; /* the sender's memory is in use */
    queue flying;  /* left; not arrived */
    queue arrived; /* in the receiver's socket */
    queue leaving; /* sent to `flying`, and the sender is not told yet: no bodies */
    double last_arrival_s, last_leave_s;
    uint32_t held_up; /* arrivals that a partition holds up */
    uint64_t bytes_arrived;
} lane;

typedef struct wire_end {
    process *process;          /* NULL: nobody's */
    sl_connection *connection; /* NULL: closed, or not accepted yet */
    uint32_t rank;
} wire_end;

typedef struct wire {
    struct wire *next;
    wire_end ends[2]; /* 0 has dialed */
    lane lanes[2];    /* from end i to the other */
    uint8_t greeting[SL_GREETING_BYTES];
    bool established;
    bool dead;      /* nothing arrives any more */
    bool half_open; /* dead, but who sends hears of it */
    bool stranger;  /* nobody's process has dialed */
    int says;       /* what a stranger says: of its kinds */
    double came_s;  /* when it was accepted */
} wire;

typedef struct slot {
    sl_buffer base; /* first: the agent hands its address back */
    bool held;
} slot;

struct sl_connection {
    const sl_connection_handlers *handlers;
    void *owner;
    wire *wire; /* NULL: none, or none any more */
    int end;    /* of the wire, its own */
    bool becomes_connected, established, down, closed, first_used;
    const char *reason; /* why it is to go down; NULL: it is not */
    uint32_t send_count, sending;
    queue left; /* completions of sends that the owner has not seen */
    sl_buffer first;
    sl_pool *pool; /* NULL: nothing is granted */
};

struct sl_pool {
    void *owner;
    sl_connection *connection; /* that its buffers are posted to; NULL: none */
    uint32_t count;
    size_t bytes;
    slot slots[BUFFERS_MAX];
};

struct sl_fabric {
    sl_fabric_settings settings;
    process *process;
    int fd;
    uint16_t port;
    wire *requests[SLOTS_MAX];
    int request_count;
    sl_connection *slots[SLOTS_MAX]; /* NULL: free */
    int slot_count;                  /* those from here on are free */
};

void queue_push(queue *q, message *m);
message *queue_pop(queue *q);
void queue_clear(queue *q);

/* network.c, for fabric.c */
int network_listen(sl_fabric *fabric, uint16_t port);
wire *network_dial(sl_connection *c, process *p, uint16_t port,
                   const uint8_t greeting[SL_GREETING_BYTES]);
/* Whoever has asked is told so. */
void network_accept(wire *w, sl_connection *c);
void network_refuse(wire *w);
void network_send(wire *w, int from, message *m);
/* There is room in the receiver's socket again. */
void network_pump(wire *w, int from);
/* The end closes its connection. */
void network_hang_up(wire *w, int end);

#endif
