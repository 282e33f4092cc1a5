/* state.h - what the files of src/provider share. */
#ifndef SL_PROVIDER_STATE_H
#define SL_PROVIDER_STATE_H

#include <stddef.h>
#include <sys/uio.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "provider/provider.h"

/* libfabric calls tables through pointers that are not const, and changes nothing there. */
#define TABLE(operations) ((void *)&(operations))
#define HOLDER(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* A socket that epoll watches, by edges. */
typedef struct watched {
    void (*happened)(struct watched *watched, uint32_t what);
} watched;

/* One send or receive, in the memory of its context. */
typedef struct operation {
    struct operation *next;
    struct iovec iov[2];
    size_t bytes; /* of the message; of a receive that waits, the room for one */
    size_t done;  /* of them sent or received */
    int error;
    bool receives;
} operation;
_Static_assert(sizeof(operation) <= sizeof(struct fi_context2), "a context holds an operation");

typedef struct operations {
    operation *first, *last;
} operations;

/* Something that the event queue tells, of an endpoint or of whoever asks. */
typedef struct event {
    struct event *next;
    uint32_t kind; /* FI_CONNREQ, FI_CONNECTED, FI_SHUTDOWN; 0: an error */
    bool queued;
    int error;
    struct fid *fid;
} event;

typedef struct endpoint endpoint;
typedef struct asker asker;

typedef struct fabric {
    struct fid_fabric fid;
    struct fid_domain domain;
    struct fid_eq eq;
    struct fid_cq cq;
    sl_provider_settings settings;
    int epoll;
    operations complete;
    event *first_event, *last_event;
    endpoint *ready; /* that may go on without an event */
    asker *dead;     /* whose events may be among those that are looked at */
} fabric;

/* ---- queue.c ---- */

int sl_tcp_watch(fabric *f, int fd, watched *w);
void sl_tcp_close(fabric *f, int fd);
void sl_tcp_complete(fabric *f, operation *o, int error);
void sl_tcp_tell(fabric *f, event *e);
void sl_tcp_forget(fabric *f, event *e);
static inline void append(operations *list, operation *o) {
    o->next = NULL;
    *(list->first == NULL ? &list->first : &list->last->next) = o;
    list->last = o;
}
static inline operation *take_first(operations *list) {
    operation *o = list->first;
    list->first = o->next;
    return o;
}

/* ---- talk.c: what both sides say before there is a connection ---- */

typedef enum talk_kind { GREETING = 1, CHALLENGE, PROOF, WELCOME, REFUSAL } talk_kind;
enum { TALK_HEAD_BYTES = 3 };

typedef struct talk {
    uint8_t greeting[SL_GREETING_BYTES], challenge[SL_CHALLENGE_BYTES];
    uint8_t message[TALK_HEAD_BYTES + SL_PROOF_BYTES_MAX];
    size_t got;
} talk;

/* 1: a message is whole; 0: not yet; negative: a code of libfabric's. Reads nothing beyond it. */
int sl_tcp_talk_read(talk *t, int fd);
talk_kind sl_tcp_talk_heard(const talk *t);
size_t sl_tcp_talk_bytes(const talk *t);
const uint8_t *sl_tcp_talk_payload(const talk *t);
/* The next message is to be read. */
void sl_tcp_talk_go_on(talk *t);
/* 0, or a negative code. */
int sl_tcp_talk_say(int fd, talk_kind kind, const void *payload, size_t bytes);
int sl_tcp_talk_prove(const talk *t, int fd, talk_kind kind, const sl_gate *gate, bool dials);

/* ---- endpoint.c, stream.c: a connection ---- */

enum { STAGE_BYTES = 4096, WHY_MAX = SL_GREETING_WHY_MAX + 32 };

typedef enum endpoint_state { NEW, CONNECTING, GREETS, OPEN, OVER } endpoint_state;

struct endpoint {
    watched watched;
    struct fid_ep fid;
    fabric *fabric;
    int fd; /* -1: none any more */
    endpoint_state state;
    struct sockaddr_storage other;
    talk *talk; /* NULL: it is over, or this side has not dialed */
    bool challenged;
    event connected, ended;
    char why[WHY_MAX]; /* of an error before it was connected */

    operations sends, receives;
    operation *receiving;          /* its message comes */
    bool readable, writable, hung; /* hung: the other side sends no more */
    bool is_ready;
    endpoint *next_ready;
    uint64_t received;
    size_t stage_from, stage_to;
    uint8_t stage[STAGE_BYTES]; /* the heads of messages, and what came with them */
};

int sl_tcp_endpoint_open(fabric *f, struct fi_info *info, struct fid_ep **out, void *context);
/* It is over: reports all that is under way, and why. error: positive; 0: the other side closed. */
void sl_tcp_stream_end(endpoint *e, int error, const char *why);
/* It has no socket any more. */
void sl_tcp_stream_stop(endpoint *e);
extern const struct fi_ops_msg sl_tcp_stream_ops;
/* Moves what can be moved now. */
void sl_tcp_stream_send(endpoint *e); /* what waits */
void sl_tcp_stream_go_on(endpoint *e);
/* It may go on without an event. */
void sl_tcp_stream_ready(endpoint *e);

/* ---- listener.c: who comes ---- */

int sl_tcp_listener_open(fabric *f, struct fi_info *info, struct fid_pep **out, void *context);
/* For FI_CONNREQ: what is told of it. NULL: out of memory. */
struct fi_info *sl_tcp_asker_info(struct fid *handle, const uint8_t **greeting);
/* Its connection goes to an endpoint. */
void sl_tcp_asker_hand_over(struct fid *handle, endpoint *e);
void sl_tcp_askers_bury(fabric *f);

#endif
