/* node.c - the round machine; see starling/node.h.
 *
 * A round is a gradient and, unless it is a local one, an exchange: the algorithm's stages, each cut into phases by the route (route.h). A phase is
 * four counters over parts: encoded >= sent of the message that goes out, and combined of those that come in. Each in-neighbour has a queue of parts
 * that came and are not yet combined; a connection keeps order, so the head of every queue is the part that is needed next, or belongs to a later
 * phase. Parts are combined in order 0, 1, ... and within a part in neighbour order, whatever the order of arrival: the sums are the same bits in
 * every run.
 *
 * Invariants: encoded >= sent; no queue holds a part of a past phase; the model changes only between GRADIENT and the end of the round.
 */
#include "starling/node.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/codecs.h"
#include "node/inbox.h"
#include "node/landing.h"
#include "node/route.h"

static const double divergence_factor = 1e6;

struct sl_node {
    sl_node_settings settings;
    const sl_algorithm *algorithm;
    sl_state state;
    sl_route route;
    sl_codecs codecs;
    sl_inbox inbox;
    uint32_t parts_max;
    size_t part_bytes_max;

    bool gradient_ready, exchanging, exchanged, finished;
    double loss_limit;
    size_t stage;         /* of the exchange under way */
    uint32_t index;       /* of the phase in its stage */
    uint32_t number;      /* of the phase in its exchange */
    sl_phase phase;
    const sl_codec_set *outgoing, *incoming; /* NULL: nothing goes out, nothing (joint) comes */
    uint32_t out_parts, encoded, sent;
    uint32_t *combined;   /* (width) parts done of each in-neighbour; joint phases use the first for all */
    sl_part *parts;       /* (width) of the part at hand */
    bool measure;
    double distance_squared; /* sum_j W_ij ||v_j - v_i||^2 so far */
    sl_round statistics;

    void *buffer; /* parts_max encoded parts, where one message cannot be sent from where it stands */
    sl_landing landing;
    size_t buffer_stride;
    uint64_t dropped;
};

static const sl_stage *stage_of(const sl_node *n) {
    return &n->algorithm->stages[n->stage];
}

/* ---- opening and closing ---- */

static bool allocate_vectors(sl_node *n) {
    const sl_node_settings *s = &n->settings;
    size_t d = s->dimension;
    n->state.x = s->vec->allocate(d);
    n->state.g = s->gradient != NULL ? s->gradient : s->vec->allocate(d);
    n->state.block = s->vec->on_host ? SL_BLOCK : d;
    n->state.scratch = s->vec->allocate(n->state.block);
    if (s->optimizer->momentum > 0)
        n->state.m = s->vec->allocate(d);
    bool complete = n->state.x && n->state.g && n->state.scratch && (n->state.m || s->optimizer->momentum <= 0);
    for (size_t i = 0; i < n->algorithm->extra_vectors; i++) {
        n->state.extra[i] = s->vec->allocate(d);
        complete = complete && n->state.extra[i];
    }
    return complete;
}

/* The message is the vector itself, which stays as it is until it has left. */
static bool is_vector(const sl_stage *stage, const sl_codec *codec) {
    return sl_codec_borrows(codec) && stage->vector != NULL && stage->own == NULL;
}

static bool sends_from_vectors(const sl_node *n) {
    return n->settings.vec->on_host || n->settings.direct;
}

/* Then nothing is copied. */
static bool borrows(const sl_node *n, const sl_stage *stage, const sl_codec *codec) {
    return sends_from_vectors(n) && is_vector(stage, codec);
}

/* For encoded parts, where messages leave from. */
static void *take_buffer(const sl_node *n, size_t bytes) {
    const sl_vec_ops *vec = n->settings.vec;
    return n->settings.direct ? (void *)vec->allocate(bytes / sizeof(float)) : vec->allocate_host(bytes);
}

static bool allocate_buffer(sl_node *n) {
    bool needed = false;
    for (size_t i = 0; i < n->algorithm->stage_count; i++)
        for (size_t c = 0; c < n->codecs.set_count; c++) {
            const sl_codec_set *set = &n->codecs.sets[c];
            if (set->plain != n->algorithm->stages[i].plain)
                continue;
            uint32_t parts = sl_codec_parts(set->codec);
            size_t bytes = sl_codec_part_bytes_max(set->codec);
            n->parts_max = parts > n->parts_max ? parts : n->parts_max;
            n->part_bytes_max = bytes > n->part_bytes_max ? bytes : n->part_bytes_max;
            needed = needed || !borrows(n, &n->algorithm->stages[i], set->codec);
        }
    n->buffer_stride = (n->part_bytes_max + SL_VEC_ALIGNMENT - 1) / SL_VEC_ALIGNMENT * SL_VEC_ALIGNMENT;
    n->buffer = needed ? take_buffer(n, n->buffer_stride * n->parts_max) : NULL;
    for (size_t c = 0; n->buffer != NULL && !n->settings.direct && c < n->codecs.set_count; c++)
        sl_encoder_stage(n->codecs.sets[c].encoder, n->buffer);
    return !needed || n->buffer != NULL;
}

