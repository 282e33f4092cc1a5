/* node.c - the round machine; see starling/node.h.
 *
 * A round is four counters over the vector's chunks: encoded >= sent, and combined, which may pass `sent` only where the algorithm
 * does not combine in place. Each in-neighbour has a bounded queue of chunks that came and are not yet combined; a connection keeps
 * order, so the head of every queue is the chunk that is needed next, or belongs to a later round. Chunks are combined in order 0, 1, ...
 * and within a chunk in neighbour order, whatever the order of arrival: the sums are the same bits in every run.
 *
 * Invariants: encoded >= sent; no queue holds a chunk of a past round; x changes only between GRADIENT and the end of the round.
 */
#include "starling/node.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct arrival {
    uint64_t round;
    uint32_t chunk;
    sl_payload payload;
    void *token;
} arrival;

/* What came from one peer and is not combined yet: a ring of settings.inbox_chunks entries. */
typedef struct queue {
    arrival *entries;
    uint32_t head, count;
} queue;

struct sl_node {
    sl_node_settings settings;
    sl_state state;
    uint32_t chunk_count;
    const uint32_t *peers; /* (peer_count) sorted; queues[i] belongs to peers[i] */
    uint32_t peer_count;
    queue *queues;
    arrival *entries; /* backing store of all queues */

    uint64_t round;
    bool gradient_ready, published, finished;
    uint32_t encoded, sent, combined;
    sl_row in, out;       /* rows of this round */
    queue **row_queues;   /* (in.count) queue of each in-neighbour of this round */
    float *row_weights;   /* (in.count) */
    sl_payload *payloads; /* (in.count) of the chunk at hand */
    float self_weight;
    bool measure;
    double distance_squared; /* sum_j W_ij ||v_j - v_i||^2 so far */
    sl_round statistics;

    void *buffer; /* chunk_count encoded chunks, unless the compressor borrows */
    size_t buffer_stride;
    void **released;
    size_t released_count;
    uint64_t dropped;
};

static size_t chunk_from(const sl_node *n, uint32_t chunk) {
    return (size_t)chunk * n->settings.chunk_elements;
}

static size_t chunk_elements(const sl_node *n, uint32_t chunk) {
    size_t left = n->settings.dimension - chunk_from(n, chunk);
    return left < n->settings.chunk_elements ? left : n->settings.chunk_elements;
}

/* ---- opening and closing ---- */

static bool allocate_vectors(sl_node *n) {
    const sl_node_settings *s = &n->settings;
    size_t d = s->dimension;
    n->state.x = s->vec->allocate(d);
    n->state.g = s->vec->allocate(d);
    if (s->optimizer->momentum > 0)
        n->state.m = s->vec->allocate(d);
    bool complete = n->state.x && n->state.g && (n->state.m || s->optimizer->momentum <= 0);
    for (size_t i = 0; i < s->algorithm->extra_vectors; i++) {
        n->state.extra[i] = s->vec->allocate(d);
        complete = complete && n->state.extra[i];
    }
    return complete;
}

static uint32_t widest_row(const sl_node *n) {
    uint32_t widest = 0;
    for (uint64_t r = 1; r <= sl_topology_period(n->settings.topology); r++) {
        sl_row row = sl_topology_in(n->settings.topology, r, n->settings.rank);
        widest = row.count > widest ? row.count : widest;
    }
    return widest;
}

static bool allocate_inbox(sl_node *n, uint32_t width) {
    size_t capacity = n->settings.inbox_chunks;
    size_t total = capacity * n->peer_count;
    n->queues = calloc(n->peer_count + 1u, sizeof *n->queues);
    n->entries = calloc(total + 1, sizeof *n->entries);
    n->released = calloc(total + 1, sizeof *n->released);
    n->row_queues = calloc(width + 1u, sizeof *n->row_queues);
    n->row_weights = calloc(width + 1u, sizeof *n->row_weights);
    n->payloads = calloc(width + 1u, sizeof *n->payloads);
    if (!n->queues || !n->entries || !n->released || !n->row_queues || !n->row_weights || !n->payloads)
        return false;
    for (uint32_t p = 0; p < n->peer_count; p++)
        n->queues[p].entries = n->entries + capacity * p;
    return true;
}

