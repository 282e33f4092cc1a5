/* outgoing.c - the message that a step sends: where its numbers come from, and its parts; see
 * outgoing.h. */
#include "node/outgoing.h"

#include <assert.h>
#include <string.h>

#include "vec/asked.h"
#include "vec/finite.h"

enum { LOOKS_OF_ASKING = 16 }; /* a device is asked once in so many */

static void read_vector(void *node, size_t from, size_t count, float *out) {
    const sl_node *n = node;
    const float *vector =
        n->step.what.stage->vector(&n->state) + n->step.what.published.from + from;
    n->settings.vec->combine(out, &vector, (const float[]){1}, 1, count);
}

static void read_formula(void *node, size_t from, size_t count, float *out) {
    sl_node *n = node;
    n->step.what.stage->read(&n->state, n->step.what.published.from + from, count, out);
}

static sl_source source_of(sl_node *n) {
    const sl_stage *stage = n->step.what.stage;
    if (stage->vector == NULL)
        return (sl_source){.read = read_formula, .context = n};
    bool aliased = sl_codec_borrows(n->step.outgoing->codec) &&
                   !sl_codec_sends_vector(n->step.outgoing->codec, stage);
    if (aliased)
        return (sl_source){.read = read_vector, .context = n};
    const float *fresh = stage->fresh != NULL ? stage->fresh(&n->state) : NULL;
    return (sl_source){.vector = stage->vector(&n->state) + n->step.what.published.from,
                       .fresh = fresh != NULL ? fresh + n->step.what.published.from : NULL,
                       .scale = stage->scale != NULL ? stage->scale(&n->state) : NULL};
}

bool sl_outgoing_is_plain_gossip(const sl_node *n) {
    return n->step.what.along_edges && n->step.outgoing != NULL &&
           sl_codec_sends_vector(n->step.outgoing->codec, n->step.what.stage);
}

bool sl_outgoing_adapts(const sl_node *n) {
    const sl_stage *stage = n->step.what.stage;
    return n->settings.vec->on_host && stage->speaks == NULL &&
           (sl_outgoing_is_plain_gossip(n) || (n->round.final > 0 && !stage->gather));
}

/* Why the encoder failed. */
static int name_encoding(sl_node *n, int result, sl_error *error) {
    if (result == SL_EDIVERGED)
        return sl_node_spoil(n, "a number to be sent is not finite", error);
    if (result == SL_EDEVICE &&
        sl_vec_ask(n->settings.vec, true, n->settings.rank, n->state.round, error) != 0)
        return result;
    return sl_fail_node(error, result, n->settings.rank, n->state.round,
                        "a message could not be encoded: %s", sl_error_meaning(result));
}

/* With GPU-direct, a message that is not the vector itself, or that changes before it has left, is
 * copied to where it leaves from. */
static sl_source gather(sl_node *n) {
    (n->step.what.stage->vector != NULL ? read_vector : read_formula)(
        n, 0, n->step.what.published.count, n->buffer.memory);
    return (sl_source){.vector = n->buffer.memory};
}

/* To where its parts leave from; of GPU-direct's, what is gathered on the device is the message. */
static void stage(sl_node *n, bool may_wait) {
    const sl_way_out *way = &n->settings.way_out;
    const sl_codec *codec = n->step.outgoing->codec;
    bool waits = false;
    if (way->take == NULL || n->settings.direct || n->buffer.memory == NULL)
        return;
    void *shared = way->take(way->context, sl_codec_parts(codec) * sl_codec_stride(codec), &waits);
    n->step.awaits_room = waits && may_wait;
    n->step.is_shared = shared != NULL;
    sl_encoder_stage(n->step.outgoing->encoder, shared != NULL ? shared : n->buffer.memory);
}

static int begin_encoder(sl_node *n, bool may_wait, sl_error *error) {
    sl_message message = sl_node_message(n, n->settings.rank, n->state.exchange, n->step.number);
    const bool gathers =
        n->settings.direct && !sl_codec_sends_vector(n->step.outgoing->codec, n->step.what.stage);
    stage(n, may_wait);
    if (n->step.awaits_room)
        return 0;
    sl_source source = gathers ? gather(n) : source_of(n);
    int result = sl_encoder_begin(n->step.outgoing->encoder, &message, &source);
    return result != 0 ? name_encoding(n, result, error) : 0;
}

static bool is_mutual(const sl_exchange_step *step) {
    const sl_row *in = &step->in, *out = &step->out;
    return in->count == out->count && in->count > 0 &&
           memcmp(in->peers, out->peers, in->count * sizeof *in->peers) == 0;
}

int sl_outgoing_begin(sl_node *n, sl_error *error) {
    const bool silent = n->step.what.stage->speaks != NULL && n->state.silent;
    n->step.message = (sl_outbound){.exchange = n->state.exchange,
                                    .step = n->step.number,
                                    .parts = silent ? 1 : sl_codec_parts(n->step.outgoing->codec),
                                    .to = n->step.what.out,
                                    .silent = silent,
                                    .mutual = is_mutual(&n->step.what),
                                    .in_row = n->step.outgoing->order == NULL &&
                                              sl_codec_borrows(n->step.outgoing->codec),
                                    .stays = sl_outgoing_stays(n),
                                    .room = sl_rooms_published(n)};
    n->said = n->step.what.stage->says != NULL ? n->step.what.stage->says(&n->state) : 1;
    *(silent ? &n->round.statistics.messages_silent : &n->round.statistics.messages_sent) +=
        n->step.what.out.count;
    return silent || n->step.awaits_gradient ? 0 : begin_encoder(n, true, error);
}