static bool allocate_all(sl_node *n) {
    const uint32_t *peers;
    uint32_t count = sl_route_peers(&n->route, &peers), width = sl_route_width(&n->route);
    n->combined = calloc(width + 1u, sizeof *n->combined);
    n->parts = calloc(width + 1u, sizeof *n->parts);
    return n->combined != NULL && n->parts != NULL && sl_inbox_open(&n->inbox, peers, count, n->settings.inbox_parts) == 0 &&
           allocate_vectors(n) && allocate_buffer(n) &&
           sl_landing_open(&n->landing, n->settings.vec, width, n->part_bytes_max, n->settings.bell, n->settings.direct) == 0;
}

static int check_settings(const sl_node_settings *s, sl_error *error) {
    if (s->dimension == 0 || s->part_bytes == 0 || s->rounds == 0)
        return sl_fail(error, SL_EINVAL, "node: dimension %zu, part_bytes %zu and rounds %" PRIu64 " must all be positive", s->dimension,
                       s->part_bytes, s->rounds);
    if (s->dimension / (s->part_bytes / sizeof(float)) >= UINT32_MAX)
        return sl_fail(error, SL_EINVAL, "node: %zu elements in parts of %zu bytes are too many parts", s->dimension, s->part_bytes);
    if (s->rank >= sl_topology_nodes(s->topology))
        return sl_fail(error, SL_EINVAL, "node: rank %u is not one of 0..%u", s->rank, sl_topology_nodes(s->topology) - 1);
    return 0;
}

static int open_parts(sl_node *n, sl_error *error) {
    const sl_node_settings *s = &n->settings;
    const sl_algorithm_config *config = &s->fit->config;
    int result = sl_route_open(&n->route, n->algorithm, config, s->topology, s->rank, s->dimension, error);
    if (result == 0)
        result = sl_codecs_open(&n->codecs, n->algorithm, &config->compressor, &n->route, s->tensor_ends, s->tensor_count, s->part_bytes,
                                s->vec, error);
    if (result == 0 && !allocate_all(n))
        result = sl_vec_no_memory(s->vec, error, "node %u: vectors of %zu parameters", s->rank, s->dimension);
    return result;
}

sl_node_settings sl_node_settings_of(const sl_experiment *e, const sl_fit *fit, size_t dimension, uint64_t rounds) {
    return (sl_node_settings){
        .rounds = rounds,
        .dimension = dimension,
        .part_bytes = e->transport.chunk_bytes,
        .seed = e->seed,
        .loss_limit = e->loss_limit,
        .topology = e->topology,
        .fit = fit,
        .vec = sl_vec_cpu(),
        .optimizer = &e->optimizer,
    };
}

int sl_node_open(sl_node **out, const sl_node_settings *settings, sl_error *error) {
    int result = check_settings(settings, error);
    if (result != 0)
        return result;
    const sl_algorithm_config *config = &settings->fit->config;
    const sl_algorithm *algorithm = sl_algorithm_find(config->name, config->variant, error);
    sl_node *n = algorithm != NULL ? calloc(1, sizeof *n) : NULL;
    if (n == NULL)
        return algorithm == NULL ? SL_EINVAL : sl_fail(error, SL_ENOMEM, "node %u: out of memory", settings->rank);
    n->settings = *settings;
    n->algorithm = algorithm;
    n->state = (sl_state){.vec = settings->vec, .config = config, .nodes = sl_topology_nodes(settings->topology),
                          .step = (float)settings->fit->step, .push_sum_weight = 1, .next_push_sum_weight = 1};
    n->loss_limit = settings->loss_limit;
    result = open_parts(n, error);
    if (result != 0)
        sl_node_close(&n);
    else
        *out = n;
    return result;
}

void sl_node_close(sl_node **node) {
    sl_node *n = *node;
    if (n == NULL)
        return;
    const sl_vec_ops *vec = n->settings.vec;
    vec->release(n->state.x);
    if (n->settings.gradient == NULL)
        vec->release(n->state.g);
    vec->release(n->state.m);
    vec->release(n->state.scratch);
    for (size_t i = 0; i < SL_ALGORITHM_VECTORS_MAX; i++)
        vec->release(n->state.extra[i]);
    sl_landing_close(&n->landing);
    sl_codecs_close(&n->codecs);
    sl_inbox_close(&n->inbox);
    sl_route_close(&n->route);
    free(n->combined);
    free(n->parts);
    if (n->settings.direct)
        vec->release(n->buffer);
    else
        vec->release_host(n->buffer);
    free(n);
    *node = NULL;
}

