/* channel.h - how frames go over one connection: first a handshake, then sealed; or as they are.
 *
 * Without credentials there is no channel, but NULL, which all functions take. The handshake's
 * bytes travel in HANDSHAKE frames of their own, which are not sealed. Then all frames are; or only
 * the first one of each side, its HELLO.
 */
#ifndef SL_CHANNEL_H
#define SL_CHANNEL_H

#include "agent/peers/admission.h"
#include "wire/frame.h"

typedef struct sl_channel sl_channel;

/* dials: this side has connected. *out is NULL where the guard has no credentials. */
int sl_channel_open(sl_channel **out, sl_guard *guard, sl_connection *connection,
                    const sl_passage *passage, bool dials, sl_error *error);
/* The connection is closed, too: nothing leaves any more. */
void sl_channel_close(sl_channel **channel);
/* The connection is there: the side that dialed begins the handshake. */
void sl_channel_begin(sl_channel *channel);
/* Has the handshake ended well? */
bool sl_channel_is_ready(const sl_channel *channel);
/* Before it begins: the run's key with this name is to be shown, as the other side has it. */
void sl_channel_show(sl_channel *channel, uint64_t key);
/* The name of the run's key that was shown (sl_credentials_name); 0: none, or not yet. */
uint64_t sl_channel_key(const sl_channel *channel);
/* After the guard was told of others: is it still good what the other side has shown? True of a
 * run's key. False, and why: with certificates, also before it is ready. */
bool sl_channel_is_trusted(const sl_channel *channel, char why[SL_CERTIFICATE_WHY_MAX]);
/* The greeting of the side that connected, proved since; NULL without a channel. */
const sl_passage *sl_channel_passage(const sl_channel *channel);
/* Does something wait that was taken for sent? */
bool sl_channel_waits(const sl_channel *channel);
/* Sends what found no room before. To be called often. */
void sl_channel_flush(sl_channel *channel);

/* As sl_connection_send, of a frame that begins with its encoded header. `data`: sl_channel_sent
 * will be true of it. */
int sl_channel_send(sl_channel *channel, sl_connection *connection, double now_s,
                    const uint8_t *header, size_t header_bytes, const void *payload,
                    size_t payload_bytes, bool data);
/* Something has left, as the connection reports it: was it `data`? */
bool sl_channel_sent(sl_channel *channel, uint32_t cookie);

typedef enum sl_passed {
    SL_PASSED,           /* *frame, whose payload is in the clear now */
    SL_PASSED_HANDSHAKE, /* it was for the handshake, which goes on or is done */
    SL_PASSED_BROKEN,    /* nobody who has the keys sent it so: the connection is of no use */
    SL_PASSED_MALFORMED  /* its sender made it wrong */
} sl_passed;
/* Looks at a message in `data`. *why: what is wrong; it stays with the channel. */
sl_passed sl_channel_take(sl_channel *channel, uint8_t *data, size_t bytes, size_t payload_max,
                          bool direct, double now_s, sl_frame *frame, const char **why);

#endif