/* What the next part's encoding looks at. */
static sl_range next_source(const sl_node *n) {
    const sl_codec_set *set = n->step.outgoing;
    if (n->step.awaits_gradient)
        return n->step.what.published;
    sl_range range;
    sl_codec_part_source(set->codec, sl_node_place(set, n->step.encoded), &range.from,
                         &range.count);
    range.from += n->step.what.published.from;
    return range;
}

/* Parts that look at the same range follow each other. */
static void adapt(sl_node *n) {
    const sl_range range = next_source(n);
    if (n->step.adapted.count == 0 || range.from != n->step.adapted.from)
        sl_node_sweep(n, n->step.what.stage->prepare, range);
    n->step.adapted = range;
}

/* On a device that cannot fail yet. */
static void begin_late(sl_node *n, bool may_wait) {
    if (!n->step.awaits_gradient && !n->step.awaits_room)
        return;
    if (n->step.awaits_gradient)
        sl_node_sweep(n, n->step.what.stage->prepare, n->step.what.prepared);
    n->step.awaits_gradient = n->step.awaits_room = false;
    const int result = begin_encoder(n, may_wait, NULL);
    assert(result == 0);
}

bool sl_node_may_encode(const sl_node *n) {
    return n->step.message.silent || sl_node_is_final(n, next_source(n));
}

/* A driver that does not sleep looks often. */
bool sl_node_ready(sl_node *n) {
    if (!sl_node_may_encode(n))
        return false;
    if (n->step.message.silent)
        return true;
    begin_late(n, true);
    if (n->step.awaits_room)
        return false;
    if (n->step.awaits_encoder && ++n->looks % LOOKS_OF_ASKING != 0)
        return false;
    const bool ready = sl_encoder_ready(n->step.outgoing->encoder, n->step.encoded, 0);
    n->step.awaits_encoder = !ready;
    return ready;
}

bool sl_node_before_sleep(sl_node *n) {
    const bool asks = n->round.exchanging && n->step.awaits_encoder,
               encoded = asks && sl_encoder_ready(n->step.outgoing->encoder, n->step.encoded,
                                                  n->settings.notify_fd);
    n->step.awaits_encoder = n->step.awaits_encoder && !encoded;
    /* One bell a sleep: whoever wakes looks at both. */
    const bool read = sl_staging_before_sleep(&n->view.staging, !asks || encoded);
    return read || encoded;
}

/* A device has encoded the whole message: where parts can be joined, the first one stands for all
 * of them. */
static void take_own(sl_node *n, uint32_t part, uint32_t place) {
    const sl_encoder *encoder = n->step.outgoing->encoder;
    const bool joins = !n->settings.vec->on_host && sl_codec_joins(n->step.outgoing->codec, 1);
    if (joins && part == 0)
        sl_encoder_sizes(encoder, n->room.own_sizes);
    const sl_part mine = {
        .decoder = n->step.outgoing->own,
        .message = sl_node_message(n, n->settings.rank, n->state.exchange, n->step.number),
        .index = place,
        .count = joins ? n->step.message.parts : 1,
        .payload = sl_encoder_local(encoder),
        .sizes = joins ? n->room.own_sizes : NULL,
        .weight = n->step.what.self_weight,
        .base = n->step.what.published.from};
    if (part == 0 || !joins)
        n->step.what.stage->own(&n->state, &mine);
}

/* What leaves uncompressed is looked at, where the others can go on without this node: it is in
 * cache, as it was just adapted, or is read for its checksum next. Compressors look themselves. */
static bool is_finite(const sl_node *n, const sl_payload *payload) {
    return !n->settings.turns || !n->settings.vec->on_host ||
           !sl_codec_borrows(n->step.outgoing->codec) ||
           sl_vec_is_finite(payload->data, payload->bytes / sizeof(float));
}

static int encode(sl_node *n, uint32_t part, sl_payload *out, sl_error *error) {
    const sl_stage *stage = n->step.what.stage;
    const uint32_t place = sl_node_place(n->step.outgoing, part);
    begin_late(n, false);
    if (n->step.adapts)
        adapt(n);
    sl_source source = source_of(n);
    void *buffer =
        part < n->buffer.parts ? (char *)n->buffer.memory + part * n->buffer.stride : NULL;
    int result = sl_encoder_part(n->step.outgoing->encoder, place, &source, buffer, out);
    if (result == 0 && !is_finite(n, out))
        result = SL_EDIVERGED;
    if (result != 0)
        return name_encoding(n, result, error);
    if (stage->own != NULL)
        take_own(n, part, place);
    n->room.own[part] = *out;
    return 0;
}

int sl_outgoing_end(sl_node *n, sl_error *error) {
    sl_payload nobodys;
    int result = 0;
    while (result == 0 && !n->step.message.silent && n->step.encoded < n->step.message.parts) {
        result = encode(n, n->step.encoded, &nobodys, error);
        n->step.encoded++;
    }
    n->step.sent = n->step.encoded;
    return result;
}

double sl_node_scalar(const sl_node *n, uint32_t part) {
    (void)part;
    return n->step.what.stage->says == NULL ? n->state.push_sum_weight : n->said;
}

int sl_node_payload(sl_node *n, uint32_t part, sl_payload *out, sl_error *error) {
    assert(n->round.exchanging && part == n->step.encoded && part < n->step.message.parts);
    *out = (sl_payload){n->buffer.memory != NULL ? n->buffer.memory : n->state.x, 0};
    int result = n->step.message.silent ? 0 : encode(n, part, out, error);
    if (result != 0)
        return result;
    n->step.encoded++;
    n->round.statistics.payload_bytes_sent += out->bytes * n->step.message.to.count;
    n->round.statistics.frames_sent += n->step.message.to.count;
    return 0;
}