/* ---- over a vector, while a block is in cache ---- */

typedef void range_hook(sl_state *s, size_t from, size_t count);

static void sweep(sl_node *n, range_hook *hook, sl_range range) {
    const size_t block = n->settings.vec->block;
    for (size_t done = 0, count; hook != NULL && done < range.count; done += count) {
        count = range.count - done < block ? range.count - done : block;
        hook(&n->state, range.from + done, count);
    }
}

static void sweep_all(sl_node *n, range_hook *hook) {
    sweep(n, hook, (sl_range){0, n->settings.dimension});
}

/* ---- the inbox ---- */

/* The phase of that number in any exchange; false: there is none. */
static bool find_phase(const sl_node *n, uint64_t exchange, uint32_t number, sl_phase *out, bool *plain) {
    for (size_t s = 0; s < n->algorithm->stage_count; s++) {
        const sl_stage *stage = &n->algorithm->stages[s];
        uint32_t phases = sl_route_phases(&n->route, stage->gather);
        if (number < phases) {
            *out = sl_route_phase(&n->route, stage->gather, exchange, number);
            *plain = stage->plain;
            return true;
        }
        number -= phases;
    }
    return false;
}

static sl_range range_from(const sl_node *n, const sl_phase *phase, uint32_t peer) {
    return phase->separate ? sl_route_shard(&n->route, peer) : phase->coming;
}

static const sl_codec_set *codec_from(const sl_node *n, const sl_phase *phase, bool plain, uint32_t peer) {
    return sl_codecs_find(&n->codecs, range_from(n, phase, peer).count, plain);
}

/* What a frame's message is encoded with; NULL: this peer sends nothing such. */
static const sl_codec_set *codec_of(const sl_node *n, const sl_event *e) {
    sl_phase phase;
    bool plain;
    if (!find_phase(n, e->exchange, e->phase, &phase, &plain))
        return NULL;
    for (uint32_t i = 0; i < phase.in.count; i++)
        if (phase.in.peers[i] == e->peer)
            return codec_from(n, &phase, plain, e->peer);
    return NULL;
}

static bool is_after(const sl_event *e, uint64_t exchange, uint32_t phase, uint32_t part) {
    if (e->exchange != exchange)
        return e->exchange > exchange;
    return e->phase != phase ? e->phase > phase : e->part >= part;
}

/* A part of the phase under way that is done already. */
static bool is_combined(const sl_node *n, const sl_event *e) {
    if (e->exchange != n->state.exchange || e->phase != n->number)
        return false;
    for (uint32_t i = 0; i < n->phase.in.count; i++)
        if (n->phase.in.peers[i] == e->peer)
            return e->part < n->combined[n->phase.separate ? i : 0];
    return false;
}

/* Late, duplicate, beyond the window or the credit: not wanted. */
static bool is_wanted(const sl_node *n, const sl_queue *q, const sl_event *e) {
    uint64_t next = n->state.exchange + !n->exchanging; /* between exchanges the next one may have begun elsewhere */
    if (e->exchange < next || e->exchange >= next + sl_route_window(&n->route) || sl_queue_is_full(&n->inbox, q))
        return false;
    if (n->exchanging && (!is_after(e, next, n->number, 0) || is_combined(n, e)))
        return false;
    const sl_arrival *last = sl_queue_last(q);
    return last == NULL || is_after(e, last->exchange, last->phase, last->part + 1);
}

static sl_message message_of(const sl_node *n, uint32_t sender, uint64_t exchange, uint32_t phase) {
    return (sl_message){.seed = n->settings.seed, .exchange = exchange, .sender = sender, .stage = phase};
}

static int lack_memory(const sl_node *n, sl_error *error) {
    return sl_fail(error, SL_ENOMEM, "node %u: out of memory for what came", n->settings.rank);
}

static int put(sl_node *n, uint32_t slot, const sl_event *e, sl_error *error) {
    const sl_codec_set *set = codec_of(n, e);
    sl_message message = message_of(n, e->peer, e->exchange, e->phase);
    if (set == NULL || sl_decoder_check(set->decoders[slot], &message, e->part, e->payload) != 0)
        return sl_fail(error, SL_EPROTO, "edge %u->%u, round %" PRIu64 ": part %u of phase %u with %zu bytes is no %s payload", e->peer,
                       n->settings.rank, n->state.round, e->part, e->phase, e->payload.bytes,
                       sl_compressor_name(n->settings.fit->config.compressor.kind));
    sl_arrival arrival = {e->exchange, e->phase, e->part, e->scalar, e->payload, e->token};
    return sl_queue_put(&n->inbox.queues[slot], &arrival) != 0 ? lack_memory(n, error) : 0;
}

