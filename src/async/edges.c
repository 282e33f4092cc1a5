/* edges.c - where vectors meet payloads; see state.h.
 *
 * Payloads are on the host. Vectors of a device are encoded to host memory, of which they leave,
 * and what has come is copied to the device when it is combined: a node at its own times waits for
 * its device there, as for its processor.
 */
#include "async/state.h"
#include "base/round_up.h"

static bool on_host(const sl_async *n) {
    return n->settings.vec->on_host;
}

/* ---- what leaves ---- */

bool sl_async_encodes(const sl_async *n, const sl_codec *codec) {
    return !on_host(n) || !sl_codec_borrows(codec);
}

static size_t encoded_size(const sl_async *n) {
    return n->encoded != NULL ? 2 * n->parts * sl_codec_stride(n->codec) : 0;
}

/* Of an ask, and of an answer. */
static uint8_t *encoded_of(const sl_async *n, uint32_t step) {
    return n->encoded + (step != SL_AVERAGER_ASK) * n->parts * sl_codec_stride(n->codec);
}

sl_payload sl_async_encode(sl_async *n, const float *vector, uint64_t number, uint32_t step,
                           uint32_t part) {
    const sl_message message = {n->settings.seed, number, n->settings.rank, step};
    const sl_source source = {.vector = vector};
    uint8_t *buffer = n->encoded != NULL ? encoded_of(n, step) : NULL;
    sl_payload payload = {NULL, 0};
    if (part == 0 && !n->is_encoding) {
        if (buffer != NULL)
            sl_encoder_stage(n->encoder, buffer);
        n->failed = sl_encoder_begin(n->encoder, &message, &source);
        n->is_encoding = true;
    }
    if (n->failed == 0)
        n->failed = sl_encoder_part(
            n->encoder, part, &source,
            buffer != NULL ? buffer + part * sl_codec_stride(n->codec) : NULL, &payload);
    n->encoded_bytes = payload.bytes;
    return payload;
}

sl_payload sl_async_lend(const sl_async *n, const float *vector, size_t count) {
    const size_t bytes = count * sizeof *vector;
    if (on_host(n))
        return (sl_payload){(void *)(uintptr_t)vector, bytes};
    n->settings.vec->copy_out(n->lent, vector, bytes);
    return (sl_payload){n->lent, bytes};
}

/* ---- what has come ---- */

int sl_async_open_edges(sl_async *n) {
    const sl_vec_ops *vec = n->settings.vec;
    const size_t part = sl_round_up(sl_async_part_bytes_max(n), SL_VEC_ALIGNMENT);
    const uint32_t together =
        n->algorithm->async->pattern == SL_PATTERN_VERSIONS ? n->inbox.peer_count : 1;
    if (n->codec != NULL && n->encoded == NULL && sl_async_encodes(n, n->codec)) {
        n->encoded = vec->allocate_host(2 * n->parts * sl_codec_stride(n->codec));
        if (n->encoded == NULL)
            return SL_ENOMEM;
    }
    if (on_host(n))
        return 0;
    if (n->lent == NULL)
        n->lent = vec->allocate_host(part);
    if (n->brought != NULL && together <= n->brought_room)
        return n->lent != NULL ? 0 : SL_ENOMEM;
    vec->release(n->brought);
    n->brought_room = together;
    n->brought = vec->allocate((together + 1u) * part / sizeof *n->brought);
    return n->brought != NULL && n->lent != NULL ? 0 : SL_ENOMEM;
}

void sl_async_close_edges(sl_async *n) {
    n->settings.vec->release(n->brought);
    n->settings.vec->release_host(n->lent);
    n->settings.vec->release_host(n->encoded);
}

sl_payload sl_async_bring(const sl_async *n, sl_payload payload, uint32_t at) {
    if (on_host(n))
        return payload;
    const size_t part = sl_round_up(sl_async_part_bytes_max(n), SL_VEC_ALIGNMENT);
    float *there = n->brought + at * part / sizeof *there;
    n->settings.vec->copy_in(there, payload.data, payload.bytes);
    return (sl_payload){there, payload.bytes};
}

sl_part sl_async_part_of(const sl_async *n, uint32_t peer, const sl_arrival *a, float weight,
                         uint32_t at) {
    return (sl_part){.decoder = n->decoder,
                     .message = {n->settings.seed, a->exchange, peer, a->step},
                     .index = a->part,
                     .count = 1,
                     .payload = sl_async_bring(n, a->payload, at),
                     .weight = weight,
                     .scalar = a->scalar};
}

/* ---- memory ---- */

size_t sl_async_part_bytes_max(const sl_async *n) {
    return n->codec != NULL ? sl_codec_part_bytes_max(n->codec) : n->owner_bytes_max;
}

enum { VECTORS_MAX = SL_ALGORITHM_VECTORS_MAX + 3 };

static size_t list_vectors(const sl_async *n, float *all[VECTORS_MAX]) {
    float *const named[] = {n->state.x, n->state.g, n->state.m};
    size_t count = 0;
    for (size_t i = 0; i < VECTORS_MAX; i++) {
        float *vector = i < 3 ? named[i] : n->state.extra[i - 3];
        if (vector != NULL)
            all[count++] = vector;
    }
    return count;
}

size_t sl_async_memory(const sl_async *n) {
    float *all[VECTORS_MAX];
    return (list_vectors(n, all) + sl_direction_vectors(n->settings.optimizer)) *
               n->settings.dimension * sizeof(float) +
           (size_t)n->inbox.peer_count * n->kept.room * n->kept.stride + encoded_size(n);
}

/* Nothing leaves from a device. */
size_t sl_async_regions(const sl_async *n, void **bases, size_t *bytes, size_t max) {
    float *all[VECTORS_MAX];
    const size_t vectors = on_host(n) ? list_vectors(n, all) : 0;
    size_t count = vectors < max ? vectors : max;
    for (size_t i = 0; i < count; i++) {
        bases[i] = all[i];
        bytes[i] = n->settings.dimension * sizeof(float);
    }
    if (n->encoded != NULL && count < max) {
        bases[count] = n->encoded;
        bytes[count++] = encoded_size(n);
    }
    return count;
}
