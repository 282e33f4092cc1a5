/* fabric_state.h - what fabric.c, connection.c and pool.c share. */
#ifndef SL_FABRIC_STATE_H
#define SL_FABRIC_STATE_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "world/fabric.h"

enum { REGIONS_MAX = 128, IOV_COUNT = 2 };

typedef enum operation_kind { OPERATION_RECEIVE, OPERATION_SEND } operation_kind;

/* One send or receive; `context` first, because the provider hands its address back. */
typedef struct operation {
    struct fi_context2 context;
    operation_kind kind;
    sl_connection *connection;
    sl_buffer *buffer;   /* receive */
    size_t buffer_bytes; /* receive */
    uint8_t *header;     /* send */
    bool data, busy;     /* send */
    uint32_t cookie;     /* send */
} operation;

typedef struct region {
    char *base;
    size_t bytes;
    struct fid_mr *mr; /* NULL where the provider does not ask for it */
} region;

typedef struct pooled {
    sl_buffer base; /* first: it is handed out */
    bool held;      /* handed out and not released */
    bool waits;     /* released, and not posted: those before it in the row come first */
} pooled;

struct sl_pool {
    sl_fabric *fabric;
    const sl_vec_ops *vec;
    void *owner;
    sl_connection *connection; /* that they are granted to; NULL: none */
    pooled *buffers;           /* (count) */
    uint32_t count;
    uint32_t *free; /* (free_count) numbers of those that are neither handed out nor posted;
                       the one freed last is posted first: it is in cache */
    uint32_t free_count, posted, posted_max;
    uint32_t next, waiting; /* in turn: the buffer that is posted next; those that wait for it */
    size_t stride, rest_bytes;
    uint8_t *memory; /* (count, stride) */
    struct fid_mr *mr;
};

struct sl_connection {
    sl_fabric *fabric;
    sl_connection *next; /* of those that are open, or closed */
    const sl_connection_handlers *handlers;
    void *owner;
    struct fid_ep *endpoint;
    bool established, down;
    operation first; /* receives the first message */
    sl_buffer first_buffer;
    uint8_t first_bytes[SL_FIRST_MESSAGE_MAX];
    struct fid_mr *first_mr;
    sl_pool *pool;       /* NULL before sl_connection_grant */
    operation *receives; /* (pool->count) one for each of its buffers: the provider may still report
                            them when the buffers are another connection's */
    operation *sends;    /* (send_count) used in turn */
    uint32_t send_count, next_send, sending;
    uint8_t *headers;
    struct fid_mr *headers_mr;
};

struct sl_fabric {
    sl_fabric_settings settings;
    struct fi_info *hints, *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_eq *eq;
    struct fid_cq *cq;
    struct fid_pep *listener;
    uint16_t port;
    bool is_own;       /* the provider is src/provider's */
    unsigned looks;    /* without one for events */
    bool registers;    /* the provider wants memory registered */
    uint64_t next_key; /* of registered memory, for providers that do not choose keys themselves */
    region regions[REGIONS_MAX];
    size_t region_count;
    region lent;           /* one more, which may change */
    sl_connection *open;   /* all that are not closed */
    sl_connection *closed; /* their completions may still come */
};

/* Of a failure that libfabric's code tells. */
static inline int sl_fabric_code(int fi_code) {
    return fi_code == -FI_ENOMEM ? SL_ENOMEM : SL_ENET;
}

#define CLOSE(object) sl_fabric_close_fid((object) ? &(object)->fid : NULL)
static inline void sl_fabric_close_fid(struct fid *fid) {
    if (fid != NULL)
        fi_close(fid);
}

/* registered.c */
int sl_fabric_register_range(sl_fabric *fabric, void *base, size_t bytes, int cuda_index,
                             uint64_t access, struct fid_mr **mr, sl_error *error);
/* The provider's descriptor of registered memory. */
void *sl_fabric_descriptor(const sl_fabric *fabric, const void *memory);

/* connection.c */
/* Opens the endpoint and posts the first receive. */
int sl_connection_open_endpoint(sl_connection *connection, struct fi_info *info);
void sl_connection_take_down(sl_connection *connection, const char *reason);
void sl_connection_complete(operation *o, size_t bytes);
void sl_connection_complete_with_error(operation *o, int why);
/* Frees closed connections: all that they had under way has been reported. */
void sl_connection_free_closed(sl_fabric *fabric);
/* Posts the receive of a buffer, as the provider says. */
int sl_connection_post(operation *o);

/* pool.c */
/* After an operation is over: if it was a receive, another may be posted. */
void sl_pool_top_up(const operation *o);

#endif