static int receive(sl_node *n, const sl_event *e, sl_error *error) {
    uint32_t slot = sl_inbox_find(&n->inbox, e->peer);
    int result = 0;
    if (slot == n->inbox.peer_count || !is_wanted(n, &n->inbox.queues[slot], e))
        n->dropped++;
    else if ((result = put(n, slot, e, error)) == 0)
        return 0;
    sl_inbox_release(&n->inbox, e->token);
    return result;
}

/* ---- combining ---- */

static void measure_part(sl_node *n, sl_range range, uint32_t count) {
    const float *own = stage_of(n)->vector(&n->state) + range.from;
    for (uint32_t i = 0; i < count; i++)
        n->distance_squared += n->phase.in.weights[i] * n->settings.vec->distance_squared(n->parts[i].payload.data, own, range.count);
}

static sl_range range_of_part(const sl_codec_set *set, sl_range message, uint32_t part) {
    sl_range range;
    sl_codec_part_range(set->codec, part, &range.from, &range.count);
    range.from += message.from;
    return range;
}

/* 1: the part is there from that in-neighbour; 0: not yet; negative: it has skipped it. */
static int has_come(const sl_node *n, uint32_t i, uint32_t part, sl_error *error) {
    uint32_t peer = n->phase.in.peers[i];
    const sl_arrival *a = sl_queue_first(&n->inbox.queues[sl_inbox_find(&n->inbox, peer)]);
    if (a == NULL)
        return 0;
    if (a->exchange == n->state.exchange && a->phase == n->number && a->part == part)
        return 1;
    return sl_fail(error, SL_EPROTO, "edge %u->%u, round %" PRIu64 ": part %u of phase %u never came, part %u of phase %u of exchange %" PRIu64 " did",
                   peer, n->settings.rank, n->state.round, part, n->number, a->part, a->phase, a->exchange);
}

static void take_part(sl_node *n, uint32_t i, const sl_codec_set *set, sl_range message, sl_part *out) {
    uint32_t peer = n->phase.in.peers[i], slot = sl_inbox_find(&n->inbox, peer);
    const sl_arrival *a = sl_queue_first(&n->inbox.queues[slot]);
    *out = (sl_part){.decoder = set->decoders[slot], .message = message_of(n, peer, a->exchange, a->phase), .index = a->part,
                     .weight = (float)n->phase.in.weights[i], .scalar = a->scalar, .base = message.from};
    out->payload = n->settings.vec->on_host ? a->payload : sl_landing_bring(&n->landing, a->payload, a->token);
    n->statistics.payload_bytes_received += a->payload.bytes;
    n->statistics.frames_received++;
}

/* The part's buffer may go, if it was not lent to the landing. */
static int drop_part(sl_node *n, uint32_t i) {
    sl_queue *queue = &n->inbox.queues[sl_inbox_find(&n->inbox, n->phase.in.peers[i])];
    int result = n->settings.vec->on_host ? sl_inbox_release(&n->inbox, sl_queue_first(queue)->token) : 0;
    sl_queue_drop_first(queue);
    return result;
}

/* The buffers that have been copied to the device may go. */
static int collect_landed(sl_node *n, sl_error *error) {
    for (void *token; (token = sl_landing_token(&n->landing)) != NULL;)
        if (sl_inbox_release(&n->inbox, token) != 0)
            return lack_memory(n, error);
    return 0;
}

/* The same part of in-neighbours [first, first + count). */
static int combine(sl_node *n, uint32_t first, uint32_t count, const sl_codec_set *set, sl_range message, uint32_t part) {
    for (uint32_t i = 0; i < count; i++)
        take_part(n, first + i, set, message, &n->parts[i]);
    sl_landing_follow(&n->landing);
    sl_range range = range_of_part(set, message, part);
    if (n->measure)
        measure_part(n, range, count);
    sl_mix mix = {n->phase.self_weight, n->parts, count};
    stage_of(n)->combine(&n->state, &mix, range.from, range.count);
    sl_landing_leave(&n->landing);
    int result = 0;
    for (uint32_t i = 0; i < count && result == 0; i++)
        result = drop_part(n, first + i);
    return result;
}

