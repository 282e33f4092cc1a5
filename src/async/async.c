/* async.c - what both patterns share: memory, gradients, rounds; see async.h. */
#include "async/async.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async/owners.h"
#include "route/route.h"
#include "vec/asked.h"

static const double divergence_factor = 1e6;

static const sl_async_pattern *pattern_of(const sl_algorithm *algorithm) {
    static const sl_async_pattern *const patterns[] = {[SL_PATTERN_PAIRS] = &sl_async_pairs,
                                                       [SL_PATTERN_VERSIONS] = &sl_async_versions,
                                                       [SL_PATTERN_COMMITS] = &sl_async_commits};
    return patterns[algorithm->async->pattern];
}

/* ---- opening and closing ---- */

static bool allocate_vectors(sl_async *n) {
    const sl_node_settings *s = &n->settings;
    sl_state *state = &n->state;
    const size_t d = s->dimension;
    state->x = s->vec->allocate(d);
    state->g = s->vec->allocate(d);
    state->block = s->vec->on_host ? SL_BLOCK : d;
    state->scratch = s->vec->allocate(state->block);
    if (s->optimizer->momentum > 0)
        state->m = s->vec->allocate(d);
    n->direction = (sl_direction){.optimizer = s->optimizer,
                                  .vec = s->vec,
                                  .dimension = d,
                                  .tensor_ends = s->tensor_ends,
                                  .tensor_count = s->tensor_count};
    bool complete = state->x && state->g && state->scratch &&
                    (state->m || s->optimizer->momentum <= 0) && sl_direction_open(&n->direction);
    for (size_t i = 0; i < sl_algorithm_vectors(n->algorithm, &s->plan->config); i++) {
        state->extra[i] = s->vec->allocate(d);
        complete = complete && state->extra[i];
    }
    return complete;
}

static bool allocate_messages(sl_async *n) {
    const uint32_t peers = n->settings.turns ? n->ranks : n->inbox.peer_count;
    n->room = calloc(peers + 1u, sizeof *n->room);
    n->newest = calloc(peers + 1u, sizeof *n->newest);
    n->heard = calloc(peers + 1u, sizeof *n->heard);
    n->first = calloc(peers + 1u, sizeof *n->first);
    n->chosen = calloc(peers + 1u, sizeof *n->chosen);
    n->taken = calloc(peers + 1u, sizeof *n->taken);
    n->ending.told = calloc(peers + 1u, sizeof *n->ending.told);
    n->needs = calloc(peers + 1u, sizeof *n->needs);
    n->served.come = calloc(peers + 1u, sizeof *n->served.come);
    return n->ending.told != NULL && n->needs != NULL && n->served.come != NULL &&
           n->room != NULL && n->newest != NULL && n->heard != NULL && n->chosen != NULL &&
           n->taken != NULL && n->first != NULL;
}

static int no_memory(const sl_async *n, sl_error *error) {
    return sl_vec_no_memory(n->settings.vec, error, "node %u: vectors of %zu parameters",
                            n->settings.rank, n->settings.dimension);
}

static int open_codec(sl_async *n, sl_error *error) {
    const sl_node_settings *s = &n->settings;
    int result =
        sl_codec_open(&n->codec, &s->plan->config.compressor, s->dimension, s->part_bytes, error);
    if (result == 0)
        result = sl_encoder_open(&n->encoder, n->codec, s->vec, error);
    if (result == 0)
        result = sl_decoder_open(&n->decoder, n->codec, s->vec, error);
    if (result == 0)
        n->parts = sl_codec_parts(n->codec);
    return result;
}

/* Without edges: a server's are all others; the others' is the server. */
static bool is_peer(const sl_async *n, uint32_t rank) {
    const bool serves =
        n->settings.rank == n->server || n->state.config->server == SL_SERVER_SHARDED;
    return rank != n->settings.rank && sl_async_has(n, rank) && !sl_async_is_broken(n, rank) &&
           (serves || rank == n->server);
}