static bool allocate_buffer(sl_node *n) {
    const sl_compressor *compressor = n->settings.compressor;
    if (compressor->borrows)
        return true;
    size_t stride = compressor->bytes_max(n->settings.chunk_elements);
    n->buffer_stride = (stride + SL_VEC_ALIGNMENT - 1) / SL_VEC_ALIGNMENT * SL_VEC_ALIGNMENT;
    n->buffer = aligned_alloc(SL_VEC_ALIGNMENT, n->buffer_stride * n->chunk_count);
    return n->buffer != NULL;
}

static int check_settings(const sl_node_settings *s, sl_error *error) {
    if (s->dimension == 0 || s->chunk_elements == 0 || s->rounds == 0 || s->inbox_chunks == 0)
        return sl_fail(error, SL_EINVAL,
                       "node: dimension %zu, chunk_elements %zu, rounds %llu and inbox_chunks %u must all be positive",
                       s->dimension, s->chunk_elements, (unsigned long long)s->rounds, s->inbox_chunks);
    if (s->dimension / s->chunk_elements >= UINT32_MAX)
        return sl_fail(error, SL_EINVAL, "node: %zu elements in chunks of %zu are too many chunks", s->dimension,
                       s->chunk_elements);
    if (s->rank >= sl_topology_nodes(s->topology))
        return sl_fail(error, SL_EINVAL, "node: rank %u is not one of 0..%u", s->rank,
                       sl_topology_nodes(s->topology) - 1);
    return 0;
}

int sl_node_open(sl_node **out, const sl_node_settings *settings, sl_error *error) {
    int result = check_settings(settings, error);
    if (result != 0)
        return result;
    sl_node *n = calloc(1, sizeof *n);
    if (n == NULL)
        return sl_fail(error, SL_ENOMEM, "node %u: out of memory", settings->rank);
    n->settings = *settings;
    n->state.vec = settings->vec;
    n->state.compressor = settings->compressor;
    n->chunk_count = (uint32_t)((settings->dimension - 1) / settings->chunk_elements + 1);
    n->peer_count = sl_topology_peers(settings->topology, settings->rank, &n->peers);
    uint32_t width = widest_row(n);
    if (width > SL_DEGREE_MAX)
        result = sl_fail(error, SL_EINVAL, "node %u has %u in-neighbours; at most %u are possible", settings->rank,
                         width, SL_DEGREE_MAX);
    else if (!allocate_vectors(n) || !allocate_inbox(n, width) || !allocate_buffer(n))
        result = sl_fail(error, SL_ENOMEM, "node %u: out of memory for %zu parameters with %u neighbours",
                         settings->rank, settings->dimension, n->peer_count);
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
    vec->release(n->state.g);
    vec->release(n->state.m);
    for (size_t i = 0; i < SL_ALGORITHM_VECTORS_MAX; i++)
        vec->release(n->state.extra[i]);
    free(n->queues);
    free(n->entries);
    free(n->released);
    free(n->row_queues);
    free(n->row_weights);
    free(n->payloads);
    free(n->buffer);
    free(n);
    *node = NULL;
}

/* ---- the inbox ---- */

static queue *queue_of(sl_node *n, uint32_t peer) {
    uint32_t low = 0, high = n->peer_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (n->peers[middle] < peer)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n->peer_count && n->peers[low] == peer ? &n->queues[low] : NULL;
}

static bool sends_to_me(const sl_node *n, uint64_t round, uint32_t peer) {
    sl_row row = sl_topology_in(n->settings.topology, round, n->settings.rank);
    for (uint32_t i = 0; i < row.count; i++)
        if (row.peers[i] == peer)
            return true;
    return false;
}

