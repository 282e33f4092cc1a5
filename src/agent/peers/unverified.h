/* unverified.h - connections that have not proved to be a neighbour's.
 *
 * With keys it has proved one, and says who it is next. A visitor has one small receive buffer and
 * a few seconds to say a HELLO that equals ours; then the agent adopts its connection. Everything
 * else - silence, garbage, another configuration - costs it its connection, and nobody else
 * anything. When there are too many, the oldest goes first: an honest agent says HELLO at once.
 */
#ifndef SL_UNVERIFIED_H
#define SL_UNVERIFIED_H

#include "agent/peers/neighbour.h"
#include "agent/peers/refusals.h"

enum { SL_UNVERIFIED_MAX = 64 };

typedef struct sl_unverified {
    sl_connection *connection; /* NULL: this place is free */
    sl_channel *channel;       /* on it; NULL: nothing is proved or sealed */
    uint32_t rank;             /* that it calls itself */
    bool connected, refused;
    double came_s, deadline_s;
    char from[SL_ADDRESS_TEXT_MAX];
} sl_unverified;

typedef struct sl_unverified_list {
    sl_side *side;
    const sl_connection_handlers *handlers;
    sl_refusals refusals;
    sl_unverified list[SL_UNVERIFIED_MAX];
} sl_unverified_list;

typedef enum sl_verdict {
    SL_VERDICT_NONE, /* it proves itself; there was no HELLO yet */
    SL_VERDICT_REFUSED,
    SL_VERDICT_DIFFERS, /* its HELLO is of another configuration, or another run */
    SL_VERDICT_EQUAL    /* it is the neighbour: adopt its connection */
} sl_verdict;

/* A connection for such a greeting; NULL: rejected, and why. */
sl_connection *sl_unverified_welcome(sl_unverified_list *v, const sl_passage *passage,
                                     const char *from, char why[SL_GREETING_WHY_MAX]);
/* Somebody at this address was not let in. */
void sl_unverified_note_refused(sl_unverified_list *v, const char *from, const char *why);
/* As many said nothing at all, or did not prove themselves. */
void sl_unverified_note_silent(sl_unverified_list *v, size_t count);
/* Judges a message. Releases the buffer. `text`: what differs, or why it is refused; EQUAL: where
 * it stands. */
sl_verdict sl_unverified_judge(sl_unverified_list *v, sl_unverified *visitor, sl_buffer *buffer,
                               size_t bytes, sl_standing *standing, char text[SL_REFUSAL_MAX]);
/* Says that this is the agent that it looks for, and no more. */
void sl_unverified_confirm(sl_unverified_list *v, sl_unverified *visitor);
/* Refuses it although its HELLO is equal, and tells it why. followed: number of the view in which
 * another process has its rank; 0: none has. */
void sl_unverified_turn_away(sl_unverified_list *v, sl_unverified *visitor, uint64_t followed,
                             const char *why);
/* The same, for one that begins while this agent trains, with others that go on without a lost one.
 */
void sl_unverified_say_join(sl_unverified_list *v, sl_unverified *visitor, const char *why);
/* Hands its connection and its channel over, and forgets both. */
sl_connection *sl_unverified_release(sl_unverified *visitor);
/* Ends its connection; `why` goes into a notice, NULL: none. */
void sl_unverified_refuse(sl_unverified_list *v, sl_unverified *visitor, const char *why);
/* Ends those whose time is over. */
void sl_unverified_tick(sl_unverified_list *v);
void sl_unverified_close(sl_unverified_list *v);

#endif