/* Where a node combines what it also sends, its own part has to be ready, or to have left, first. */
static uint32_t parts_free(const sl_node *n) {
    bool same = n->phase.published.count > 0 && n->phase.published.from == n->phase.coming.from;
    if (!same)
        return UINT32_MAX;
    return stage_of(n)->in_place ? n->sent : n->encoded;
}

static int combine_jointly(sl_node *n, sl_error *error) {
    uint32_t in = n->phase.in.count, parts = n->incoming != NULL ? sl_codec_parts(n->incoming->codec) : 0;
    for (; n->combined[0] < parts; n->combined[0]++) {
        int landed = collect_landed(n, error);
        if (landed != 0 || !sl_landing_has_room(&n->landing) || parts_free(n) <= n->combined[0])
            return landed;
        for (uint32_t i = 0; i < in; i++) {
            int come = has_come(n, i, n->combined[0], error);
            if (come <= 0)
                return come;
        }
        if (combine(n, 0, in, n->incoming, n->phase.coming, n->combined[0]) != 0)
            return lack_memory(n, error);
    }
    return 0;
}

static uint32_t parts_from(const sl_node *n, uint32_t i) {
    const sl_codec_set *set = codec_from(n, &n->phase, stage_of(n)->plain, n->phase.in.peers[i]);
    return set != NULL ? sl_codec_parts(set->codec) : 0;
}

static int combine_separately(sl_node *n, sl_error *error) {
    for (uint32_t i = 0; i < n->phase.in.count; i++) {
        uint32_t peer = n->phase.in.peers[i], parts = parts_from(n, i);
        for (; n->combined[i] < parts; n->combined[i]++) {
            int come = has_come(n, i, n->combined[i], error);
            if (come < 0)
                return come;
            if (come == 0)
                break;
            int landed = collect_landed(n, error);
            if (landed != 0 || !sl_landing_has_room(&n->landing))
                return landed;
            if (combine(n, i, 1, codec_from(n, &n->phase, stage_of(n)->plain, peer), range_from(n, &n->phase, peer), n->combined[i]) != 0)
                return lack_memory(n, error);
        }
    }
    return 0;
}

static bool has_combined_all(const sl_node *n) {
    if (!n->phase.separate)
        return n->incoming == NULL || n->combined[0] == sl_codec_parts(n->incoming->codec);
    for (uint32_t i = 0; i < n->phase.in.count; i++)
        if (n->combined[i] < parts_from(n, i))
            return false;
    return true;
}

/* ---- phases ---- */

static void read_vector(void *node, size_t from, size_t count, float *out) {
    const sl_node *n = node;
    const float *vector = stage_of(n)->vector(&n->state) + n->phase.published.from + from;
    n->settings.vec->combine(out, &vector, (const float[]){1}, 1, count);
}

static void read_formula(void *node, size_t from, size_t count, float *out) {
    sl_node *n = node;
    stage_of(n)->read(&n->state, n->phase.published.from + from, count, out);
}

static sl_source source_of(sl_node *n) {
    const sl_stage *stage = stage_of(n);
    if (stage->vector == NULL)
        return (sl_source){.read = read_formula, .context = n};
    bool aliased = sl_codec_borrows(n->outgoing->codec) && !is_vector(stage, n->outgoing->codec);
    if (aliased)
        return (sl_source){.read = read_vector, .context = n};
    return (sl_source){.vector = stage->vector(&n->state) + n->phase.published.from};
}

static bool exchanges_vectors(const sl_node *n) {
    return n->route.kind == SL_ROUTE_TOPOLOGY && n->outgoing != NULL && is_vector(stage_of(n), n->outgoing->codec);
}

/* A vector that goes out as it is can be adapted part by part as it leaves; otherwise all of it is, before the encoder looks at it. */
static bool adapts_as_it_goes(const sl_node *n) {
    return n->settings.vec->on_host && exchanges_vectors(n);
}

static bool is_measured(const sl_node *n) {
    uint64_t every = n->settings.measure_every;
    return every != 0 && n->number == 0 && exchanges_vectors(n) && (n->state.round % every == 0 || n->state.round == n->settings.rounds);
}

static int diverged(const sl_node *n, const char *what, sl_error *error) {
    return sl_fail(error, SL_EDIVERGED,
                   "node %u, round %" PRIu64 ": %s; training diverged (learning rate %g%s): lower optimizer.learning_rate, add "
                   "optimizer.schedule.warmup_rounds%s",
                   n->settings.rank, n->state.round, what, (double)n->state.sgd.learning_rate,
                   n->state.step > 0 ? ", and a consensus step" : "",
                   n->settings.fit->config.compressor.kind != SL_COMPRESSOR_IDENTITY ? ", lower consensus_step or eta, or compress less" : "");
}