static void release(sl_node *n, void *token) {
    n->released[n->released_count++] = token;
}

/* Late, duplicate, from a stranger, beyond the window or the credit: not wanted. */
static bool is_wanted(const sl_node *n, const queue *q, const sl_event *e) {
    if (q == NULL || q->count == n->settings.inbox_chunks || e->chunk >= n->chunk_count)
        return false;
    if (e->round < n->round || (e->round == n->round && e->chunk < n->combined))
        return false;
    uint64_t current = n->round > 0 ? n->round : 1; /* before START a neighbour may be in round 1 already */
    if (e->round >= current + sl_topology_window(n->settings.topology) || e->round > n->settings.rounds)
        return false;
    if (q->count > 0) {
        const arrival *last = &q->entries[(q->head + q->count - 1) % n->settings.inbox_chunks];
        if (e->round < last->round || (e->round == last->round && e->chunk <= last->chunk))
            return false;
    }
    return sends_to_me(n, e->round, e->peer);
}

static int receive(sl_node *n, const sl_event *e, sl_error *error) {
    queue *q = queue_of(n, e->peer);
    if (!is_wanted(n, q, e)) {
        n->dropped++;
        release(n, e->token);
        return 0;
    }
    if (n->settings.compressor->check(e->payload, chunk_elements(n, e->chunk)) != 0) {
        release(n, e->token);
        return sl_fail(error, SL_EPROTO,
                       "edge %u->%u, round %llu: chunk %u with %zu bytes is no %s payload of %zu elements", e->peer,
                       n->settings.rank, (unsigned long long)e->round, e->chunk, e->payload.bytes,
                       n->settings.compressor->name, chunk_elements(n, e->chunk));
    }
    q->entries[(q->head + q->count++) % n->settings.inbox_chunks] =
        (arrival){e->round, e->chunk, e->payload, e->token};
    return 0;
}

/* ---- one round ---- */

static void load_rows(sl_node *n) {
    const sl_topology *topology = n->settings.topology;
    n->in = sl_topology_in(topology, n->round, n->settings.rank);
    n->out = sl_topology_out(topology, n->round, n->settings.rank);
    for (uint32_t i = 0; i < n->in.count; i++) {
        n->row_queues[i] = queue_of(n, n->in.peers[i]);
        n->row_weights[i] = (float)n->in.weights[i];
    }
    /* Weights are rounded to float; what the column loses by it goes to the self-weight, so that the mean does not creep. */
    double self = n->in.self;
    for (uint32_t i = 0; i < n->out.count; i++)
        self += n->out.weights[i] - (double)(float)n->out.weights[i];
    n->self_weight = (float)self;
}

static bool is_measured(const sl_node *n) {
    uint64_t every = n->settings.measure_every;
    return every != 0 && n->settings.compressor->borrows &&
           (n->round % every == 0 || n->round == n->settings.rounds);
}

static void begin_round(sl_node *n, sl_update *update) {
    n->gradient_ready = n->published = false;
    n->encoded = n->sent = n->combined = 0;
    n->measure = is_measured(n);
    n->distance_squared = 0;
    n->state.sgd = sl_optimizer_at(n->settings.optimizer, n->round, n->settings.rounds);
    n->statistics = (sl_round){.round = n->round, .learning_rate = n->state.sgd.learning_rate};
    load_rows(n);
    update->compute = true;
    update->publish = n->published = n->settings.algorithm->publishes_old_model;
    update->round = n->round;
}

static void measure_chunk(sl_node *n, size_t from, size_t count) {
    const float *own = n->settings.algorithm->publish(&n->state, from);
    for (uint32_t i = 0; i < n->in.count; i++)
        n->distance_squared +=
            n->in.weights[i] * n->settings.vec->distance_squared(n->payloads[i].data, own, count);
}

