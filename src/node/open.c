/* open.c - a node's memory: opening, closing, and what the driver may ask of it. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/round_up.h"
#include "node/incoming.h"

static const size_t batch_bytes = 4 << 20; /* that are combined at once on a device */

/* ---- opening and closing ---- */

/* Vectors for what comes of in-neighbours, of which there are `width`. */
static size_t count_replicas(const sl_algorithm *a, const sl_algorithm_config *c,
                             const sl_shapes *shapes, size_t width) {
    if (a->received_length != NULL)
        return (width * a->received_length(c, shapes) + shapes->dimension - 1) / shapes->dimension;
    if (a->keeps_messages || a->keeps_received)
        return width;
    return !a->keeps_replicas ? 0 : c->replicas == SL_REPLICAS_SUM ? 1 : width;
}

static bool allocate_replicas(sl_node *n) {
    sl_state *s = &n->state;
    const uint32_t width = sl_route_width(&n->view.route);
    const size_t count = count_replicas(n->algorithm, &n->settings.plan->config, &s->shapes, width);
    const bool are_parts = n->algorithm->received_length != NULL && count > 0;
    s->slots = width;
    s->replicas = calloc(count + 1, sizeof *s->replicas);
    s->numbers = calloc(width + 1u, sizeof *s->numbers);
    s->received = are_parts ? s->vec->allocate(count * s->dimension) : NULL;
    bool complete = s->replicas != NULL && s->numbers != NULL && (s->received || !are_parts);
    for (size_t i = 0; complete && i < count; i++, s->replica_count++) {
        s->replicas[i] =
            are_parts ? s->received + i * s->dimension : s->vec->allocate(s->dimension);
        complete = s->replicas[i] != NULL;
    }
    return complete;
}

static bool take_vector(sl_node *n, float **out) {
    *out = n->settings.vec->allocate(n->settings.dimension);
    n->vectors[n->vector_count++] = out;
    return *out != NULL;
}

static bool allocate_vectors(sl_node *n) {
    const sl_node_settings *s = &n->settings;
    const bool has_momentum = s->optimizer->momentum > 0,
               voids = s->turns && sl_algorithm_voids(n->algorithm);
    n->state.g = s->gradient;
    n->state.block = s->vec->on_host ? SL_BLOCK : s->dimension;
    n->state.scratch = s->vec->allocate(n->state.block);
    n->direction = (sl_direction){.optimizer = s->optimizer,
                                  .vec = s->vec,
                                  .dimension = s->dimension,
                                  .tensor_ends = s->tensor_ends,
                                  .tensor_count = s->tensor_count};
    n->own_number_count = sl_algorithm_numbers(n->algorithm, &s->plan->config);
    n->state.own_numbers = calloc(n->own_number_count + 1, sizeof *n->state.own_numbers);
    bool complete = n->state.scratch != NULL && n->state.own_numbers != NULL &&
                    sl_direction_open(&n->direction) && take_vector(n, &n->state.x) &&
                    (n->state.g != NULL || take_vector(n, &n->state.g)) &&
                    (!has_momentum || take_vector(n, &n->state.m));
    for (size_t i = 0; i < sl_algorithm_vectors(n->algorithm, &s->plan->config); i++)
        complete = complete && take_vector(n, &n->state.extra[i]);
    for (size_t i = 0; voids && i < 1u + has_momentum; i++)
        complete = complete && take_vector(n, &n->kept[i]);
    return complete;
}

static sl_shapes shapes_of(const sl_node_settings *s) {
    return (sl_shapes){s->dimension, s->tensor_ends, s->tensor_rows, s->tensor_count};
}

size_t sl_node_vector_bytes(const sl_node_settings *s) {
    const sl_algorithm_config *config = &s->plan->config;
    const sl_algorithm *algorithm = sl_algorithm_of(config, NULL);
    const sl_shapes shapes = shapes_of(s);
    const uint32_t *peers;
    size_t vectors = 1u + (s->gradient == NULL) + (s->optimizer->momentum > 0) +
                     sl_direction_vectors(s->optimizer);
    if (algorithm != NULL && sl_algorithm_voids(algorithm) && s->turns)
        vectors += 1u + (s->optimizer->momentum > 0);
    if (algorithm != NULL)
        vectors += sl_algorithm_vectors(algorithm, config) +
                   count_replicas(algorithm, config, &shapes,
                                  sl_topology_peers(s->topology, s->rank, &peers));
    return vectors * s->dimension * sizeof(float);
}

