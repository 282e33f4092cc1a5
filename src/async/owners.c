/* owners.c - see owners.h. One server has the whole vector; sharded, each member has as much. What
 * is compressed is compressed for each server by itself. */
#include "async/owners.h"

#include <stdlib.h>

#include "route/form.h"
#include "vec/asked.h"

static const sl_compressor_config identity = {.kind = SL_COMPRESSOR_IDENTITY};

static int open_commits(const sl_async *n, sl_owner *s, sl_error *error) {
    const sl_node_settings *settings = &n->settings;
    const sl_compressor_config *c = &settings->plan->config.compressor;
    const bool split = c->scope == SL_SCOPE_TENSOR && settings->tensor_count > 1;
    int result =
        split ? sl_codec_open_split(&s->codec, c, settings->tensor_ends, settings->tensor_fractions,
                                    settings->tensor_count, settings->part_bytes, error)
              : sl_codec_open(&s->codec, c, s->range.count, settings->part_bytes, error);
    if (result == 0)
        result = sl_encoder_open(&s->encoder, s->codec, settings->vec, error);
    if (result == 0)
        result = sl_decoder_open(&s->decoder, s->codec, settings->vec, error);
    return result;
}

static int open_model(const sl_async *n, sl_owner *s, sl_error *error) {
    const sl_node_settings *settings = &n->settings;
    int result = sl_codec_open(&s->plain, &identity, s->range.count, settings->part_bytes, error);
    if (result == 0)
        result = sl_decoder_open(&s->plain_decoder, s->plain, settings->vec, error);
    return result;
}

static int open_memory(const sl_async *n, sl_owner *s, sl_error *error) {
    const size_t bytes = sl_codec_part_bytes_max(s->codec);
    s->parts = s->sent = sl_codec_parts(s->codec);
    s->model_parts = sl_codec_parts(s->plain);
    s->payloads = calloc(s->parts, sizeof *s->payloads);
    s->stride = (bytes + SL_VEC_ALIGNMENT - 1) / SL_VEC_ALIGNMENT * SL_VEC_ALIGNMENT;
    const bool encodes = sl_async_encodes(n, s->codec);
    if (encodes)
        s->encoded = n->settings.vec->allocate_host(s->parts * s->stride);
    if (s->encoded != NULL)
        sl_encoder_stage(s->encoder, s->encoded);
    return s->payloads != NULL && (s->encoded != NULL || !encodes)
               ? 0
               : sl_fail(error, SL_ENOMEM, "node %u: out of memory for commits", n->settings.rank);
}

static int open_owner(const sl_async *n, sl_owner *s, sl_error *error) {
    int result = open_commits(n, s, error);
    if (result == 0)
        result = open_model(n, s, error);
    return result == 0 ? open_memory(n, s, error) : result;
}

static void close_owner(const sl_async *n, sl_owner *s) {
    sl_encoder_close(&s->encoder);
    sl_decoder_close(&s->decoder);
    sl_codec_close(&s->codec);
    sl_decoder_close(&s->plain_decoder);
    sl_codec_close(&s->plain);
    free(s->payloads);
    n->settings.vec->release_host(s->encoded);
}

void sl_owners_close(sl_async *n) {
    for (uint32_t k = 0; k < n->owner_count; k++)
        close_owner(n, &n->owners[k]);
    free(n->owners);
    n->owners = n->own = NULL;
    n->owner_count = 0;
}