/* Why the encoder has stopped. */
static int name_encoding(const sl_node *n, int result, sl_error *error) {
    if (result == SL_EDIVERGED)
        return diverged(n, "a number to be sent is not finite", error);
    if (result == SL_EDEVICE && n->settings.vec->fence(error) != 0)
        return error != NULL ? sl_fail_prefix(error, result, "node %u, round %" PRIu64, n->settings.rank, n->state.round) : result;
    return sl_fail(error, result, "node %u, round %" PRIu64 ": a message could not be encoded: %s", n->settings.rank, n->state.round,
                   sl_error_meaning(result));
}

/* A message that is not the vector itself, or changes before it has left, is put together where it leaves from. */
static sl_source gather(sl_node *n) {
    (stage_of(n)->vector != NULL ? read_vector : read_formula)(n, 0, n->phase.published.count, n->buffer);
    return (sl_source){.vector = n->buffer};
}

static int begin_message(sl_node *n, sl_update *update, sl_error *error) {
    sl_message message = message_of(n, n->settings.rank, n->state.exchange, n->number);
    const bool gathers = n->settings.direct && !is_vector(stage_of(n), n->outgoing->codec);
    sl_source source = gathers ? gather(n) : source_of(n);
    update->publish = true;
    n->out_parts = sl_codec_parts(n->outgoing->codec);
    int result = sl_encoder_begin(n->outgoing->encoder, &message, &source);
    return result != 0 ? name_encoding(n, result, error) : 0;
}

static int begin_phase(sl_node *n, sl_update *update, sl_error *error) {
    const sl_stage *stage = stage_of(n);
    n->phase = sl_route_phase(&n->route, stage->gather, n->state.exchange, n->index);
    n->outgoing = sl_codecs_find(&n->codecs, n->phase.published.count, stage->plain);
    bool joint = !n->phase.separate && (n->phase.in.count > 0 || n->route.kind == SL_ROUTE_TOPOLOGY);
    n->incoming = joint ? sl_codecs_find(&n->codecs, n->phase.coming.count, stage->plain) : NULL;
    n->out_parts = n->encoded = n->sent = 0;
    memset(n->combined, 0, (n->phase.in.count + 1u) * sizeof *n->combined);
    n->measure = is_measured(n);
    if (n->index == 0 && !adapts_as_it_goes(n))
        sweep(n, stage->prepare, stage->gather ? n->phase.published : (sl_range){0, n->settings.dimension});
    return n->outgoing != NULL ? begin_message(n, update, error) : 0;
}

/* The first phase of the next stage that there is, from `stage` on; the exchange is over when there is none. */
static int begin_stage(sl_node *n, size_t stage, sl_update *update, sl_error *error) {
    n->index = 0;
    for (n->stage = stage; n->stage < n->algorithm->stage_count; n->stage++) {
        const sl_stage *next = stage_of(n);
        uint32_t phases = sl_route_phases(&n->route, next->gather);
        if (phases > 0 && (next->wanted == NULL || next->wanted(&n->state)))
            return begin_phase(n, update, error);
        if (phases == 0 && (next->wanted == NULL || next->wanted(&n->state)))
            sweep_all(n, next->prepare); /* a ring of one */
        n->number += phases;
    }
    n->exchanging = false;
    n->exchanged = true;
    return 0;
}

static int begin_exchange(sl_node *n, sl_update *update, sl_error *error) {
    n->exchanging = true;
    n->state.exchange++;
    n->number = 0;
    n->distance_squared = 0;
    return begin_stage(n, 0, update, error);
}

static int next_phase(sl_node *n, sl_update *update, sl_error *error) {
    n->number++;
    if (++n->index < sl_route_phases(&n->route, stage_of(n)->gather))
        return begin_phase(n, update, error);
    return begin_stage(n, n->stage + 1, update, error);
}

/* ---- rounds ---- */

static bool has_exchange(const sl_node *n) {
    const sl_algorithm_config *c = n->state.config;
    uint64_t interval = n->algorithm->is_periodic ? c->period : c->local_steps;
    return interval <= 1 || n->state.round % interval == 0;
}

static int begin_round(sl_node *n, sl_update *update, sl_error *error) {
    n->gradient_ready = n->exchanged = false;
    n->distance_squared = NAN;
    n->state.round++;
    n->state.sgd = sl_optimizer_at(n->settings.optimizer, n->state.round, n->settings.rounds);
    n->statistics = (sl_round){.round = n->state.round, .learning_rate = n->state.sgd.learning_rate};
    update->compute = true;
    update->round = n->state.round;
    return has_exchange(n) && n->algorithm->publishes_old_model ? begin_exchange(n, update, error) : 0;
}