static bool sends_from_vectors(const sl_node *n) {
    return n->settings.vec->on_host || n->settings.direct;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* For encoded parts, in the memory that messages leave from. */
static void *take_buffer(const sl_node *n, size_t bytes) {
    const sl_vec_ops *vec = n->settings.vec;
    return n->settings.direct ? (void *)vec->allocate(bytes / sizeof(float))
                              : vec->allocate_host(bytes);
}

static void release_buffer(sl_node *n) {
    if (n->settings.direct)
        n->settings.vec->release(n->buffer.memory);
    else
        n->settings.vec->release_host(n->buffer.memory);
    n->buffer.memory = NULL;
}

/* One that is long enough stays, as it is registered. */
static bool allocate_buffer(sl_node *n) {
    const sl_codecs *codecs = &n->view.codecs;
    size_t longest = 0; /* of the parts that are not sent from where they stand */
    for (const sl_codec_set *set = codecs->sets; set < codecs->sets + codecs->set_count; set++)
        if (set->encodes || !sends_from_vectors(n)) {
            n->buffer.parts = (uint32_t)larger(sl_codec_parts(set->codec), n->buffer.parts);
            longest = larger(sl_codec_part_bytes_max(set->codec), longest);
        }
    n->buffer.stride = sl_round_up(longest, SL_VEC_ALIGNMENT);
    if (n->buffer.stride * n->buffer.parts > n->buffer.bytes) {
        release_buffer(n);
        n->buffer.bytes = n->buffer.stride * n->buffer.parts;
        n->buffer.memory = take_buffer(n, n->buffer.bytes);
    }
    for (size_t c = 0; n->buffer.memory != NULL && !n->settings.direct && c < codecs->set_count;
         c++)
        sl_encoder_stage(codecs->sets[c].encoder, n->buffer.memory);
    return n->buffer.parts == 0 || n->buffer.memory != NULL;
}

/* Is the own part combined with those of others? */
static bool ranks(const sl_node *n) {
    bool any = false;
    for (size_t i = 0; i < n->algorithm->stage_count; i++)
        any = any || n->algorithm->stages[i].ranked;
    return any;
}

/* On a device a launch costs as much for one part as for many. Those of a batch wait for each
 * other: half of what may be here is left to who sends them. Messages that are kept are measured
 * part by part. */
static uint32_t choose_batch(const sl_node *n, size_t width) {
    const sl_node_settings *s = &n->settings;
    if (s->vec->on_host || s->direct || n->algorithm->keeps_messages || width == 0)
        return 1;
    const size_t part = sl_round_up(n->view.codecs.part_bytes_max, SL_VEC_ALIGNMENT),
                 fit = batch_bytes / (width * part), half = s->inbox_parts / 2,
                 batch = s->inbox_parts > 0 && half < fit ? half : fit;
    return batch > 1 ? (uint32_t)batch : 1;
}

static bool open_staging(sl_node *n, size_t width) {
    n->view.batch = choose_batch(n, width);
    return sl_staging_open(&n->view.staging, &n->settings, width * n->view.batch,
                           n->view.codecs.part_bytes_max) == 0;
}

static bool allocate_steps(sl_node *n) {
    const uint32_t width = sl_route_width(&n->view.route);
    n->room.incoming = calloc(width + 1u, sizeof *n->room.incoming);
    n->room.groups = calloc(width + 1u, sizeof *n->room.groups);
    n->room.parts = calloc(width + 1u, sizeof *n->room.parts);
    n->room.own = calloc(n->view.codecs.parts_max, sizeof *n->room.own);
    n->room.own_sizes = calloc(n->view.codecs.parts_max, sizeof *n->room.own_sizes);
    if (n->room.incoming == NULL || n->room.groups == NULL || n->room.parts == NULL ||
        n->room.own == NULL || n->room.own_sizes == NULL || !open_staging(n, width + ranks(n)))
        return false;
    n->room.most = n->view.batch > 1 ? n->view.codecs.parts_max : 1;
    n->room.sizes = calloc((width + 1u) * (size_t)n->room.most, sizeof *n->room.sizes);
    return n->room.sizes != NULL;
}

/* Each bucket's parts, of which only the last is shorter. */
static size_t count_measured(const sl_node *n) {
    const sl_ranges *buckets = n->settings.buckets;
    return n->view.codecs.parts_max + (buckets != NULL ? buckets->count : 0);
}

static bool allocate_of_view(sl_node *n) {
    return allocate_replicas(n) && allocate_buffer(n) && allocate_steps(n) &&
           sl_measure_open(&n->view.measured, n->settings.vec, sl_route_width(&n->view.route),
                           count_measured(n), n->settings.dimension) == 0 &&
           sl_inbox_open(&n->inbox, n->view.route.peer_count, n->settings.inbox_parts,
                         sl_staging_tokens_max(&n->view.staging)) == 0;
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
    if (s->plan->phase_is_epoch && s->epoch_rounds == 0)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.warmup: has a fraction for each epoch, and there are none here; "
                       "set algorithm.warmup_k, which has a number for each round");
    if (s->rank >= sl_topology_nodes(s->topology))
        return sl_fail(error, SL_EINVAL, "node: rank %u is not one of 0..%u", s->rank,
                       sl_topology_nodes(s->topology) - 1);
    return 0;
}

