/* fabric.h - connections to peers over libfabric: the only room that knows it.
 *
 * FI_EP_MSG endpoints, one per neighbour, one event queue and one completion queue with wait
 * descriptors. A link owns its pre-posted receive buffers: one piece for header and payload, or
 * two, of which the second is where the payload is wanted, a GPU's memory. Messages keep their
 * order. Nothing here blocks.
 */
#ifndef SL_FABRIC_H
#define SL_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/error.h"

typedef struct sl_fabric sl_fabric;
typedef struct sl_link sl_link;

enum { SL_FABRIC_GREETING_BYTES = 16 };

/* Called from sl_fabric_poll only. */
typedef struct sl_fabric_handlers {
    void *context;
    /* Somebody who says this wants to connect: the link to accept it with, not connected yet, or
     * NULL to reject. */
    sl_link *(*requested)(void *context, const uint8_t greeting[SL_FABRIC_GREETING_BYTES]);
    void (*connected)(void *context, void *owner);
    /* A message is in `buffer`, and what is longer in sl_link_rest(), both of which belong to the
     * caller until sl_link_repost. */
    void (*received)(void *context, void *owner, uint8_t *buffer, size_t bytes);
    /* The oldest data send (sl_link_send with `data`) has left its memory. */
    void (*sent)(void *context, void *owner, uint32_t cookie);
    /* The link is closed; `established`: it was connected before. Not called for sl_link_close. */
    void (*down)(void *context, void *owner, bool established, const char *reason);
} sl_fabric_handlers;

/* Does the provider take a GPU's memory (FI_HMEM) on connection-oriented endpoints here? If not,
 * why, in one line. */
bool sl_fabric_offers_gpu(const char *provider, char *reason, size_t bytes);
/* Listens on host:port (0: any). gpu: memory of a GPU will be registered. */
int sl_fabric_open(sl_fabric **out, const char *provider, const char *host, uint16_t port, bool gpu,
                   const sl_fabric_handlers *handlers, sl_error *error);
void sl_fabric_close(sl_fabric **fabric);
uint16_t sl_fabric_port(const sl_fabric *fabric);
/* Event queue, completion queue. */
void sl_fabric_descriptors(const sl_fabric *fabric, int descriptors[2]);
/* Memory that payloads may be sent from and received into, for providers that want it registered;
 * it stays until the fabric is closed. cuda_index: the CUDA device that it is on; -1: the host. */
int sl_fabric_register(sl_fabric *fabric, void *base, size_t bytes, int cuda_index,
                       sl_error *error);
/* Handles everything that has happened; the number of completions and events. */
int sl_fabric_poll(sl_fabric *fabric);
/* May the caller block on the descriptors? */
bool sl_fabric_may_block(sl_fabric *fabric);

typedef struct sl_link_settings {
    void *owner;           /* for the handlers */
    uint32_t buffer_count; /* receive buffers */
    size_t buffer_bytes;   /* of a message that are received into a buffer */
    uint8_t *rest;         /* (buffer_count, rest_bytes) where longer messages go on: the caller's,
                              registered, until the link is closed; NULL: nowhere */
    size_t rest_bytes;
    uint32_t send_count; /* sends that may be under way */
} sl_link_settings;

int sl_link_open(sl_link **out, sl_fabric *fabric, const sl_link_settings *settings,
                 sl_error *error);
void sl_link_close(sl_link **link);
int sl_link_connect(sl_link *link, const char *host, uint16_t port,
                    const uint8_t greeting[SL_FABRIC_GREETING_BYTES], sl_error *error);
/* Sends header (copied) and payload (not copied). `data`: report `sent` with the cookie. 0; 1: no
 * room now, try again after the next completion or in a millisecond; negative: the link is broken
 * (`down` has been or will be called). */
int sl_link_send(sl_link *link, const uint8_t *header, size_t header_bytes, const void *payload,
                 size_t payload_bytes, bool data, uint32_t cookie);
/* Where the message in this buffer goes on. */
uint8_t *sl_link_rest(const sl_link *link, const uint8_t *buffer);
void sl_link_repost(sl_link *link, uint8_t *buffer);
/* Sends under way. */
uint32_t sl_link_sending(const sl_link *link);

#endif