static void finish_exchange(sl_node *n) {
    sweep_all(n, n->algorithm->settle);
    if (n->algorithm->finish != NULL)
        n->algorithm->finish(&n->state);
}

/* Has an operation failed? Nothing is waited for but the end of the last round. */
static int ask_device(const sl_node *n, bool last, sl_error *error) {
    const sl_vec_ops *vec = n->settings.vec;
    int result = vec->flight != NULL && !last ? vec->flight->status(error) : vec->fence(error);
    return result != 0 && error != NULL ? sl_fail_prefix(error, result, "node %u, round %" PRIu64, n->settings.rank, n->state.round) : result;
}

static int end_round(sl_node *n, sl_update *update, sl_error *error) {
    int result = ask_device(n, n->state.round == n->settings.rounds, error);
    if (result != 0)
        return result;
    bool measured = n->settings.measure_every != 0 && n->measure && n->exchanged;
    n->statistics.neighbour_distance = measured ? sqrt(n->distance_squared) : NAN;
    n->statistics.push_sum_weight = n->state.push_sum_weight;
    n->measure = false;
    update->round_done = true;
    update->finished_round = n->statistics;
    if (n->state.round == n->settings.rounds) {
        n->finished = update->finished = true;
        return 0;
    }
    return begin_round(n, update, error);
}

/* Combines what came, and moves on from phase to phase and round to round as far as that goes. */
static int advance(sl_node *n, sl_update *update, sl_error *error) {
    int result = 0;
    while (result == 0 && n->exchanging) {
        result = n->phase.separate ? combine_separately(n, error) : combine_jointly(n, error);
        if (result != 0 || !has_combined_all(n) || n->sent < n->out_parts)
            break;
        result = next_phase(n, update, error);
    }
    if (result != 0 || !n->gradient_ready || n->exchanging)
        return result;
    if (n->exchanged)
        finish_exchange(n);
    else
        sweep_all(n, n->algorithm->local);
    return end_round(n, update, error);
}

static int accept_gradient(sl_node *n, double loss, sl_update *update, sl_error *error) {
    int asked = ask_device(n, false, error);
    if (asked != 0)
        return asked; /* and the loss means nothing */
    if (n->loss_limit <= 0 && isfinite(loss))
        n->loss_limit = divergence_factor * (1 + fabs(loss));
    char what[96];
    snprintf(what, sizeof what, "the loss is %g", loss);
    if (!(loss <= n->loss_limit))
        return diverged(n, what, error);
    n->gradient_ready = true;
    n->statistics.loss = loss;
    bool due = has_exchange(n) && !n->algorithm->publishes_old_model;
    return due ? begin_exchange(n, update, error) : 0;
}

static int name_peer_down(const sl_node *n, uint32_t peer, sl_error *error) {
    if (n->finished)
        return 0;
    return sl_fail(error, SL_EPEER, "edge %u->%u, round %" PRIu64 ": the neighbour is gone", peer, n->settings.rank, n->state.round);
}

static int name_missing(const sl_node *n, sl_error *error) {
    for (uint32_t i = 0; n->exchanging && i < n->phase.in.count; i++) {
        uint32_t peer = n->phase.in.peers[i], done = n->combined[n->phase.separate ? i : 0], parts = parts_from(n, i);
        if (done < parts && sl_queue_first(&n->inbox.queues[sl_inbox_find(&n->inbox, peer)]) == NULL)
            return sl_fail(error, SL_EPEER, "edge %u->%u, round %" PRIu64 ": part %u of %u did not come in time", peer, n->settings.rank,
                           n->state.round, done, parts);
    }
    return sl_fail(error, SL_EPEER, "node %u, round %" PRIu64 ": %u of %u parts left in time", n->settings.rank, n->state.round, n->sent,
                   n->out_parts);
}

static int start(sl_node *n, sl_update *update, sl_error *error) {
    assert(n->state.round == 0);
    if (n->algorithm->start != NULL)
        n->algorithm->start(&n->state, n->settings.dimension);
    return begin_round(n, update, error);
}

