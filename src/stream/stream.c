/* stream.c - see stream.h. */
#include "stream/stream.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 16, CREDIT_AHEAD_MAX = 4096 };

bool sl_stream_numbers(sl_frame_type type) {
    const unsigned unnumbered = 1u << SL_FRAME_HELLO | 1u << SL_FRAME_HANDSHAKE |
                                1u << SL_FRAME_CREDIT | 1u << SL_FRAME_HEARTBEAT |
                                1u << SL_FRAME_ABORT | 1u << SL_FRAME_OFFER | 1u << SL_FRAME_MEMORY;
    return (unnumbered >> type & 1) == 0;
}

static void count(sl_count *c, const sl_frame *frame) {
    c->frames++;
    c->data += sl_frame_is_data(frame);
}

static sl_sent_frame *at(const sl_stream *s, uint64_t number) {
    return &s->frames[number & (s->capacity - 1)];
}

bool sl_stream_open(sl_stream *out, sl_copies *copies, uint32_t window) {
    *out = (sl_stream){.copies = copies, .window = window, .capacity = FIRST_CAPACITY};
    while (out->capacity < window)
        out->capacity *= 2;
    out->frames = calloc(out->capacity, sizeof *out->frames);
    out->lent = malloc(window * sizeof *out->lent);
    out->is_free = calloc(window, sizeof *out->is_free);
    for (uint32_t i = 0; i < window && out->lent != NULL; i++)
        out->lent[i] = SL_COPY_NONE;
    out->credit_told = window;
    return out->frames != NULL && out->lent != NULL && out->is_free != NULL;
}

/* It is not sent again, or without its payload. */
static void forget_payload(sl_stream *s, sl_sent_frame *sent) {
    if (sent->copy != SL_COPY_NONE)
        sl_copies_drop(s->copies, sent->copy);
    free(sent->own);
    sent->own = NULL;
    sent->payload = NULL;
    sent->copy = SL_COPY_NONE;
}

static void acknowledge(sl_stream *s, uint64_t frames) {
    while (s->acknowledged.frames < frames) {
        sl_sent_frame *sent = at(s, s->acknowledged.frames);
        count(&s->acknowledged, &sent->frame);
        forget_payload(s, sent);
    }
}

static uint32_t *lent_at(const sl_stream *s, uint64_t data) {
    return &s->lent[data % s->window];
}

static void take_back(sl_stream *s, uint64_t data) {
    uint32_t *lent = lent_at(s, data);
    if (*lent != SL_COPY_NONE)
        sl_copies_drop(s->copies, *lent);
    *lent = SL_COPY_NONE;
}

/* Its credit says so: what it holds is behind these. */
static void take_back_read(sl_stream *s) {
    uint64_t until = s->credit > s->read_at_once ? s->credit - s->read_at_once : 0;
    if (until > s->numbered.data)
        until = s->numbered.data;
    for (; s->read_at_once > 0 && s->returned < until; s->returned++)
        take_back(s, s->returned);
}

void sl_stream_take_back(sl_stream *s) {
    for (uint32_t i = 0; i < s->window; i++)
        take_back(s, i);
}

void sl_stream_close(sl_stream *s) {
    if (s->frames != NULL)
        acknowledge(s, s->numbered.frames);
    if (s->lent != NULL)
        sl_stream_take_back(s);
    free(s->frames);
    free(s->lent);
    free(s->is_free);
    *s = (sl_stream){0};
}

void sl_stream_renew(sl_stream *s) {
    acknowledge(s, s->numbered.frames);
    sl_stream_take_back(s);
    *s = (sl_stream){.copies = s->copies,
                     .window = s->window,
                     .frames = s->frames,
                     .capacity = s->capacity,
                     .lent = s->lent,
                     .before = s->before + s->received.data,
                     .freed = s->freed,
                     .is_free = s->is_free};
    s->credit_told = sl_stream_credit(s); /* HELLO has said so, or will */
}

/* ---- sending ---- */

static bool grow(sl_stream *s) {
    sl_stream larger = *s;
    larger.capacity *= 2;
    larger.frames = calloc(larger.capacity, sizeof *larger.frames);
    if (larger.frames == NULL)
        return false;
    for (uint64_t i = s->acknowledged.frames; i < s->numbered.frames; i++)
        *at(&larger, i) = *at(s, i);
    free(s->frames);
    *s = larger;
    return true;
}

bool sl_stream_add(sl_stream *s, const sl_frame *frame, const void *payload, bool own) {
    sl_sent_frame sent = {.frame = *frame, .payload = payload, .copy = SL_COPY_NONE};
    if (s->numbered.frames - s->acknowledged.frames == s->capacity && !grow(s))
        return false;
    if (own && frame->payload_bytes > 0) {
        sent.own = malloc(frame->payload_bytes);
        if (sent.own == NULL)
            return false;
        memcpy(sent.own, payload, frame->payload_bytes);
        sent.payload = sent.own;
    }
    *at(s, s->numbered.frames) = sent;
    count(&s->numbered, frame);
    return true;
}

const sl_sent_frame *sl_stream_next(const sl_stream *s) {
    return s->sent.frames < s->numbered.frames ? at(s, s->sent.frames) : NULL;
}

const void *sl_stream_payload(const sl_stream *s, const sl_sent_frame *sent) {
    return sl_copies_payload(s->copies, sent->copy, sent->payload);
}

void sl_stream_pass(sl_stream *s, bool lends) {
    const sl_sent_frame *sent = at(s, s->sent.frames);
    uint32_t *lent = lent_at(s, s->sent.data);
    if (lends && *lent == SL_COPY_NONE) { /* else it has left before */
        *lent = sent->copy;
        sl_copies_use(s->copies, sent->copy);
    }
    count(&s->sent, &sent->frame);
}