/* Of a view, without those to whom the edge is broken. */
static uint32_t list_peers(sl_async *n) {
    const bool has_edges = n->algorithm->route == SL_ROUTE_TOPOLOGY;
    const uint32_t *all = NULL, most = has_edges ? sl_topology_peers(n->settings.topology,
                                                                     n->settings.rank, &all)
                                                 : n->ranks;
    uint32_t count = 0;
    n->peers = all;
    if (has_edges && n->view == NULL)
        return most;
    free(n->all_peers);
    n->peers = n->all_peers = calloc(most + 1u, sizeof *n->all_peers);
    for (uint32_t i = 0; n->peers != NULL && i < most; i++)
        if (has_edges ? !sl_async_is_broken(n, all[i]) : is_peer(n, i))
            n->all_peers[count++] = has_edges ? all[i] : i;
    return count;
}

/* A server that is lost is followed by the lowest rank. */
static void find_server(sl_async *n) {
    const uint32_t wanted = n->state.config->server >= 0 ? (uint32_t)n->state.config->server : 0;
    n->server = sl_async_has(n, wanted) ? wanted : n->view->members.ranks[0];
}

static int open_all(sl_async *n, sl_error *error) {
    n->ranks = n->settings.ranks > n->state.nodes ? n->settings.ranks : n->state.nodes;
    find_server(n);
    const uint32_t count = list_peers(n);
    if (n->peers == NULL)
        return no_memory(n, error);
    int result = sl_algorithm_check_shapes(n->state.config, &n->state.shapes, error);
    if (result == 0 && n->pattern != &sl_async_commits)
        result = open_codec(n, error);
    if (result == 0 && sl_inbox_open(&n->inbox, count, n->settings.inbox_parts, 0) != 0)
        result = no_memory(n, error);
    if (result == 0 && !(allocate_vectors(n) && allocate_messages(n)))
        result = no_memory(n, error);
    if (result == 0)
        result = n->pattern->open(n, error);
    return result == 0 && sl_async_open_edges(n) != 0 ? no_memory(n, error) : result;
}

int sl_async_open(sl_async **out, const sl_node_settings *settings, sl_error *error) {
    const sl_algorithm_config *config = &settings->plan->config;
    const sl_algorithm *algorithm = sl_algorithm_of(config, error);
    if (algorithm == NULL)
        return SL_EINVAL;
    sl_async *n = calloc(1, sizeof *n);
    if (n == NULL)
        return sl_fail(error, SL_ENOMEM, "node %u: out of memory", settings->rank);
    assert(algorithm->async != NULL);
    n->settings = *settings;
    n->algorithm = algorithm;
    n->pattern = pattern_of(algorithm);
    n->loss_limit = settings->loss_limit;
    n->state = (sl_state){.vec = settings->vec,
                          .config = config,
                          .shapes = {settings->dimension, settings->tensor_ends,
                                     settings->tensor_rows, settings->tensor_count},
                          .dimension = settings->dimension,
                          .rank = settings->rank,
                          .place = settings->rank,
                          .nodes = sl_topology_nodes(settings->topology),
                          .period = sl_topology_period(settings->topology),
                          .seed = settings->seed,
                          .samples = settings->samples > 0 ? settings->samples : 1,
                          .step_size = (float)settings->plan->step_size,
                          .compressor = &config->compressor,
                          .first_exchange = 1,
                          .push_sum_weight = 1,
                          .is_finite = true};
    const int result = open_all(n, error);
    if (result != 0)
        sl_async_close(&n);
    else
        *out = n;
    return result;
}