static int no_memory(const sl_node *n, sl_error *error) {
    return sl_vec_no_memory(n->settings.vec, error, "node %u: vectors of %zu parameters",
                            n->settings.rank, n->settings.dimension);
}

/* What hangs on who the members are, and on their edges. members NULL: all nodes. */
static int open_view(sl_node *n, const sl_members *members, sl_error *error) {
    const sl_node_settings *s = &n->settings;
    const sl_algorithm_config *config = &s->plan->config;
    int result = sl_route_open(&n->view.route, n->algorithm, config, s->topology, members, s->rank,
                               &n->state.shapes, s->buckets, error);
    n->state.config = config;
    n->state.nodes = n->view.route.nodes;
    n->state.place = n->view.route.place;
    n->state.period = sl_topology_period(s->topology);
    n->state.step_size = (float)s->plan->step_size;
    n->state.mixed = s->plan->mixed;
    if (result == 0)
        result = sl_codecs_open(&n->view.codecs, s, &n->view.route,
                                s->turns || n->state.first_exchange > 1, error);
    return result == 0 && !allocate_of_view(n) ? no_memory(n, error) : result;
}

static void close_view(sl_node *n) {
    const sl_vec_ops *vec = n->settings.vec;
    for (size_t i = 0; n->state.received == NULL && i < n->state.replica_count; i++)
        vec->release(n->state.replicas[i]);
    vec->release(n->state.received);
    n->state.received = NULL;
    free(n->state.replicas);
    free(n->state.numbers);
    n->state.replicas = NULL;
    n->state.numbers = NULL;
    n->state.replica_count = 0;
    sl_staging_close(&n->view.staging);
    sl_measure_close(&n->view.measured);
    sl_codecs_close(&n->view.codecs);
    sl_inbox_end(&n->inbox);
    sl_fold_close(&n->view.fold);
    sl_route_close(&n->view.route);
    n->view = (sl_view_state){0};
    free(n->room.incoming);
    free(n->room.groups);
    free(n->room.parts);
    free(n->room.own);
    free(n->room.own_sizes);
    free(n->room.sizes);
    n->room = (sl_room){0};
    n->buffer.parts = 0;
    n->state.alone = false;
}

/* Does the view do without an edge that members exchange along? Where all wait for all, nobody
 * exchanges then: all nodes find the same. */
static int find_gap(const sl_node *n, const sl_node_view *view, bool *out, sl_error *error) {
    const sl_algorithm_config *config = &view->plan->config;
    int result = 0;
    *out = false;
    for (uint32_t i = 0; i < view->broken_count && result == 0 && !*out; i++) {
        sl_route route;
        result = sl_route_open(&route, n->algorithm, config, view->topology, &view->members,
                               view->broken[i].low, &n->state.shapes, NULL, error);
        if (result == 0)
            *out = sl_route_slot(&route, view->broken[i].high) < route.peer_count;
        sl_route_close(&route);
    }
    return result;
}