static void combine_chunk(sl_node *n, uint32_t chunk) {
    size_t from = chunk_from(n, chunk), count = chunk_elements(n, chunk);
    for (uint32_t i = 0; i < n->in.count; i++) {
        const arrival *a = &n->row_queues[i]->entries[n->row_queues[i]->head];
        n->payloads[i] = a->payload;
        n->statistics.payload_bytes_received += a->payload.bytes;
        n->statistics.frames_received++;
    }
    if (n->measure)
        measure_chunk(n, from, count);
    sl_mix mix = {n->self_weight, n->row_weights, n->payloads, n->in.count};
    n->settings.algorithm->combine(&n->state, &mix, from, count);
    for (uint32_t i = 0; i < n->in.count; i++) {
        queue *q = n->row_queues[i];
        release(n, q->entries[q->head].token);
        q->head = (q->head + 1) % n->settings.inbox_chunks;
        q->count--;
    }
}

/* 1: the chunk is there from every in-neighbour; 0: not yet; negative: one of them has skipped it. */
static int has_come(const sl_node *n, uint32_t chunk, sl_error *error) {
    for (uint32_t i = 0; i < n->in.count; i++) {
        const queue *q = n->row_queues[i];
        if (q->count == 0)
            return 0;
        const arrival *a = &q->entries[q->head];
        if (a->round != n->round || a->chunk != chunk)
            return sl_fail(error, SL_EPROTO, "edge %u->%u, round %llu: chunk %u never came, chunk %u of round %llu did",
                           n->in.peers[i], n->settings.rank, (unsigned long long)n->round, chunk, a->chunk,
                           (unsigned long long)a->round);
    }
    return 1;
}

static int combine_what_came(sl_node *n, sl_error *error) {
    while (n->combined < n->chunk_count) {
        uint32_t own = n->settings.algorithm->combines_in_place ? n->sent : n->encoded;
        if (own <= n->combined)
            return 0;
        int come = has_come(n, n->combined, error);
        if (come <= 0)
            return come;
        combine_chunk(n, n->combined);
        n->combined++;
    }
    return 0;
}

static void end_round_if_complete(sl_node *n, sl_update *update) {
    if (!n->gradient_ready || n->combined < n->chunk_count || n->sent < n->chunk_count)
        return;
    if (n->settings.algorithm->settle != NULL)
        n->settings.algorithm->settle(&n->state, n->settings.dimension);
    n->statistics.neighbour_distance = n->measure ? sqrt(n->distance_squared) : NAN;
    update->round_done = true;
    update->finished_round = n->statistics;
    if (n->round == n->settings.rounds) {
        n->finished = update->finished = true;
        return;
    }
    n->round++;
    begin_round(n, update);
}

static int accept_gradient(sl_node *n, double loss, sl_update *update, sl_error *error) {
    if (!isfinite(loss))
        return sl_fail(error, SL_EDIVERGED,
                       "node %u, round %llu: the loss is %g; training diverged (learning rate %g): lower "
                       "optimizer.learning_rate or add optimizer.schedule.warmup_rounds",
                       n->settings.rank, (unsigned long long)n->round, loss, (double)n->state.sgd.learning_rate);
    n->gradient_ready = true;
    n->statistics.loss = loss;
    if (!n->published) {
        n->published = update->publish = true;
        update->round = n->round;
    }
    return 0;
}

static int name_peer_down(const sl_node *n, uint32_t peer, sl_error *error) {
    if (n->finished)
        return 0;
    return sl_fail(error, SL_EPEER, "edge %u->%u, round %llu: the neighbour is gone", peer, n->settings.rank,
                   (unsigned long long)n->round);
}

static int name_missing(const sl_node *n, sl_error *error) {
    for (uint32_t i = 0; i < n->in.count; i++)
        if (n->row_queues[i]->count == 0 && n->combined < n->chunk_count)
            return sl_fail(error, SL_EPEER, "edge %u->%u, round %llu: chunk %u of %u did not come in time",
                           n->in.peers[i], n->settings.rank, (unsigned long long)n->round, n->combined,
                           n->chunk_count);
    return sl_fail(error, SL_EPEER, "node %u, round %llu: %u of %u chunks left in time", n->settings.rank,
                   (unsigned long long)n->round, n->sent, n->chunk_count);
}