void sl_async_close(sl_async **node) {
    sl_async *n = *node;
    if (n == NULL)
        return;
    const sl_vec_ops *vec = n->settings.vec;
    vec->release(n->state.x);
    vec->release(n->state.g);
    vec->release(n->state.m);
    vec->release(n->state.scratch);
    for (size_t i = 0; i < SL_ALGORITHM_VECTORS_MAX; i++)
        vec->release(n->state.extra[i]);
    sl_direction_close(&n->direction);
    sl_averager_close(&n->averager);
    free(n->accounts.ends);
    vec->release(n->undo);
    sl_async_close_edges(n);
    sl_inbox_end(&n->inbox);
    sl_inbox_close(&n->inbox);
    sl_decoder_close(&n->decoder);
    sl_encoder_close(&n->encoder);
    sl_codec_close(&n->codec);
    sl_owners_close(n);
    free(n->room);
    free(n->newest);
    free(n->heard);
    free(n->chosen);
    free(n->first);
    free(n->taken);
    free(n->at_rest.come);
    free(n->ending.told);
    free(n->needs);
    free(n->served.clocks);
    free(n->served.numbers);
    free(n->served.last_ns);
    free(n->row_peers);
    free(n->row_weights);
    free(n->served.waits);
    free(n->served.batch.early);
    free(n->served.batch.chosen);
    free(n->served.answers);
    free(n->served.come);
    free(n->all_peers);
    free(n->kept.memory);
    free(n->kept.count);
    free(n);
    *node = NULL;
}

/* ---- rounds ---- */

static int take_gradient(sl_async *n, double loss, sl_error *error) {
    assert(n->gradient == SL_GRADIENT_RUNNING);
    const int asked = sl_vec_ask(n->settings.vec, false, n->settings.rank, n->state.round, error);
    if (asked != 0)
        return asked; /* and the loss means nothing */
    if (n->loss_limit <= 0 && isfinite(loss))
        n->loss_limit = divergence_factor * (1 + fabs(loss));
    if (!(loss <= n->loss_limit))
        return sl_fail_node(error, SL_EDIVERGED, n->settings.rank, n->state.round,
                            "the loss is %g; training diverged (learning rate %g): lower "
                            "optimizer.learning_rate, or add optimizer.schedule.warmup_rounds",
                            loss, (double)n->state.sgd.learning_rate);
    n->gradient = SL_GRADIENT_HELD;
    n->statistics.loss = n->state.loss = loss;
    sl_direction_clip(&n->direction, n->state.g);
    if (n->state.sgd.learning_rate != 0)
        sl_direction_take(&n->direction, n->state.g, sl_async_point(n), 0, n->settings.dimension);
    return n->pattern->gradient != NULL ? n->pattern->gradient(n, error) : 0;
}

static bool is_right(const sl_async *n, const sl_event *e) {
    const sl_message message = {n->settings.seed, e->exchange, e->peer, e->step};
    if (e->silent)
        return e->part == 0 && e->payload.bytes == 0;
    if (n->pattern->is_right != NULL)
        return n->pattern->is_right(n, e);
    return e->part < n->parts && sl_decoder_check(n->decoder, &message, e->part, e->payload) == 0;
}

/* Of plain models, before anything is done with the part. */
static int check_norm(const sl_async *n, const sl_event *e, sl_error *error) {
    const double limit = n->settings.norm_limit;
    size_t from, count;
    if (limit <= 0 || e->silent || n->codec == NULL || !sl_codec_borrows(n->codec))
        return 0;
    sl_codec_part_range(n->codec, e->part, &from, &count);
    const sl_vec_ops *vec = n->settings.vec;
    const float *own = n->algorithm->stages[0].vector(&n->state);
    const double most = limit * sqrt(vec->norm2_squared(own + from, count)),
                 norm = sqrt(vec->norm2_squared(sl_async_bring(n, e->payload, 0).data, count));
    return most <= 0 || norm <= most
               ? 0
               : sl_fail_edge(error, SL_EPROTO, e->peer, n->settings.rank, n->state.round,
                              "part %u of the neighbour's message has a norm of %g, over %g times "
                              "the own part's (transport.norm_limit)",
                              e->part, norm, limit);
}