int sl_node_turn(sl_node *n, const sl_node_view *view, sl_error *error) {
    if (n->settings.vec->async != NULL)
        n->settings.vec->fence(NULL); /* what has come is read then */
    sl_incoming_collect(n);
    assert(!n->round.exchanging);
    close_view(n); /* who went further in another part has sent what this node does not come to */
    assert(n->inbox.held == 0);
    n->settings.topology = view->topology;
    n->settings.plan = view->plan;
    n->state.first_exchange = view->exchange + 1;
    n->state.in = (sl_row){0}; /* the old view's are gone */
    int result = open_view(n, &view->members, error);
    if (result == 0 && sl_algorithm_voids(n->algorithm))
        result = find_gap(n, view, &n->view.is_cut, error);
    return result == 0 && sl_fold_open(&n->view.fold, view, &n->view.route) != 0
               ? no_memory(n, error)
               : result;
}

int sl_node_open(sl_node **out, const sl_node_settings *settings, sl_error *error) {
    int result = check_settings(settings, error);
    if (result != 0)
        return result;
    const sl_algorithm_config *config = &settings->plan->config;
    sl_algorithm_config form = *config;
    if (settings->lends)
        form.variant = SL_VARIANT_COMBINE_WHILE_ADAPT;
    const sl_algorithm *algorithm = sl_algorithm_of(&form, error);
    sl_node *n = algorithm != NULL ? calloc(1, sizeof *n) : NULL;
    if (n == NULL)
        return algorithm == NULL
                   ? SL_EINVAL
                   : sl_fail(error, SL_ENOMEM, "node %u: out of memory", settings->rank);
    n->settings = *settings;
    n->algorithm = algorithm;
    n->state = (sl_state){.vec = settings->vec,
                          .shapes = shapes_of(settings),
                          .lends = settings->lends,
                          .dimension = settings->dimension,
                          .rank = settings->rank,
                          .seed = settings->seed,
                          .samples = settings->samples > 0 ? settings->samples : 1,
                          .first_exchange = 1,
                          .push_sum_weight = 1,
                          .is_finite = true};
    n->life.loss_limit = settings->loss_limit;
    result = sl_algorithm_check_shapes(config, &n->state.shapes, error);
    if (result == 0)
        result = allocate_vectors(n) ? open_view(n, NULL, error) : no_memory(n, error);
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
    if (n->rooms.memory != NULL && !n->settings.lends)
        n->state.x = NULL;
    for (size_t i = 0; i < n->vector_count; i++)
        vec->release(*n->vectors[i]);
    sl_direction_close(&n->direction);
    vec->release(n->state.scratch);
    free(n->state.own_numbers);
    close_view(n);
    sl_inbox_close(&n->inbox);
    release_buffer(n);
    free(n);
    *node = NULL;
}

/* ---- asking ---- */

double sl_node_push_sum_weight(const sl_node *n) {
    return n->state.push_sum_weight;
}

uint64_t sl_node_dropped(const sl_node *n) {
    return n->dropped;
}

uint32_t sl_node_parts_max(const sl_node *n) {
    return n->view.codecs.parts_max;
}

size_t sl_node_part_bytes_max(const sl_node *n) {
    return n->view.codecs.part_bytes_max;
}

uint32_t sl_node_peers(const sl_node *n, const uint32_t **peers) {
    *peers = n->view.route.peers;
    return n->view.route.peer_count;
}

size_t sl_node_regions(const sl_node *n, void **bases, size_t *bytes, size_t max) {
    const size_t kept = (n->kept[0] != NULL) + (n->kept[1] != NULL),
                 vectors = sends_from_vectors(n) ? n->vector_count - kept : 0;
    size_t count = 0;
    for (; count < vectors && count < max; count++) {
        bases[count] = *n->vectors[count];
        bytes[count] = n->settings.dimension * sizeof(float);
    }
    if (n->buffer.memory != NULL && count < max) {
        bases[count] = n->buffer.memory;
        bytes[count++] = n->buffer.stride * n->buffer.parts;
    }
    return count;
}

size_t sl_node_memory(const sl_node *n) {
    return (n->vector_count + (n->settings.gradient != NULL) + n->state.replica_count +
            sl_direction_vectors(n->settings.optimizer) +
            (n->rooms.memory != NULL) * (SL_NODE_ROOMS - !n->settings.lends)) *
               n->settings.dimension * sizeof(float) +
           (n->buffer.memory != NULL ? n->buffer.stride * n->buffer.parts : 0);
}
