/* greeting.h - the messages of a rendezvous, as bytes.
 *
 * A member sends rank 0 one greeting. Rank 0 answers one of its own run with a welcome, and later
 * with the roster, or with why not. Whatever is no greeting gets no answer.
 */
#ifndef SL_GREETING_H
#define SL_GREETING_H

#include <stddef.h>
#include <stdint.h>

#include "launch/origin.h"
#include "launch/resolver.h"

enum {
    SL_GREETING_HEADER_BYTES = 44,
    SL_GREETING_ORIGIN_BYTES = 32,
    SL_ANSWER_HEADER_BYTES = 16,
    SL_SUM_BYTES = 8,
    SL_GREETING_BYTES_MAX =
        SL_GREETING_HEADER_BYTES + SL_HOST_MAX + SL_GREETING_ORIGIN_BYTES + SL_SUM_BYTES,
};

typedef struct sl_greeting {
    uint32_t protocol, rank, size;
    uint64_t run;           /* equal in all processes of one job */
    uint64_t nonce;         /* of this process: a second connection is not a second process */
    uint16_t port;          /* where the agent listens */
    char host[SL_HOST_MAX]; /* at which address; "": at that of this connection */
    sl_origin origin;       /* zeros from a release whose protocol has none */
} sl_greeting;

typedef enum sl_answer_type {
    SL_ANSWER_WELCOME = 1,
    SL_ANSWER_ROSTER,
    SL_ANSWER_REFUSED
} sl_answer_type;

typedef struct sl_answer {
    sl_answer_type type;
    const uint8_t *text; /* of the roster, or why it is refused; inside the decoded bytes */
    uint32_t bytes;
} sl_answer;

/* Returns the number of bytes. */
size_t sl_greeting_encode(const sl_greeting *greeting, uint8_t out[SL_GREETING_BYTES_MAX]);
size_t sl_answer_encode(const sl_answer *answer, uint8_t *out /* (bytes + 24) */);

/* How many bytes the message has that begins here, as far as `count` bytes tell; 0: it is none.
 * *out is filled once all of them are there. */
size_t sl_greeting_decode(sl_greeting *out, const uint8_t *data, size_t count);
size_t sl_answer_decode(sl_answer *out, const uint8_t *data, size_t count, size_t text_max);

#endif