static int receive(sl_async *n, const sl_event *e, sl_error *error) {
    if (e->token == NULL && n->pattern == &sl_async_pairs && e->step > SL_AVERAGER_BUSY)
        return sl_accounts_take(n, e, error);
    const uint32_t slot = sl_async_slot(n, e->peer);
    if (slot == n->inbox.peer_count || !is_right(n, e))
        return sl_fail_edge(error, SL_EPROTO, e->peer, n->settings.rank, n->state.round,
                            "part %u of step %u with %zu bytes is no %s payload", e->part, e->step,
                            e->payload.bytes, n->algorithm->name);
    const int result = check_norm(n, e, error);
    if (result != 0)
        return result;
    n->statistics.payload_bytes_received += e->payload.bytes;
    n->statistics.frames_received++;
    return n->pattern->received(n, slot, e, error);
}

/* Before START: the peer is another process, of which nothing has come. */
static void renew(sl_async *n, uint32_t peer) {
    const uint32_t slot = sl_async_slot(n, peer);
    if (slot == n->inbox.peer_count)
        return;
    sl_inbox_empty(&n->inbox, &n->inbox.queues[slot]);
    n->newest[slot] = 0;
    n->heard[slot] = false;
    if (n->pattern == &sl_async_pairs) {
        sl_averager_cut(&n->averager, peer);
        n->averager.rests = n->awaits_model;
    }
}

void sl_async_await_model(sl_async *n) {
    n->awaits_model = n->averager.rests = true;
}

static int begin(sl_async *n, sl_update *update, sl_error *error) {
    if (n->at_rest.serves_count > 0 && n->served.clocks == NULL)
        return no_memory(n, error);
    if (n->at_rest.rests && n->view == NULL) {
        n->awaits_model = false;
        sl_async_go_on_from_pieces(n);
        return 0;
    }
    if (n->awaits_model)
        n->averager.rests = n->rests;
    n->awaits_model = false;
    if (n->algorithm->start != NULL)
        n->algorithm->start(&n->state, n->settings.dimension);
    if (n->pattern->start != NULL)
        n->pattern->start(n);
    else
        sl_async_begin_round(n, update);
    return 0;
}

static int name_late(const sl_async *n, sl_error *error) {
    if (sl_async_name_wait(n, error) == 0)
        return sl_fail_node(error, SL_EPEER, n->settings.rank, n->state.round,
                            "a part of its message has not been taken in time");
    const size_t used = strlen(error->text);
    snprintf(error->text + used, sizeof error->text - used, " in time");
    return error->code;
}

/* What it was at when its pieces were saved. All that its last round has sent is counted already.
 */
static void go_on_loaded(sl_async *n, sl_update *update) {
    const sl_round *last = &n->statistics;
    n->is_loaded = false;
    update->compute = n->gradient == SL_GRADIENT_RUNNING;
    update->round = n->state.round;
    update->finished = n->gradient == SL_GRADIENT_NONE && n->state.round == n->settings.rounds;
    update->round_done = update->finished;
    update->finished_round = (sl_round){.round = last->round,
                                        .loss = last->loss,
                                        .learning_rate = last->learning_rate,
                                        .neighbour_distance = last->neighbour_distance,
                                        .push_sum_weight = n->state.push_sum_weight,
                                        .staleness = last->staleness};
}

