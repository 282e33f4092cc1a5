/* visitors.h - connections that have not proved to be a neighbour's.
 *
 * With keys it has proved one, and says who it is next. A visitor has one small receive buffer and
 * a few seconds to say a HELLO that equals ours; then the agent adopts its connection. Everything
 * else - silence, garbage, another configuration - costs it its connection, and nobody else
 * anything. When there are too many, the oldest goes first: an honest agent says HELLO at once.
 */
#ifndef SL_VISITORS_H
#define SL_VISITORS_H

#include "agent/peers/neighbour.h"
#include "agent/peers/refusals.h"

enum { SL_VISITORS_MAX = 64 };

typedef struct sl_visitor {
    sl_connection *connection; /* NULL: this place is free */
    sl_channel *channel;       /* on it; NULL: nothing is proved or sealed */
    uint32_t rank;             /* that it calls itself */
    bool connected, refused;
    double came_s, deadline_s;
    char from[SL_ADDRESS_TEXT_MAX];
} sl_visitor;

typedef struct sl_visitors {
    sl_side *side;
    const sl_connection_handlers *handlers;
    sl_refusals refusals;
    sl_visitor list[SL_VISITORS_MAX];
} sl_visitors;

typedef enum sl_verdict {
    SL_VERDICT_NONE, /* it proves itself; there was no HELLO yet */
    SL_VERDICT_REFUSED,
    SL_VERDICT_DIFFERS, /* its HELLO is of another configuration, or another run */
    SL_VERDICT_EQUAL    /* it is the neighbour: adopt its connection */
} sl_verdict;

/* A connection for such a greeting; NULL: rejected, and why. */
sl_connection *sl_visitors_welcome(sl_visitors *v, const sl_passage *passage, const char *from,
                                   char why[SL_GREETING_WHY_MAX]);
/* Somebody at this address was not let in. */
void sl_visitors_note_refused(sl_visitors *v, const char *from, const char *why);
/* As many said nothing at all, or did not prove themselves. */
void sl_visitors_note_silent(sl_visitors *v, size_t count);
/* Judges a message. Releases the buffer. `text`: what differs, or why it is refused; EQUAL: where
 * it stands. */
sl_verdict sl_visitors_judge(sl_visitors *v, sl_visitor *visitor, sl_buffer *buffer, size_t bytes,
                             sl_standing *standing, char text[SL_REFUSAL_MAX]);
/* Says that this is the agent that it looks for, and no more. */
void sl_visitors_confirm(sl_visitors *v, sl_visitor *visitor);
/* Refuses it although its HELLO is equal, and tells it why. followed: number of the view in which
 * another process has its rank; 0: none has. */
void sl_visitors_turn_away(sl_visitors *v, sl_visitor *visitor, uint64_t followed, const char *why);
/* The same, for one that begins while this agent trains, with others that go on without a lost one.
 */
void sl_visitors_say_join(sl_visitors *v, sl_visitor *visitor, const char *why);
/* Hands its connection and its channel over, and forgets both. */
sl_connection *sl_visitors_release(sl_visitor *visitor);
/* Ends its connection; `why` goes into a notice, NULL: none. */
void sl_visitors_refuse(sl_visitors *v, sl_visitor *visitor, const char *why);
/* Ends those whose time is over. */
void sl_visitors_tick(sl_visitors *v);
void sl_visitors_close(sl_visitors *v);

#endif