int sl_node_step(sl_node *n, const sl_event *event, sl_update *update, sl_error *error) {
    *update = (sl_update){0};
    n->inbox.released_count = 0;
    int result = 0;
    switch (event->type) {
    case SL_EVENT_START:
        result = start(n, update, error);
        break;
    case SL_EVENT_GRADIENT:
        assert(!n->gradient_ready);
        result = accept_gradient(n, event->loss, update, error);
        break;
    case SL_EVENT_RECEIVED:
        result = receive(n, event, error);
        break;
    case SL_EVENT_SENT:
        assert(event->part == n->sent && n->sent < n->encoded);
        n->sent++;
        break;
    case SL_EVENT_LANDED: /* see below */
        break;
    case SL_EVENT_PEER_DOWN:
        result = name_peer_down(n, event->peer, error);
        break;
    case SL_EVENT_DEADLINE:
        result = name_missing(n, error);
        break;
    }
    if (result == 0 && n->state.round > 0 && !n->finished)
        result = advance(n, update, error);
    if (result == 0)
        result = collect_landed(n, error);
    update->released = n->inbox.released;
    update->released_count = n->inbox.released_count;
    return result;
}

bool sl_node_ready(const sl_node *n) {
    return sl_encoder_ready(n->outgoing->encoder, n->encoded, n->settings.bell);
}

int sl_node_payload(sl_node *n, uint32_t part, sl_payload *out, sl_error *error) {
    assert(n->exchanging && part == n->encoded && part < n->out_parts);
    const sl_stage *stage = stage_of(n);
    if (adapts_as_it_goes(n))
        sweep(n, stage->prepare, range_of_part(n->outgoing, n->phase.published, part));
    sl_source source = source_of(n);
    void *buffer = n->buffer ? (char *)n->buffer + part * n->buffer_stride : NULL;
    int result = sl_encoder_part(n->outgoing->encoder, part, &source, buffer, out);
    if (result != 0)
        return name_encoding(n, result, error);
    sl_part mine = {.decoder = n->outgoing->own, .message = message_of(n, n->settings.rank, n->state.exchange, n->number), .index = part,
                    .payload = sl_encoder_local(n->outgoing->encoder), .weight = n->phase.self_weight, .base = n->phase.published.from};
    if (stage->own != NULL)
        stage->own(&n->state, &mine);
    n->encoded++;
    n->statistics.payload_bytes_sent += out->bytes * n->phase.out.count;
    n->statistics.frames_sent += n->phase.out.count;
    return 0;
}

float *sl_node_model(sl_node *n) {
    return n->state.x;
}

const float *sl_node_point(const sl_node *n) {
    return n->algorithm->point != NULL ? n->algorithm->point(&n->state) : n->state.x;
}

float *sl_node_gradient_buffer(sl_node *n) {
    return n->state.g;
}

uint64_t sl_node_round(const sl_node *n) {
    return n->state.round;
}

double sl_node_push_sum_weight(const sl_node *n) {
    return n->state.push_sum_weight;
}

uint32_t sl_node_peers(const sl_node *n, const uint32_t **peers) {
    return sl_route_peers(&n->route, peers);
}

sl_place sl_node_place(const sl_node *n) {
    return (sl_place){n->state.exchange, n->number, n->state.push_sum_weight};
}

sl_row sl_node_out(const sl_node *n) {
    return n->phase.out;
}

uint32_t sl_node_parts(const sl_node *n) {
    return n->out_parts;
}

uint32_t sl_node_parts_max(const sl_node *n) {
    return n->parts_max;
}

size_t sl_node_part_bytes_max(const sl_node *n) {
    return n->part_bytes_max;
}

uint64_t sl_node_dropped(const sl_node *n) {
    return n->dropped;
}

enum { VECTORS_MAX = SL_ALGORITHM_VECTORS_MAX + 3 };

static size_t list_vectors(const sl_node *n, const void *out[VECTORS_MAX]) {
    const float *const all[VECTORS_MAX - SL_ALGORITHM_VECTORS_MAX] = {n->state.x, n->state.g, n->state.m};
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] != NULL)
            out[count++] = all[i];
    for (size_t i = 0; i < SL_ALGORITHM_VECTORS_MAX; i++)
        if (n->state.extra[i] != NULL)
            out[count++] = n->state.extra[i];
    return count;
}

size_t sl_node_regions(const sl_node *n, void **bases, size_t *bytes, size_t max) {
    const void *all[VECTORS_MAX];
    size_t count = 0, vectors = sends_from_vectors(n) ? list_vectors(n, all) : 0;
    for (; count < vectors && count < max; count++) {
        bases[count] = (void *)(uintptr_t)all[count];
        bytes[count] = n->settings.dimension * sizeof(float);
    }
    if (n->buffer != NULL && count < max) {
        bases[count] = n->buffer;
        bytes[count++] = n->buffer_stride * n->parts_max;
    }
    return count;
}

size_t sl_node_memory(const sl_node *n) {
    const void *all[VECTORS_MAX];
    return list_vectors(n, all) * n->settings.dimension * sizeof(float) + (n->buffer != NULL ? n->buffer_stride * n->parts_max : 0);
}
