/* stream.h - the numbered frames that go to one process, and that come from it. Pure: no I/O, no
 * clock.
 *
 * Every frame but those of the connection itself (HELLO, HANDSHAKE, CREDIT, HEARTBEAT, ABORT,
 * OFFER, MEMORY) has the next number of one sequence. The frame does not hold its number: a
 * connection keeps order, and HELLO says how many frames came before it. Each header acknowledges,
 * modulo 2^32. What is not acknowledged is sent again over the next connection, in order. So a
 * frame comes exactly once, and after all that were sent before it; or its receiver is lost.
 *
 * Data leaves from its sender's memory. That holds still until the frame is acknowledged, or there
 * is a copy (copies.h), or the payload is void: then the header is sent again without it, so that
 * numbers have no gaps.
 *
 * Data frames (DATA, DIRECT) are counted apart, too, for credit: each side says how many of
 * them the other may have sent. Other frames are taken from their buffers at once, and need none.
 * A buffer counts as free when those of all frames before it are, too. So credit also says which
 * copies the other side, where it reads them in this one's memory, has done with: they are lent to
 * it until then, come what may to connections, or until another process is in its place.
 */
#ifndef SL_STREAM_H
#define SL_STREAM_H

#include "stream/copies.h"
#include "wire/frame.h"

typedef struct sl_count {
    uint64_t frames;
    uint64_t data; /* of these, data frames */
} sl_count;

typedef struct sl_sent_frame {
    sl_frame frame;      /* but for what the header says of this side's counts */
    const void *payload; /* where it leaves from, unless it has a copy */
    uint8_t *own;        /* (payload_bytes) the same, if it is the stream's; else NULL */
    uint32_t copy;       /* in stream->copies; SL_COPY_NONE: none */
} sl_sent_frame;

typedef struct sl_stream {
    sl_copies *copies; /* borrowed */
    uint32_t window;   /* data frames that may be under way, each way */

    sl_sent_frame *frames; /* (capacity, a power of two) those from acknowledged.frames on, by
                              number modulo capacity */
    uint32_t capacity;
    sl_count numbered;     /* all that are to come, or came */
    sl_count sent;         /* handed to the connection that there is, or acknowledged */
    uint64_t left;         /* data frames of those sent: out of this process's memory */
    sl_count acknowledged; /* they came */
    uint64_t credit;       /* data frames that the other side lets this one send */
    uint32_t read_at_once; /* data frames that the other side holds at most, where it reads copies;
                              0: it does not */
    uint64_t returned;     /* data frames that it does not hold any more */
    uint32_t *lent;        /* (window) copies of those behind, by number modulo window */

    sl_count received;
    sl_count received_told; /* what the other side knows of that */
    uint64_t credit_told;   /* the same, of sl_stream_credit */
    uint64_t before;        /* data frames that came of processes before this one */
    uint64_t freed;         /* data frames, with those, whose buffers are free, and all before */
    bool *is_free;          /* (window) of those behind, by number modulo window */
} sl_stream;

/* false: out of memory. */
bool sl_stream_open(sl_stream *out, sl_copies *copies, uint32_t window);
void sl_stream_close(sl_stream *stream);
/* The other side is another process: it knows nothing, and nothing is known of it. */
void sl_stream_renew(sl_stream *stream);

static inline bool sl_frame_is_data(const sl_frame *frame) {
    return frame->type == SL_FRAME_DATA || frame->type == SL_FRAME_DIRECT;
}
/* Has a frame of this type a number? */
bool sl_stream_numbers(sl_frame_type type);

/* ---- sending ---- */

/* Gives the frame the next number. The payload stays where it is until it is acknowledged, or void;
 * `own`: the stream has a copy. false: out of memory. */
bool sl_stream_add(sl_stream *stream, const sl_frame *frame, const void *payload, bool own);
/* The next that the connection has to get; NULL: it has all. */
const sl_sent_frame *sl_stream_next(const sl_stream *stream);
/* Where its payload is now. */
const void *sl_stream_payload(const sl_stream *stream, const sl_sent_frame *sent);
/* The connection has got it; `lends`: as a reference to its copy. */
void sl_stream_pass(sl_stream *stream, bool lends);
/* The payloads of unacknowledged frames of these types (a bit for each) are not sent any more. */
void sl_stream_void(sl_stream *stream, uint32_t types);
/* May one more data frame be sent? */
bool sl_stream_has_credit(const sl_stream *stream);
/* Data frame number `number` is sent from this copy from now on. */
void sl_stream_use_copy(sl_stream *stream, uint64_t number, uint32_t copy);
/* Is it, and not acknowledged yet? */
bool sl_stream_has_copy(const sl_stream *stream, uint64_t number);
/* The other side reads copies from now on, of so many data frames at once; 0: it does not. */
void sl_stream_lend(sl_stream *stream, uint32_t read_at_once);

/* Does the other side hold a copy that is in this memory? */
bool sl_stream_lends(const sl_stream *stream, const uint8_t *memory, size_t bytes);

/* ---- receiving ---- */

/* What a header says of frames sent and to be sent. NULL, or what cannot be. */
const char *sl_stream_hear(sl_stream *stream, const sl_frame *header);
/* A numbered frame came. NULL, or why it must not have. */
const char *sl_stream_receive(sl_stream *stream, const sl_frame *frame);
/* The number of the data frame that came last, among those of all processes. */
static inline uint64_t sl_stream_last(const sl_stream *stream) {
    return stream->before + stream->received.data - 1;
}
/* The buffer of this data frame is free again. */
void sl_stream_release(sl_stream *stream, uint64_t number);
/* Are those of all that came, of processes before, too? */
static inline bool sl_stream_holds_nothing(const sl_stream *stream) {
    return stream->freed == stream->before + stream->received.data;
}
/* How many data frames the other side may have sent. */
uint64_t sl_stream_credit(const sl_stream *stream);
/* After BYE: has all been sent, has all data come, both ways, and does the other side know? */
static inline bool sl_stream_is_through(const sl_stream *stream) {
    return stream->sent.frames == stream->numbered.frames &&
           stream->acknowledged.data == stream->numbered.data &&
           stream->received_told.data == stream->received.data;
}
/* A header that says what came, and may, is on its way. */
void sl_stream_told(sl_stream *stream);

/* ---- connections ---- */

/* Where the other side stands, as its HELLO says. */
typedef struct sl_stream_standing {
    sl_count received;
    uint64_t credit;
} sl_stream_standing;
/* Can that be? */
bool sl_stream_can_resume(const sl_stream *stream, const sl_stream_standing *theirs);
/* A new connection: what did not come is next. */
void sl_stream_resume(sl_stream *stream, const sl_stream_standing *theirs);
/* Nothing that was sent is sent again: its receiver is lost. If it comes back, it says what came.
 */
void sl_stream_abandon(sl_stream *stream);
/* Nor does it read any copy: its process has ended. */
void sl_stream_take_back(sl_stream *stream);
/* The same for a stream that was abandoned. */
bool sl_stream_can_return(const sl_stream *stream, const sl_stream_standing *theirs);
void sl_stream_return(sl_stream *stream, const sl_stream_standing *theirs);

#endif
