/* node.c - the round machine; see starling/node.h.
 *
 * A round is a gradient and, unless it is a local one, an exchange: the algorithm's stages, each
 * cut into steps by the route (route.h). A step is four counters over parts: encoded >= sent of
 * the message that goes out (outgoing.c), and combined of those that come in (incoming.c).
 *
 * Invariants: encoded >= sent; no queue holds a part of a past step; the model changes only
 * between GRADIENT and the end of the round.
 */
#include "starling/node.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/state.h"

static const double divergence_factor = 1e6;

/* ---- opening and closing ---- */

static bool allocate_replicas(sl_node *n) {
    const bool summed = n->settings.plan->config.replicas == SL_REPLICAS_SUM;
    const size_t count = !n->algorithm->keeps_replicas ? 0 : summed ? 1 : sl_route_width(&n->route);
    n->state.replicas = calloc(count + 1, sizeof *n->state.replicas);
    for (; n->state.replicas != NULL && n->state.replica_count < count; n->state.replica_count++)
        if ((n->state.replicas[n->state.replica_count] =
                 n->settings.vec->allocate(n->settings.dimension)) == NULL)
            return false;
    return n->state.replicas != NULL;
}

static bool allocate_vectors(sl_node *n) {
    const sl_node_settings *s = &n->settings;
    size_t d = s->dimension;
    n->state.x = s->vec->allocate(d);
    n->state.g = s->gradient != NULL ? s->gradient : s->vec->allocate(d);
    n->state.block = s->vec->on_host ? SL_BLOCK : d;
    n->state.scratch = s->vec->allocate(n->state.block);
    if (s->optimizer->momentum > 0)
        n->state.m = s->vec->allocate(d);
    bool complete =
        n->state.x && n->state.g && n->state.scratch && (n->state.m || s->optimizer->momentum <= 0);
    for (size_t i = 0; i < n->algorithm->extra_vectors; i++) {
        n->state.extra[i] = s->vec->allocate(d);
        complete = complete && n->state.extra[i];
    }
    return complete && allocate_replicas(n);
}

static bool sends_from_vectors(const sl_node *n) {
    return n->settings.vec->on_host || n->settings.direct;
}