/* What came under the view before goes back. */
static int take_view(sl_async *n, const sl_node_view *view, sl_update *update, sl_error *error) {
    const bool is_new = n->state.round == 0;
    sl_inbox_end(&n->inbox);
    n->settings.topology = view->topology;
    n->settings.plan = view->plan;
    n->state.config = &view->plan->config;
    n->state.nodes = view->members.count;
    n->view = view;
    n->comes = n->state.round == 0 || view->round > n->state.round;
    find_server(n);
    if (is_new || (n->comes && n->pattern == &sl_async_versions)) {
        const uint64_t first = view->round > 0 ? view->round : 1; /* 0: it has not begun */
        n->state.round = first - is_new; /* nobody waits for rounds that it has missed */
        n->state.exchange = sl_async_exchanges_before(n, first);
    }
    const uint32_t count = list_peers(n);
    int result = n->peers != NULL &&
                         sl_inbox_open(&n->inbox, count, n->settings.inbox_parts, 0) == 0 &&
                         sl_async_open_edges(n) == 0
                     ? n->pattern->begin_view(n, error)
                     : no_memory(n, error);
    sl_async_note(n, &(sl_act){.kind = SL_ACT_VIEW, .number = view->exchange});
    if (n->is_loaded)
        go_on_loaded(n, update);
    return result == 0 && is_new ? begin(n, update, error) : result;
}

static int take(sl_async *n, const sl_event *event, sl_update *update, sl_error *error) {
    switch (event->type) {
    case SL_EVENT_START:
        return begin(n, update, error);
    case SL_EVENT_GRADIENT:
        return take_gradient(n, event->loss, error);
    case SL_EVENT_RECEIVED:
        return receive(n, event, error);
    case SL_EVENT_SENT:
        return n->pattern->left(n, error);
    case SL_EVENT_ACKNOWLEDGED:
        if (n->pattern->acknowledged != NULL)
            n->pattern->acknowledged(n, event->peer);
        return 0;
    case SL_EVENT_DEADLINE:
        return name_late(n, error);
    case SL_EVENT_TURN:
    case SL_EVENT_NOTIFIED:
        return 0;
    case SL_EVENT_REST:
        n->rests = true;
        if (n->pattern->rest != NULL)
            n->pattern->rest(n);
        return 0;
    case SL_EVENT_CUT:
        n->rests = true;
        n->pattern->cut(n);
        return 0;
    case SL_EVENT_GATHER:
        return n->pattern->gather != NULL ? n->pattern->gather(n, error) : 0;
    case SL_EVENT_PEER_DOWN:
        if (n->pattern->lose != NULL)
            n->pattern->lose(n, event->peer);
        return 0;
    case SL_EVENT_VIEW:
        n->rests = false;
        return take_view(n, event->view, update, error);
    case SL_EVENT_RENEWED:
        renew(n, event->peer);
        return 0;
    case SL_EVENT_RELEASED:
        n->rests = false;
        if (n->pattern->release != NULL)
            n->pattern->release(n);
        return 0;
    case SL_EVENT_FINAL:
    case SL_EVENT_ASIDE:
        break;
    }
    return sl_fail_node(error, SL_EINVAL, n->settings.rank, n->state.round,
                        "an event for nodes that share rounds");
}

int sl_async_step(sl_async *n, const sl_event *event, sl_update *update, sl_error *error) {
    *update = (sl_update){0};
    n->inbox.released_count = 0;
    n->act_count = 0;
    n->is_encoding = n->is_encoding && event->type != SL_EVENT_SENT &&
                     event->type != SL_EVENT_CUT && event->type != SL_EVENT_VIEW;
    n->now_ns = event->now_ns;
    int result = take(n, event, update, error);
    if (result == 0)
        result = n->pattern->advance(n, event->type == SL_EVENT_TURN, update, error);
    if (n->rests && !n->is_loaded)
        sl_async_note_rest(n);
    n->turns = update->turn;
    update->released = n->inbox.released;
    update->released_count = n->inbox.released_count;
    update->acts = n->acts;
    update->act_count = n->act_count;
    return result;
}

int sl_async_next(sl_async *n, sl_async_part *out, sl_row *to, sl_error *error) {
    const bool any = n->pattern->next(n, out, to);
    if (n->failed == 0)
        return any;
    const int result = sl_vec_ask(n->settings.vec, true, n->settings.rank, n->state.round, error);
    return result != 0
               ? result
               : sl_fail_node(error, n->failed, n->settings.rank, n->state.round,
                              "a message could not be encoded: %s", sl_error_meaning(n->failed));
}

