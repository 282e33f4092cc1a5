/* fabric.h - connections over libfabric. Only fabric.c and connection.c include its headers.
 *
 * FI_EP_MSG endpoints, one a connection; one event queue and one completion queue, with
 * descriptors to wait for. Messages keep their order. Nothing here blocks, but
 * sl_fabric_may_block for a millisecond.
 *
 * A connection begins with one small receive buffer, for the first message of a side that has not
 * proved who it is. sl_connection_grant posts the buffers for what follows: a pool's, which outlive
 * the connections that they are granted to one after the other.
 */
#ifndef SL_FABRIC_H
#define SL_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/address.h"
#include "provider/provider.h"
#include "starling/error.h"
#include "starling/vec.h"

typedef struct sl_fabric sl_fabric;
typedef struct sl_connection sl_connection;
typedef struct sl_pool sl_pool;

enum {
    SL_HEADER_BYTES_MAX = 640, /* of a message, which are copied; a multiple of SL_VEC_ALIGNMENT */
    SL_FIRST_MESSAGE_MAX = 16640, /* likewise */
};

/* A receive buffer with a message in it. Whoever got it releases it. */
typedef struct sl_buffer {
    sl_pool *pool;   /* that it belongs to; NULL: it is a connection's first */
    uint8_t *data;   /* the message, or its beginning */
    uint8_t *rest;   /* where a longer message goes on; NULL: nowhere */
    uint64_t number; /* the holder's: of the data frame in it */
} sl_buffer;

/* The reason of whom nobody listens for. Who is rejected by an agent hears more. */
#define SL_REASON_REFUSED "Connection refused"

/* What a connection reports to its owner. Called from sl_fabric_poll, and from calls below that say
 * so; `context` is the fabric's. */
typedef struct sl_connection_handlers {
    void (*connected)(void *context, void *owner);
    void (*received)(void *context, void *owner, sl_buffer *buffer, size_t bytes);
    /* The oldest send with `data` has left its memory. */
    void (*sent)(void *context, void *owner, uint32_t cookie);
    /* The connection has ended; `established`: it was connected before. The owner closes it. Not
     * called for sl_connection_close. */
    void (*down)(void *context, void *owner, bool established, const char *reason);
} sl_connection_handlers;

typedef struct sl_fabric_settings {
    const char *provider;            /* "tcp": src/provider's; "libfabric-tcp", or any other name:
                                        libfabric's */
    struct sockaddr_storage address; /* to listen on; port 0: any free one */
    bool gpu;                        /* a GPU's memory will be registered */
    sl_gate gate;                    /* of the provider tcp; others prove nothing before HELLO */
    unsigned reserve;                /* likewise: descriptors that strangers leave free */
    void *context;
    /* Somebody asks to connect: the connection to accept with, not connected yet, or NULL to
     * reject, and why: it is told. */
    sl_connection *(*requested)(void *context, const uint8_t greeting[SL_GREETING_BYTES],
                                const char *from, char why[SL_GREETING_WHY_MAX]);
} sl_fabric_settings;

/* Does this host have the provider, with connection-oriented endpoints, and if `gpu`, with a GPU's
 * memory (FI_HMEM)? 0; else SL_EINVAL, or SL_ENOMEM if that could not be found out, and `reason`
 * says why in one line. */
int sl_fabric_offers(const char *provider, bool gpu, char *reason, size_t bytes);
int sl_fabric_open(sl_fabric **out, const sl_fabric_settings *settings, sl_error *error);
void sl_fabric_close(sl_fabric **fabric);
uint16_t sl_fabric_port(const sl_fabric *fabric);
/* What to wait for; returns how many there are. */
int sl_fabric_descriptors(const sl_fabric *fabric, int descriptors[2]);
/* Registers memory that payloads leave from or come to, for providers that ask for it, until the
 * fabric is closed. cuda_index: the CUDA device that it is on; -1: the host. */
int sl_fabric_register(sl_fabric *fabric, void *base, size_t bytes, int cuda_index,
                       sl_error *error);
/* The same for one more range, which may be another one with each call: then the one before is no
 * longer registered. */
int sl_fabric_lend(sl_fabric *fabric, void *base, size_t bytes, int cuda_index, sl_error *error);
/* Handles what has happened, events not at each call; returns the number of completions and events.
 */
int sl_fabric_poll(sl_fabric *fabric);
/* Ends connections that have not proved themselves for some seconds; returns how many. To be called
 * often. */
size_t sl_fabric_end_silent(sl_fabric *fabric);
/* May the caller block on the descriptors? Handles what has happened, too. */
bool sl_fabric_may_block(sl_fabric *fabric);

int sl_connection_open(sl_connection **out, sl_fabric *fabric,
                       const sl_connection_handlers *handlers, void *owner, uint32_t send_count,
                       sl_error *error);
void sl_connection_close(sl_connection **connection);
/* From now on this owner is told. */
void sl_connection_adopt(sl_connection *connection, const sl_connection_handlers *handlers,
                         void *owner);
int sl_connection_dial(sl_connection *connection, const struct sockaddr_storage *address,
                       const uint8_t greeting[SL_GREETING_BYTES], sl_error *error);

typedef struct sl_buffers {
    const sl_vec_ops *vec; /* what copies from them: they are its host memory */
    uint32_t count;
    size_t bytes;  /* of a message that are received into a buffer */
    uint8_t *rest; /* (count, rest_bytes) where longer messages go on: the caller's, registered,
                      until the pool is closed; NULL: nowhere */
    size_t rest_bytes;
} sl_buffers;
/* Receive buffers of one peer. */
int sl_pool_open(sl_pool **out, sl_fabric *fabric, const sl_buffers *buffers, void *owner,
                 sl_error *error);
/* After its connections, and before the fabric. */
void sl_pool_close(sl_pool **pool);
void *sl_pool_owner(const sl_pool *pool);
/* Posts the pool's buffers, but for those that are held from earlier connections: they are posted
 * here once they are released. Once, after the first message came, and to one open connection at a
 * time. May call `down`. */
void sl_connection_grant(sl_connection *connection, sl_pool *pool);
/* Once more a buffer for one message of a side that has not proved who it is. After the one before
 * was read, and before sl_connection_grant. May call `down`. */
void sl_connection_receive_again(sl_connection *connection);
/* Sends header (copied) and payload (not copied). `data`: report `sent` with the cookie. 0; 1: no
 * room now, try again after the next completion or in a millisecond; negative: the connection is
 * broken (`down` has been or will be called). */
int sl_connection_send(sl_connection *connection, const uint8_t *header, size_t header_bytes,
                       const void *payload, size_t payload_bytes, bool data, uint32_t cookie);
/* Sends under way. */
uint32_t sl_connection_sending(const sl_connection *connection);
/* Bytes that have come, of messages that are not whole too; 0: not known. */
uint64_t sl_connection_bytes_received(const sl_connection *connection);
/* As the kernel measures it; 0: not known. */
double sl_connection_round_trip_s(const sl_connection *connection);
/* Gives the buffer back; may call `down`. */
void sl_buffer_release(sl_buffer *buffer);

#endif