static bool is_sharded(const sl_async *n) {
    return n->state.config->server == SL_SERVER_SHARDED;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static void note_longest(sl_async *n, const sl_owner *s) {
    n->owner_bytes_max = larger(n->owner_bytes_max, larger(sl_codec_part_bytes_max(s->codec),
                                                           sl_codec_part_bytes_max(s->plain)));
}

/* Fewer members have longer shards, up to the whole vector. */
static int foresee(sl_async *n, sl_error *error) {
    sl_owner whole = {.range = {0, n->settings.dimension}};
    const int result = open_owner(n, &whole, error);
    if (result == 0)
        note_longest(n, &whole);
    close_owner(n, &whole);
    return result;
}

static uint32_t member(const sl_async *n, uint32_t place) {
    return n->view != NULL ? n->view->members.ranks[place] : place;
}

static int open_all(sl_async *n, sl_error *error) {
    const sl_range whole = {0, n->settings.dimension};
    const uint32_t count = is_sharded(n) ? n->state.nodes : 1;
    int result = n->owner_bytes_max == 0 ? foresee(n, error) : 0;
    n->owners = calloc(count, sizeof *n->owners);
    if (n->owners == NULL)
        return sl_fail(error, SL_ENOMEM, "node %u: out of memory for commits", n->settings.rank);
    for (uint32_t k = 0; k < count && result == 0; k++) {
        sl_owner *s = &n->owners[n->owner_count++];
        s->range = sl_shard(whole, k, count);
        s->server = member(n, k);
        result = s->range.count > 0 ? open_owner(n, s, error) : 0;
        if (result == 0 && s->range.count > 0)
            note_longest(n, s);
    }
    return result;
}

int sl_owners_open(sl_async *n, sl_error *error) {
    int result = 0;
    if (is_sharded(n))
        sl_owners_close(n);
    if (n->owners == NULL)
        result = open_all(n, error);
    if (result == 0 && !is_sharded(n))
        n->owners->server = n->server;
    for (uint32_t k = 0; k < n->owner_count; k++) {
        n->owners[k].sent = n->owners[k].parts;
        n->owners[k].come = 0;
    }
    n->own = sl_owners_of(n, n->settings.rank);
    if (n->own != NULL && n->own->range.count == 0)
        n->own = NULL;
    return result;
}

sl_owner *sl_owners_of(const sl_async *n, uint32_t server) {
    for (uint32_t k = 0; k < n->owner_count; k++)
        if (n->owners[k].server == server)
            return &n->owners[k];
    return NULL;
}

bool sl_owner_is_reached(const sl_async *n, const sl_owner *s) {
    return !sl_async_is_broken(n, s->server);
}

sl_owner *sl_owners_unsent(const sl_async *n) {
    const uint32_t own = n->own != NULL ? (uint32_t)(n->own - n->owners) : 0;
    for (uint32_t k = 1; k <= n->owner_count; k++) {
        sl_owner *s = &n->owners[(own + k) % n->owner_count];
        if (s->sent < s->parts && sl_owner_is_reached(n, s)) /* a cut one is not, until a view */
            return s;
    }
    return NULL;
}

bool sl_owners_have_come(const sl_async *n) {
    for (uint32_t k = 0; k < n->owner_count; k++)
        if (n->owners[k].come < n->owners[k].model_parts && sl_owner_is_reached(n, &n->owners[k]))
            return false;
    return true;
}

int sl_owner_encode(sl_async *n, sl_owner *s, const sl_source *source, uint64_t number,
                    uint32_t step, sl_error *error) {
    const sl_message message = {n->settings.seed, number, n->settings.rank, step};
    const size_t from = s->range.from;
    const sl_source here = {.vector = source->vector + from,
                            .fresh = source->fresh != NULL ? source->fresh + from : NULL};
    int result = sl_encoder_begin(s->encoder, &message, &here);
    for (uint32_t part = 0; part < s->parts && result == 0; part++)
        result = sl_encoder_part(s->encoder, part, &here,
                                 s->encoded != NULL ? s->encoded + part * s->stride : NULL,
                                 &s->payloads[part]);
    const int asked =
        result != 0 ? sl_vec_ask(n->settings.vec, true, n->settings.rank, n->state.round, error)
                    : 0;
    return result == 0 || asked != 0
               ? asked
               : sl_fail_node(error, result, n->settings.rank, n->state.round,
                              "its gradient is not finite; training diverged (learning rate %g): "
                              "lower optimizer.learning_rate",
                              (double)n->state.sgd.learning_rate);
}

sl_range sl_owner_model_part(const sl_owner *s, uint32_t part) {
    sl_range range;
    sl_codec_part_range(s->plain, part, &range.from, &range.count);
    range.from += s->range.from;
    return range;
}

sl_part sl_owner_part(const sl_async *n, const sl_owner *owner, uint32_t rank, const sl_arrival *a,
                      float weight) {
    sl_part part = sl_async_part_of(n, rank, a, weight, 0);
    part.decoder = owner->decoder;
    part.base = owner->range.from;
    return part;
}

sl_arrival sl_owner_own_part(const sl_async *n, const sl_owner *owner, uint32_t part) {
    return (sl_arrival){.exchange = n->out.number,
                        .step = SL_COMMIT,
                        .part = part,
                        .payload = owner->payloads[part]};
}