void sl_async_expect(sl_async *n, const sl_act *next) {
    n->repeats = true;
    n->expected = next;
}

uint32_t sl_async_served(const sl_async *n) {
    return n->averager.averaged;
}

bool sl_async_averages(const sl_async *n) {
    return n->averager.phase != SL_AVERAGER_FREE || sl_accounts_are_open(n);
}

uint32_t sl_async_come(const sl_async *n, uint32_t index) {
    return index < n->owner_count ? n->owners[index].come : 0;
}

uint32_t sl_async_server(const sl_async *n, uint32_t index) {
    return index < n->owner_count ? n->owners[index].server : UINT32_MAX;
}

uint64_t sl_async_asks(const sl_async *n) {
    return n->averager.phase == SL_AVERAGER_ASKS ? n->averager.event : 0;
}

int sl_async_drain(sl_async *n, sl_error *error) {
    assert(n->gradient == SL_GRADIENT_NONE);
    return n->pattern->drain != NULL ? n->pattern->drain(n, error) : 0;
}

void sl_async_give(const sl_async *n, uint32_t peer, uint64_t number, sl_act *out) {
    const bool serves = n->at_rest.come != NULL;
    *out = (sl_act){.kind = SL_ACT_GIVES,
                    .peer = peer,
                    .number = number,
                    .versions = serves ? n->at_rest.come : &n->at_rest.is_over,
                    .version_count = !n->rests ? 0
                                     : serves  ? (uint32_t)n->at_rest.come_count
                                               : 1};
}

bool sl_async_is_over(const sl_async *n) {
    return n->pattern->is_over(n);
}

const uint64_t *sl_async_newest(const sl_async *n) {
    return n->newest;
}

bool sl_async_rests(const sl_async *n) {
    return n->rests && n->pattern->is_still(n);
}

bool sl_async_is_whole(const sl_async *n) {
    return n->gradient == SL_GRADIENT_NONE && n->state.round == n->settings.rounds &&
           (n->pattern->is_whole == NULL || n->pattern->is_whole(n));
}

const char *sl_async_awaits(const sl_async *n, uint32_t peer) {
    const uint32_t slot = sl_async_slot(n, peer);
    const bool is_done = n->gradient == SL_GRADIENT_NONE && n->state.round == n->settings.rounds;
    return slot == n->inbox.peer_count || n->gradient == SL_GRADIENT_RUNNING || is_done ||
                   sl_async_rests(n) /* nobody sends */
               ? NULL
               : n->pattern->awaits(n, slot);
}

int sl_async_name_wait(const sl_async *n, sl_error *error) {
    for (uint32_t slot = 0; slot < n->inbox.peer_count; slot++) {
        const char *what = sl_async_awaits(n, n->peers[slot]);
        if (what != NULL)
            return sl_fail_edge(error, SL_EPEER, n->peers[slot], n->settings.rank, n->state.round,
                                "%s has not come", what);
    }
    return 0;
}

bool sl_async_rests_late(const sl_async *n) {
    return n->pattern->rests_late;
}

bool sl_async_is_followed(const sl_async *n) {
    return n->pattern != &sl_async_pairs;
}

bool sl_async_turns(const sl_async *n) {
    return n->turns;
}

float *sl_async_model(sl_async *n) {
    return n->state.x;
}

const float *sl_async_point(const sl_async *n) {
    return n->algorithm->point != NULL ? n->algorithm->point(&n->state) : n->state.x;
}

float *sl_async_gradient(sl_async *n) {
    return n->state.g;
}

double sl_async_push_sum_weight(const sl_async *n) {
    return n->state.push_sum_weight;
}

uint64_t sl_async_round(const sl_async *n) {
    return n->state.round;
}

uint32_t sl_async_parts(const sl_async *n) {
    return n->parts;
}

uint32_t sl_async_peers(const sl_async *n, const uint32_t **peers) {
    *peers = n->peers;
    return n->inbox.peer_count;
}
