/* outgoing.c - the message that a step sends: where its numbers come from, and its parts; see
 * state.h. */
#include <assert.h>
#include <inttypes.h>

#include "node/state.h"

bool sl_outgoing_is_vector(const sl_stage *stage, const sl_codec *codec) {
    return sl_codec_borrows(codec) && stage->vector != NULL && stage->own == NULL;
}

static void read_vector(void *node, size_t from, size_t count, float *out) {
    const sl_node *n = node;
    const float *vector = sl_node_stage(n)->vector(&n->state) + n->step.published.from + from;
    n->settings.vec->combine(out, &vector, (const float[]){1}, 1, count);
}

static void read_formula(void *node, size_t from, size_t count, float *out) {
    sl_node *n = node;
    sl_node_stage(n)->read(&n->state, n->step.published.from + from, count, out);
}

static sl_source source_of(sl_node *n) {
    const sl_stage *stage = sl_node_stage(n);
    if (stage->vector == NULL)
        return (sl_source){.read = read_formula, .context = n};
    bool aliased =
        sl_codec_borrows(n->outgoing->codec) && !sl_outgoing_is_vector(stage, n->outgoing->codec);
    if (aliased)
        return (sl_source){.read = read_vector, .context = n};
    return (sl_source){.vector = stage->vector(&n->state) + n->step.published.from};
}

bool sl_outgoing_is_plain_gossip(const sl_node *n) {
    return n->route.kind == SL_ROUTE_TOPOLOGY && n->outgoing != NULL &&
           sl_outgoing_is_vector(sl_node_stage(n), n->outgoing->codec);
}

bool sl_outgoing_adapts(const sl_node *n) {
    return n->settings.vec->on_host && sl_outgoing_is_plain_gossip(n);
}

/* Why the encoder has stopped. */
static int name_encoding(const sl_node *n, int result, sl_error *error) {
    if (result == SL_EDIVERGED)
        return sl_node_diverged(n, "a number to be sent is not finite", error);
    if (result == SL_EDEVICE && n->settings.vec->fence(error) != 0)
        return error != NULL ? sl_fail_node(error, result, n->settings.rank, n->state.round, "%s",
                                            error->text)
                             : result;
    return sl_fail_node(error, result, n->settings.rank, n->state.round,
                        "a message could not be encoded: %s", sl_error_meaning(result));
}

/* A message that is not the vector itself, or changes before it has left, is put together where it
 * leaves from. */
static sl_source gather(sl_node *n) {
    (sl_node_stage(n)->vector != NULL ? read_vector : read_formula)(n, 0, n->step.published.count,
                                                                    n->buffer);
    return (sl_source){.vector = n->buffer};
}

int sl_outgoing_begin(sl_node *n, sl_update *update, sl_error *error) {
    sl_message message = sl_node_message(n, n->settings.rank, n->state.exchange, n->number);
    const bool gathers =
        n->settings.direct && !sl_outgoing_is_vector(sl_node_stage(n), n->outgoing->codec);
    sl_source source = gathers ? gather(n) : source_of(n);
    update->publish = true;
    n->out_parts = sl_codec_parts(n->outgoing->codec);
    int result = sl_encoder_begin(n->outgoing->encoder, &message, &source);
    return result != 0 ? name_encoding(n, result, error) : 0;
}

bool sl_node_ready(const sl_node *n) {
    return sl_encoder_ready(n->outgoing->encoder, n->encoded, n->settings.notify_fd);
}

int sl_node_payload(sl_node *n, uint32_t part, sl_payload *out, sl_error *error) {
    assert(n->exchanging && part == n->encoded && part < n->out_parts);
    const sl_stage *stage = sl_node_stage(n);
    if (sl_outgoing_adapts(n))
        sl_node_sweep(n, stage->prepare, sl_node_part_range(n->outgoing, n->step.published, part));
    sl_source source = source_of(n);
    void *buffer = part < n->buffer_parts ? (char *)n->buffer + part * n->buffer_stride : NULL;
    int result = sl_encoder_part(n->outgoing->encoder, part, &source, buffer, out);
    if (result != 0)
        return name_encoding(n, result, error);
    sl_part mine = {.decoder = n->outgoing->own,
                    .message = sl_node_message(n, n->settings.rank, n->state.exchange, n->number),
                    .index = part,
                    .payload = sl_encoder_local(n->outgoing->encoder),
                    .weight = n->step.self_weight,
                    .base = n->step.published.from};
    if (stage->own != NULL)
        stage->own(&n->state, &mine);
    n->encoded++;
    n->statistics.payload_bytes_sent += out->bytes * n->step.out.count;
    n->statistics.frames_sent += n->step.out.count;
    return 0;
}