/* Then nothing is copied. */
static bool borrows(const sl_node *n, const sl_stage *stage, const sl_codec *codec) {
    return sends_from_vectors(n) && sl_outgoing_is_vector(stage, codec);
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* For encoded parts, where messages leave from. */
static void *take_buffer(const sl_node *n, size_t bytes) {
    const sl_vec_ops *vec = n->settings.vec;
    return n->settings.direct ? (void *)vec->allocate(bytes / sizeof(float))
                              : vec->allocate_host(bytes);
}

static bool allocate_buffer(sl_node *n) {
    size_t longest = 0; /* of the parts that are not sent from where they stand */
    for (size_t i = 0; i < n->algorithm->stage_count; i++)
        for (size_t c = 0; c < n->codecs.set_count; c++) {
            const sl_codec_set *set = &n->codecs.sets[c];
            if (set->plain != n->algorithm->stages[i].plain)
                continue;
            const uint32_t parts = sl_codec_parts(set->codec);
            const size_t bytes = sl_codec_part_bytes_max(set->codec);
            n->parts_max = (uint32_t)larger(parts, n->parts_max);
            n->part_bytes_max = larger(bytes, n->part_bytes_max);
            if (!borrows(n, &n->algorithm->stages[i], set->codec)) {
                n->buffer_parts = (uint32_t)larger(parts, n->buffer_parts);
                longest = larger(bytes, longest);
            }
        }
    n->buffer_stride = (longest + SL_VEC_ALIGNMENT - 1) / SL_VEC_ALIGNMENT * SL_VEC_ALIGNMENT;
    n->buffer = n->buffer_parts > 0 ? take_buffer(n, n->buffer_stride * n->buffer_parts) : NULL;
    for (size_t c = 0; n->buffer != NULL && !n->settings.direct && c < n->codecs.set_count; c++)
        sl_encoder_stage(n->codecs.sets[c].encoder, n->buffer);
    return n->buffer_parts == 0 || n->buffer != NULL;
}

static bool allocate_all(sl_node *n) {
    const uint32_t *peers;
    uint32_t count = sl_route_peers(&n->route, &peers), width = sl_route_width(&n->route);
    n->combined = calloc(width + 1u, sizeof *n->combined);
    n->parts = calloc(width + 1u, sizeof *n->parts);
    return n->combined != NULL && n->parts != NULL &&
           sl_inbox_open(&n->inbox, peers, count, n->settings.inbox_parts) == 0 &&
           allocate_vectors(n) && allocate_buffer(n) &&
           sl_staging_open(&n->staging, n->settings.vec, width, n->part_bytes_max,
                           n->settings.notify_fd, n->settings.direct) == 0;
}

static int check_settings(const sl_node_settings *s, sl_error *error) {
    if (s->dimension == 0 || s->part_bytes == 0 || s->rounds == 0)
        return sl_fail(error, SL_EINVAL,
                       "node: dimension %zu, part_bytes %zu and rounds %" PRIu64
                       " must all be positive",
                       s->dimension, s->part_bytes, s->rounds);
    if (s->dimension / (s->part_bytes / sizeof(float)) >= UINT32_MAX)
        return sl_fail(error, SL_EINVAL,
                       "node: %zu elements in parts of %zu bytes are too many parts", s->dimension,
                       s->part_bytes);
    if (s->rank >= sl_topology_nodes(s->topology))
        return sl_fail(error, SL_EINVAL, "node: rank %u is not one of 0..%u", s->rank,
                       sl_topology_nodes(s->topology) - 1);
    return 0;
}

static int open_parts(sl_node *n, sl_error *error) {
    const sl_node_settings *s = &n->settings;
    const sl_algorithm_config *config = &s->plan->config;
    int result =
        sl_route_open(&n->route, n->algorithm, config, s->topology, s->rank, s->dimension, error);
    if (result == 0)
        result = sl_codecs_open(&n->codecs, n->algorithm, &config->compressor, &n->route,
                                s->tensor_ends, s->tensor_count, s->part_bytes, s->vec, error);
    if (result == 0 && !allocate_all(n))
        result = sl_vec_no_memory(s->vec, error, "node %u: vectors of %zu parameters", s->rank,
                                  s->dimension);
    return result;
}

int sl_node_open(sl_node **out, const sl_node_settings *settings, sl_error *error) {
    int result = check_settings(settings, error);
    if (result != 0)
        return result;
    const sl_algorithm_config *config = &settings->plan->config;
    const sl_algorithm *algorithm = sl_algorithm_find(config->name, config->variant, error);
    sl_node *n = algorithm != NULL ? calloc(1, sizeof *n) : NULL;
    if (n == NULL)
        return algorithm == NULL
                   ? SL_EINVAL
                   : sl_fail(error, SL_ENOMEM, "node %u: out of memory", settings->rank);
    n->settings = *settings;
    n->algorithm = algorithm;
    n->state = (sl_state){.vec = settings->vec,
                          .config = config,
                          .nodes = sl_topology_nodes(settings->topology),
                          .step_size = (float)settings->plan->step_size,
                          .push_sum_weight = 1,
                          .next_push_sum_weight = 1};
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
    for (size_t i = 0; i < n->state.replica_count; i++)
        vec->release(n->state.replicas[i]);
    free(n->state.replicas);
    sl_staging_close(&n->staging);
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

/* ---- steps ---- */

void sl_node_sweep(sl_node *n, sl_range_hook *hook, sl_range range) {
    const size_t block = n->settings.vec->block;
    for (size_t done = 0, count; hook != NULL && done < range.count; done += count) {
        count = range.count - done < block ? range.count - done : block;
        hook(&n->state, range.from + done, count);
    }
}

static void sweep_all(sl_node *n, sl_range_hook *hook) {
    sl_node_sweep(n, hook, (sl_range){0, n->settings.dimension});
}

static bool is_measured(const sl_node *n) {
    uint64_t every = n->settings.measure_every;
    return every != 0 && n->number == 0 && sl_outgoing_is_plain_gossip(n) &&
           (n->state.round % every == 0 || n->state.round == n->settings.rounds);
}

static int begin_step(sl_node *n, sl_update *update, sl_error *error) {
    const sl_stage *stage = sl_node_stage(n);
    n->step = sl_route_step(&n->route, stage->gather, n->state.exchange, n->index);
    n->state.in = n->step.in;
    n->state.self_weight = n->step.self_weight;
    n->outgoing = sl_codecs_find(&n->codecs, n->step.published.count, stage->plain);
    bool joint = !n->step.separate && (n->step.in.count > 0 || n->route.kind == SL_ROUTE_TOPOLOGY);
    n->incoming = joint ? sl_codecs_find(&n->codecs, n->step.coming.count, stage->plain) : NULL;
    n->out_parts = n->encoded = n->sent = 0;
    memset(n->combined, 0, (n->step.in.count + 1u) * sizeof *n->combined);
    n->measure = is_measured(n);
    if (n->index == 0 && !sl_outgoing_adapts(n))
        sl_node_sweep(n, stage->prepare,
                      stage->gather ? n->step.published : (sl_range){0, n->settings.dimension});
    return n->outgoing != NULL ? sl_outgoing_begin(n, update, error) : 0;
}

/* The first step of the next stage that there is, from `stage` on; the exchange is over when there
 * is none. */
static int begin_stage(sl_node *n, size_t stage, sl_update *update, sl_error *error) {
    n->index = 0;
    for (n->stage = stage; n->stage < n->algorithm->stage_count; n->stage++) {
        const sl_stage *next = sl_node_stage(n);
        uint32_t steps = sl_route_steps(&n->route, next->gather);
        if (steps > 0 && (next->wanted == NULL || next->wanted(&n->state)))
            return begin_step(n, update, error);
        if (steps == 0 && (next->wanted == NULL || next->wanted(&n->state)))
            sweep_all(n, next->prepare); /* a ring of one */
        n->number += steps;
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

static int next_step(sl_node *n, sl_update *update, sl_error *error) {
    n->number++;
    if (++n->index < sl_route_steps(&n->route, sl_node_stage(n)->gather))
        return begin_step(n, update, error);
    return begin_stage(n, n->stage + 1, update, error);
}

/* ---- rounds ---- */

int sl_node_diverged(const sl_node *n, const char *what, sl_error *error) {
    return sl_fail_node(
        error, SL_EDIVERGED, n->settings.rank, n->state.round,
        "%s; training diverged (learning rate %g%s): lower optimizer.learning_rate, add "
        "optimizer.schedule.warmup_rounds%s",
        what, (double)n->state.sgd.learning_rate,
        n->state.step_size > 0 ? ", and a consensus step" : "",
        n->settings.plan->config.compressor.kind != SL_COMPRESSOR_IDENTITY
            ? ", lower consensus_step or eta, or compress less"
            : "");
}

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
    n->statistics =
        (sl_round){.round = n->state.round, .learning_rate = n->state.sgd.learning_rate};
    update->compute = true;
    update->round = n->state.round;
    return has_exchange(n) && n->algorithm->publishes_old_model ? begin_exchange(n, update, error)
                                                                : 0;
}

static void finish_exchange(sl_node *n) {
    sweep_all(n, n->algorithm->settle);
    if (n->algorithm->finish != NULL)
        n->algorithm->finish(&n->state);
}

/* Has an operation failed? Nothing is waited for but the end of the last round. */
static int ask_device(const sl_node *n, bool last, sl_error *error) {
    const sl_vec_ops *vec = n->settings.vec;
    int result = vec->async != NULL && !last ? vec->async->status(error) : vec->fence(error);
    return result != 0 && error != NULL
               ? sl_fail_node(error, result, n->settings.rank, n->state.round, "%s", error->text)
               : result;
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

/* Combines what came, and moves on from step to step and round to round as far as that goes. */
static int advance(sl_node *n, sl_update *update, sl_error *error) {
    int result = 0;
    while (result == 0 && n->exchanging) {
        result = sl_incoming_combine(n, error);
        if (result != 0 || !sl_incoming_is_complete(n) || n->sent < n->out_parts)
            break;
        result = next_step(n, update, error);
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
        return sl_node_diverged(n, what, error);
    n->gradient_ready = true;
    n->statistics.loss = loss;
    bool due = has_exchange(n) && !n->algorithm->publishes_old_model;
    return due ? begin_exchange(n, update, error) : 0;
}

static int name_peer_down(const sl_node *n, uint32_t peer, sl_error *error) {
    if (n->finished)
        return 0;
    return sl_fail_edge(error, SL_EPEER, peer, n->settings.rank, n->state.round,
                        "the neighbour is gone");
}

static int name_late(const sl_node *n, sl_error *error) {
    int result = sl_incoming_name_missing(n, error);
    return result != 0 ? result
                       : sl_fail_node(error, SL_EPEER, n->settings.rank, n->state.round,
                                      "%u of %u parts left in time", n->sent, n->out_parts);
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
        result = sl_incoming_receive(n, event, error);
        break;
    case SL_EVENT_SENT:
        assert(event->part == n->sent && n->sent < n->encoded);
        n->sent++;
        break;
    case SL_EVENT_NOTIFIED: /* see below */
        break;
    case SL_EVENT_PEER_DOWN:
        result = name_peer_down(n, event->peer, error);
        break;
    case SL_EVENT_DEADLINE:
        result = name_late(n, error);
        break;
    }
    if (result == 0 && n->state.round > 0 && !n->finished)
        result = advance(n, update, error);
    if (result == 0)
        result = sl_incoming_collect(n, error);
    update->released = n->inbox.released;
    update->released_count = n->inbox.released_count;
    return result;
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
    return n->step.out;
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
    const float *const all[VECTORS_MAX - SL_ALGORITHM_VECTORS_MAX] = {n->state.x, n->state.g,
                                                                      n->state.m};
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
        bytes[count++] = n->buffer_stride * n->buffer_parts;
    }
    return count;
}

size_t sl_node_memory(const sl_node *n) {
    const void *all[VECTORS_MAX];
    return (list_vectors(n, all) + n->state.replica_count) * n->settings.dimension * sizeof(float) +
           (n->buffer != NULL ? n->buffer_stride * n->buffer_parts : 0);
}