void sl_stream_void(sl_stream *s, uint32_t types) {
    for (uint64_t i = s->acknowledged.frames; i < s->numbered.frames; i++) {
        sl_sent_frame *sent = at(s, i);
        if ((types >> sent->frame.type & 1) == 0)
            continue;
        forget_payload(s, sent);
        sent->frame.is_void = true;
        sent->frame.silent = sent->frame.unsummed = false;
        sent->frame.payload_bytes = 0;
        sent->frame.payload_sum = 0;
    }
}

bool sl_stream_has_credit(const sl_stream *s) {
    return s->numbered.data < s->credit && s->numbered.data < s->acknowledged.data + s->window &&
           (s->read_at_once == 0 || s->numbered.data < s->returned + s->window);
}

/* Data frame number `number`; NULL: it is acknowledged, or not here yet. */
static sl_sent_frame *find_data(const sl_stream *s, uint64_t number) {
    uint64_t data = s->numbered.data;
    for (uint64_t i = s->numbered.frames; i-- > s->acknowledged.frames;) {
        sl_sent_frame *sent = at(s, i);
        if (sl_frame_is_data(&sent->frame) && --data == number)
            return sent;
    }
    return NULL;
}

void sl_stream_use_copy(sl_stream *s, uint64_t number, uint32_t copy) {
    find_data(s, number)->copy = copy;
    sl_copies_use(s->copies, copy);
}

bool sl_stream_has_copy(const sl_stream *s, uint64_t number) {
    const sl_sent_frame *sent = find_data(s, number);
    return sent != NULL && sent->copy != SL_COPY_NONE;
}

void sl_stream_lend(sl_stream *s, uint32_t read_at_once) {
    if (read_at_once > 0)
        s->read_at_once = read_at_once;
    take_back_read(s);
}

bool sl_stream_lends(const sl_stream *s, const uint8_t *memory, size_t bytes) {
    bool any = false;
    for (uint32_t i = 0; i < s->window; i++)
        any = any || (s->lent[i] < s->copies->count &&
                      sl_copies_keeps(s->copies, s->lent[i], memory, bytes));
    return any;
}

/* ---- receiving ---- */

const char *sl_stream_hear(sl_stream *s, const sl_frame *header) {
    const uint32_t more = header->received - (uint32_t)s->acknowledged.frames;
    const int32_t ahead = (int32_t)(header->credit - (uint32_t)s->numbered.data);
    if (more > s->sent.frames - s->acknowledged.frames)
        return "it tells of more frames than were sent";
    if (ahead > CREDIT_AHEAD_MAX || ahead < -CREDIT_AHEAD_MAX)
        return "its credit is out of range";
    acknowledge(s, s->acknowledged.frames + more);
    if ((int32_t)(header->credit - (uint32_t)s->credit) > 0)
        s->credit += header->credit - (uint32_t)s->credit;
    take_back_read(s);
    return NULL;
}

const char *sl_stream_receive(sl_stream *s, const sl_frame *frame) {
    count(&s->received, frame);
    return s->received.data > s->credit_told ? "more data than it was allowed to send" : NULL;
}

void sl_stream_release(sl_stream *s, uint64_t number) {
    const uint64_t came = s->before + s->received.data;
    s->is_free[number % s->window] = true;
    for (; s->freed < came && s->is_free[s->freed % s->window]; s->freed++)
        s->is_free[s->freed % s->window] = false;
}

uint64_t sl_stream_credit(const sl_stream *s) {
    return s->freed + s->window - s->before;
}

void sl_stream_told(sl_stream *s) {
    s->received_told = s->received;
    s->credit_told = sl_stream_credit(s);
}

/* ---- connections ---- */

bool sl_stream_can_resume(const sl_stream *s, const sl_stream_standing *theirs) {
    const uint64_t frames = theirs->received.frames;
    uint64_t data = s->acknowledged.data;
    if (frames < s->acknowledged.frames || frames > s->numbered.frames ||
        theirs->credit > s->numbered.data + CREDIT_AHEAD_MAX)
        return false;
    for (uint64_t i = s->acknowledged.frames; i < frames; i++)
        data += sl_frame_is_data(&at(s, i)->frame);
    return data == theirs->received.data;
}

bool sl_stream_can_return(const sl_stream *s, const sl_stream_standing *theirs) {
    return theirs->received.frames <= s->numbered.frames &&
           theirs->received.data <= s->numbered.data &&
           theirs->received.data <= theirs->received.frames &&
           theirs->credit <= s->numbered.data + CREDIT_AHEAD_MAX;
}

void sl_stream_resume(sl_stream *s, const sl_stream_standing *theirs) {
    acknowledge(s, theirs->received.frames);
    s->sent = s->acknowledged;
    s->left = s->acknowledged.data;
    if (s->credit < theirs->credit)
        s->credit = theirs->credit;
    take_back_read(s);
}

void sl_stream_abandon(sl_stream *s) {
    acknowledge(s, s->numbered.frames);
    s->sent = s->numbered;
    s->left = s->numbered.data;
}

void sl_stream_return(sl_stream *s, const sl_stream_standing *theirs) {
    sl_stream_abandon(s);
    const uint64_t came = theirs->received.data;
    for (uint64_t i = came > s->returned ? came : s->returned; i < s->numbered.data; i++)
        take_back(s, i); /* it never came */
    s->numbered = s->sent = s->acknowledged = theirs->received;
    s->left = theirs->received.data;
    s->credit = theirs->credit;
    if (s->returned > s->numbered.data)
        s->returned = s->numbered.data;
    take_back_read(s);
}