int sl_node_step(sl_node *n, const sl_event *event, sl_update *update, sl_error *error) {
    *update = (sl_update){0};
    n->released_count = 0;
    int result = 0;
    switch (event->type) {
    case SL_EVENT_START:
        assert(n->round == 0);
        n->round = 1;
        begin_round(n, update);
        break;
    case SL_EVENT_GRADIENT:
        assert(!n->gradient_ready);
        result = accept_gradient(n, event->loss, update, error);
        break;
    case SL_EVENT_RECEIVED:
        result = receive(n, event, error);
        break;
    case SL_EVENT_SENT:
        assert(event->chunk == n->sent && n->sent < n->encoded);
        n->sent++;
        break;
    case SL_EVENT_PEER_DOWN:
        result = name_peer_down(n, event->peer, error);
        break;
    case SL_EVENT_DEADLINE:
        result = name_missing(n, error);
        break;
    }
    if (result == 0 && n->round > 0 && !n->finished) {
        result = combine_what_came(n, error);
        if (result == 0)
            end_round_if_complete(n, update);
    }
    update->released = n->released;
    update->released_count = n->released_count;
    return result;
}

sl_payload sl_node_payload(sl_node *n, uint32_t chunk) {
    assert(n->published && chunk == n->encoded && chunk < n->chunk_count);
    const sl_algorithm *algorithm = n->settings.algorithm;
    size_t from = chunk_from(n, chunk), count = chunk_elements(n, chunk);
    if (algorithm->local != NULL)
        algorithm->local(&n->state, from, count);
    void *buffer = n->buffer ? (char *)n->buffer + chunk * n->buffer_stride : NULL;
    sl_payload payload = n->settings.compressor->encode(algorithm->publish(&n->state, from), count, buffer);
    n->encoded++;
    n->statistics.payload_bytes_sent += payload.bytes * n->out.count;
    n->statistics.frames_sent += n->out.count;
    return payload;
}

float *sl_node_model(sl_node *n) {
    return n->state.x;
}

float *sl_node_gradient_buffer(sl_node *n) {
    return n->state.g;
}

uint32_t sl_node_chunk_count(const sl_node *n) {
    return n->chunk_count;
}

uint64_t sl_node_round(const sl_node *n) {
    return n->round;
}

sl_row sl_node_out(const sl_node *n) {
    return n->out;
}

uint64_t sl_node_dropped(const sl_node *n) {
    return n->dropped;
}

size_t sl_node_regions(const sl_node *n, void **bases, size_t *bytes, size_t max) {
    void *all[SL_ALGORITHM_VECTORS_MAX + 4] = {n->state.x, n->state.g, n->state.m};
    memcpy(all + 3, n->state.extra, sizeof n->state.extra);
    size_t count = 0;
    for (size_t i = 0; i < 3 + SL_ALGORITHM_VECTORS_MAX && count < max; i++)
        if (all[i] != NULL) {
            bases[count] = all[i];
            bytes[count++] = n->settings.dimension * sizeof(float);
        }
    if (n->buffer != NULL && count < max) {
        bases[count] = n->buffer;
        bytes[count++] = n->buffer_stride * n->chunk_count;
    }
    return count;
}

size_t sl_node_memory(const sl_node *n) {
    void *bases[SL_ALGORITHM_VECTORS_MAX + 4];
    size_t bytes[SL_ALGORITHM_VECTORS_MAX + 4], total = 0;
    size_t count = sl_node_regions(n, bases, bytes, SL_ALGORITHM_VECTORS_MAX + 4);
    for (size_t i = 0; i < count; i++)
        total += bytes[i];
    return total;
}
