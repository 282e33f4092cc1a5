/* versions.c - a vector published in each round, and of each neighbour the version that the
 * algorithm's rule names; see async.h.
 *
 * A node publishes its version t with its t-th gradient, and combines when the rule finds a version
 * of every in-neighbour. Versions are whole messages. Those older than what was combined are
 * dropped; newer ones wait in the queue. Where the choice hangs on what has come, it is made in
 * TURN: what comes at one instant counts whatever its order.
 */
#include <stdlib.h>
#include <string.h>

#include "async/state.h"
#include "route/route.h"

/* A node is so many rounds ahead of a neighbour that it sends to, at most. */
static uint32_t ahead_max(const sl_async *n) {
    const sl_algorithm_config *c = n->state.config;
    const uint64_t lag = c->staleness > c->overlap_rounds ? c->staleness : c->overlap_rounds;
    return sl_topology_window(n->settings.topology) * (uint32_t)(lag + 1);
}

/* Steps. Of a view as it begins, and of one that is to end, a silent message says the number. */
enum { VERSION, FROM_NOW_ON, UP_TO_HERE };

static bool weighs(const sl_async *n) {
    return n->algorithm->matrix == SL_MATRIX_COLUMN;
}

static int open(sl_async *n, sl_error *error) {
    n->out = (sl_publication){.number = n->state.exchange,
                              .sent = n->algorithm->async->sends_first ? 0 : n->parts,
                              .scalar = n->state.push_sum_weight};
    return n->settings.inbox_parts > 0
               ? sl_async_open_kept(n, (ahead_max(n) + 1) * n->parts, n->codec, error)
               : 0;
}

static bool is_out(const sl_async *n) {
    return n->out.sent == n->parts;
}

/* ---- messages ---- */

/* Older versions than this one are never needed again. */
static void drop_older(sl_async *n, uint32_t slot, uint64_t version) {
    sl_queue *queue = &n->inbox.queues[slot];
    for (const sl_arrival *a; (a = sl_queue_first(queue)) != NULL && a->exchange < version;) {
        sl_inbox_release(&n->inbox, a->token);
        sl_queue_drop_first(queue);
    }
}

/* A neighbour that came back may be behind: this node waits until it is near enough, and combines
 * only the version that the rule will name then. */
static void drop_late(sl_async *n, uint32_t slot) {
    const uint64_t t = n->state.exchange + !n->out.open,
                   named = n->algorithm->async->version(&n->state, t, UINT64_MAX),
                   newest = n->newest[slot];
    if (n->view != NULL && !n->repeats)
        drop_older(n, slot, n->algorithm->async->sends_first && newest < named ? newest : named);
}

static int received(sl_async *n, uint32_t slot, const sl_event *e, sl_error *error) {
    const sl_arrival *last = sl_queue_at(&n->inbox.queues[slot], n->inbox.queues[slot].count - 1);
    if (e->silent && e->step == FROM_NOW_ON && !n->heard[slot]) {
        n->newest[slot] = n->first[slot] = e->exchange;
        n->needs[slot] = e->scalar >= 0 && e->scalar < 0x1p53 ? (uint64_t)e->scalar : 0;
        n->heard[slot] = true;
        sl_inbox_refuse(&n->inbox, e->token);
        return 0;
    }
    if (e->silent && e->step == UP_TO_HERE) {
        n->ending.told[slot] = true;
        sl_inbox_refuse(&n->inbox, e->token);
        return 0;
    }
    const uint32_t expected = last == NULL || last->part + 1 == n->parts ? 0 : last->part + 1;
    const uint64_t number = expected > 0 ? last->exchange : n->newest[slot] + n->heard[slot];
    if (e->step != VERSION || e->silent || e->part != expected || e->exchange < number ||
        (expected > 0 && e->exchange != number))
        return sl_fail_edge(error, SL_EPROTO, e->peer, n->settings.rank, n->state.round,
                            "part %u of version %llu came, and not part %u of version %llu",
                            e->part, (unsigned long long)e->exchange, expected,
                            (unsigned long long)number);
    const int result = sl_async_keep(n, slot, e, error);
    if (result == 0 && e->part + 1 == n->parts) {
        if (!n->heard[slot] && n->algorithm->async->sends_first)
            n->first[slot] = e->exchange;
        n->newest[slot] = e->exchange;
        n->heard[slot] = true;
        n->ending.told[slot] = false;
        drop_late(n, slot);
    }
    return result;
}

/* Does this version go along no such edge? It may be broken; or the receiver has come further, as
 * it said when the view began, and needs only later ones. */
static bool is_kept_back(const sl_async *n, uint32_t peer, uint64_t number) {
    const uint32_t slot = sl_async_slot(n, peer);
    return sl_async_is_broken(n, peer) ||
           (weighs(n) && slot < n->inbox.peer_count && number < n->needs[slot]);
}

/* Of a row, the edges that this version goes along. */
static sl_row whole_edges(const sl_async *n, const sl_row *row, uint64_t number, bool out) {
    if (n->row_peers == NULL)
        return *row;
    uint32_t *peers = n->row_peers + (out ? n->ranks : 0);
    double *weights = n->row_weights + (out ? n->ranks : 0);
    sl_row whole = {.count = 0, .peers = peers, .weights = weights};
    for (uint32_t k = 0; k < row->count; k++)
        if (out ? !is_kept_back(n, row->peers[k], number) : !sl_async_is_broken(n, row->peers[k])) {
            peers[whole.count] = row->peers[k];
            weights[whole.count++] = row->weights[k];
        }
    return whole;
}

static sl_row in_of(const sl_async *n, uint64_t number) {
    const sl_row row = sl_topology_in(n->settings.topology, number, n->settings.rank);
    return whole_edges(n, &row, number, false);
}

static sl_row out_of(const sl_async *n, uint64_t number) {
    const sl_row row = sl_topology_out(n->settings.topology, number, n->settings.rank);
    return whole_edges(n, &row, number, true);
}

static sl_row out_row(const sl_async *n) {
    return out_of(n, n->out.number > 0 ? n->out.number : 1);
}

static const float *published(const sl_async *n) {
    return n->algorithm->stages[0].vector(&n->state);
}

static bool next(sl_async *n, sl_async_part *out, sl_row *to) {
    *to = (sl_row){.count = n->inbox.peer_count, .peers = n->peers};
    if (n->awaits_model)
        return false;
    if (n->stands) {
        const uint64_t needs =
            n->algorithm->async->version(&n->state, n->stands_at + 1, UINT64_MAX);
        *out = (sl_async_part){
            .number = n->stands_at, .step = FROM_NOW_ON, .silent = true, .scalar = (double)needs};
        return true;
    }
    if (is_out(n) && n->ending.tells) {
        *out = (sl_async_part){
            .number = n->out.number, .step = UP_TO_HERE, .silent = true, .scalar = 1};
        return true;
    }
    if (is_out(n))
        return false;
    *to = out_row(n);
    *out =
        (sl_async_part){.number = n->out.number,
                        .part = n->out.sent,
                        .scalar = n->out.scalar,
                        .payload = sl_async_encode(n, published(n), n->out.number, 0, n->out.sent)};
    return true;
}

static int left(sl_async *n, sl_error *error) {
    (void)error;
    size_t from, count;
    if (n->stands) {
        n->stands = false;
        return 0;
    }
    if (is_out(n)) {
        n->ending.tells = false;
        return 0;
    }
    sl_codec_part_range(n->codec, n->out.sent, &from, &count);
    sl_async_count_sent(n, count * sizeof(float), n->out.sent == 0, false, out_row(n).count);
    n->out.sent++;
    return 0;
}

/* ---- rounds ---- */

/* Where it counts who gets what: have all said, of this view, from where on? */
static bool have_all_stood(const sl_async *n) {
    bool all = true;
    for (uint32_t slot = 0; weighs(n) && n->view != NULL && slot < n->inbox.peer_count; slot++)
        all = all && n->heard[slot];
    return all;
}

static void publish(sl_async *n) {
    n->out = (sl_publication){
        .number = ++n->state.exchange, .open = true, .scalar = n->state.push_sum_weight};
    sl_async_sweep(n, n->algorithm->stages[0].prepare);
}

/* Those whose versions the round under way combines. */
static sl_row in_row(const sl_async *n) {
    const uint64_t t = n->state.exchange,
                   number = n->algorithm->async->version(&n->state, t, UINT64_MAX);
    return number > 0 ? in_of(n, number) : (sl_row){0};
}

/* Of a run that is repeated: the one that was taken then. */
static uint64_t version_again(const sl_async *n, uint32_t k, uint64_t newest) {
    const sl_act *next = n->expected;
    const bool combines = next != NULL && next->kind == SL_ACT_COMBINE && k < next->version_count;
    return combines && next->versions[k] <= newest ? next->versions[k] : SL_VERSION_NONE;
}

/* Of those before the view the first one stands in, or none. */
static uint64_t version_of(const sl_async *n, uint32_t k, uint32_t slot) {
    const sl_async_rule *rule = n->algorithm->async;
    if (!n->heard[slot])
        return SL_VERSION_NONE;
    if (n->repeats)
        return version_again(n, k, n->newest[slot]);
    const uint64_t version = rule->version(&n->state, n->state.exchange, n->newest[slot]);
    if (version == SL_VERSION_NONE || version > n->first[slot])
        return version;
    return rule->sends_first ? n->first[slot] : 0;
}

/* Is there a version of each of them? Then they are chosen. */
static bool choose(sl_async *n, const sl_row *in) {
    for (uint32_t k = 0; k < in->count; k++) {
        const uint32_t slot = sl_async_slot(n, in->peers[k]);
        const uint64_t version = version_of(n, k, slot);
        if (version == SL_VERSION_NONE)
            return false;
        n->chosen[slot] = version;
    }
    return true;
}

static int combine(sl_async *n, float self_weight, const sl_row *in, sl_error *error) {
    n->state.in = *in;
    n->state.self_weight = self_weight;
    int result = 0;
    for (uint32_t k = 0; k < in->count; k++)
        drop_older(n, sl_async_slot(n, in->peers[k]), n->chosen[sl_async_slot(n, in->peers[k])]);
    for (uint32_t part = 0; part < n->parts && result == 0; part++) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < in->count; k++) {
            const uint32_t slot = sl_async_slot(n, in->peers[k]);
            if (n->chosen[slot] == 0 && !n->algorithm->async->sends_first)
                continue; /* it has none of the view */
            n->room[count] =
                sl_async_part_of(n, in->peers[k], sl_queue_at(&n->inbox.queues[slot], part),
                                 (float)in->weights[k], count);
            n->room[count++].neighbour = k;
        }
        result = sl_async_combine(n, self_weight, count, part, error);
    }
    sl_async_sweep(n, n->algorithm->settle);
    if (result == 0 && n->algorithm->finish != NULL)
        n->algorithm->finish(&n->state);
    return result;
}

/* What goes along no edge stays here. */
static float own_weight(const sl_async *n) {
    const sl_topology *topology = n->settings.topology;
    const sl_row own = sl_topology_in(topology, n->state.exchange, n->settings.rank),
                 out = sl_topology_out(topology, n->state.exchange, n->settings.rank);
    float weight = sl_route_own_weight(&own, &out);
    for (uint32_t k = 0; k < out.count; k++)
        if (is_kept_back(n, out.peers[k], n->state.exchange))
            weight += (float)out.weights[k];
    return weight;
}

static int end_exchange(sl_async *n, const sl_row *in, sl_update *update, sl_error *error) {
    const int result = combine(n, own_weight(n), in, error);
    n->out.open = false;
    for (uint32_t k = 0; k < in->count; k++) {
        n->taken[k] = n->chosen[sl_async_slot(n, in->peers[k])];
        if (n->state.exchange - n->taken[k] > n->statistics.staleness)
            n->statistics.staleness = n->state.exchange - n->taken[k];
    }
    sl_async_note(n, &(sl_act){.kind = SL_ACT_COMBINE,
                               .number = n->state.exchange,
                               .versions = n->taken,
                               .version_count = in->count});
    return result == 0 ? sl_async_end_round(n, NULL, update, error) : result;
}

static int advance(sl_async *n, bool turn, sl_update *update, sl_error *error) {
    if (n->gradient != SL_GRADIENT_HELD || !is_out(n) || n->rests)
        return 0;
    if (n->is_over && !sl_async_may_end(n)) /* it was cut again before that */
        return 0;
    if (n->is_over) {
        n->is_over = false;
        return sl_async_end_round(n, NULL, update, error);
    }
    if (!n->out.open && !sl_async_exchanges(n))
        return sl_async_end_round(n, n->algorithm->local, update, error);
    if (!n->out.open) {
        if (have_all_stood(n))
            publish(n);
        return 0;
    }
    const sl_row in = in_row(n);
    if (!choose(n, &in))
        return 0;
    update->turn = !turn;
    return turn ? end_exchange(n, &in, update, error) : 0;
}

/* Versions later than those that the last exchange took, up to the latest that is here. */
static int add_rest(sl_async *n, sl_error *error) {
    const uint64_t own = n->state.exchange,
                   taken = n->algorithm->async->version(&n->state, own - n->out.open, UINT64_MAX);
    float self_weight = n->out.open ? own_weight(n) : 1;
    uint64_t last = own;
    int result = 0;
    for (uint32_t slot = 0; slot < n->inbox.peer_count; slot++)
        last = n->newest[slot] > last ? n->newest[slot] : last;
    for (uint64_t number = taken + 1; number <= last && result == 0; number++) {
        const sl_row in = in_of(n, number);
        for (uint32_t k = 0; k < in.count; k++) {
            const uint32_t slot = sl_async_slot(n, in.peers[k]);
            const bool has = number > n->first[slot] && number <= n->newest[slot];
            n->chosen[slot] = has ? number : 0;
        }
        result = combine(n, self_weight, &in, error);
        self_weight = 1;
    }
    memcpy(n->first, n->newest, n->inbox.peer_count * sizeof *n->first);
    return result;
}

/* ---- rest ---- */

/* All that was sent is to come, where it counts. */
static void rest(sl_async *n) {
    n->ending.tells = weighs(n) && !n->awaits_model && !n->ending.is_cut;
}

/* What has not left does not leave. */
static void cut(sl_async *n) {
    n->out.sent = n->parts;
    n->ending.is_cut = true;
    n->ending.tells = false;
}

/* Has this neighbour not said yet that it has sent all? */
static bool owes_word(const sl_async *n, uint32_t slot) {
    return weighs(n) && !n->ending.is_cut && !n->awaits_model && !n->ending.told[slot];
}

static bool is_still(const sl_async *n) {
    bool all = is_out(n) && !n->ending.tells;
    for (uint32_t slot = 0; slot < n->inbox.peer_count; slot++)
        all = all && !owes_word(n, slot);
    return all;
}

/* Or since the view before. */
static bool is_over(const sl_async *n) {
    return n->is_over || n->out.open;
}

/* Nobody is lost: what is on its way belongs to the sums of models and weights. Of a round that is
 * not over its point stands, and so does a last model, which was recorded. */
static int gather(sl_async *n, sl_error *error) {
    const uint32_t count = n->inbox.peer_count;
    if (!weighs(n) || n->ending.is_cut || n->ending.keeps || n->state.round == 0)
        return 0;
    if (n->expected != NULL && n->expected->kind == SL_ACT_GATHER)
        memcpy(n->newest, n->expected->versions, count * sizeof *n->newest);
    memcpy(n->taken, n->newest, count * sizeof *n->taken);
    sl_async_note(n,
                  &(sl_act){.kind = SL_ACT_GATHER, .versions = n->taken, .version_count = count});
    n->state.point_stands = !n->out.open;
    const int result = add_rest(n, error);
    n->state.point_stands = false;
    n->is_over = is_over(n);
    n->out.open = false;
    n->ending.keeps = true;
    return result;
}

/* After a loss push-sum begins with weights 1; what was on its way is lost with them. */
static int begin_weights(sl_async *n, sl_error *error) {
    const sl_row nobody = {0};
    const int result = n->is_over ? combine(n, 1, &nobody, error) : 0;
    n->state.push_sum_weight = 1;
    n->algorithm->start(&n->state, n->settings.dimension);
    return result;
}

/* Versions go on, from the models that are there. Of one that was published, and not
 * combined, all is still the node's own. */
static int begin_anew(sl_async *n, sl_error *error) {
    n->is_over = is_over(n) && !n->comes;
    if (n->is_over)
        sl_async_note(n, &(sl_act){.kind = SL_ACT_COMBINE});
    const bool begins = weighs(n) && (n->comes || !n->ending.keeps);
    const int result = begins ? begin_weights(n, error) : 0;
    n->ending.tells = n->ending.keeps = n->ending.is_cut = false;
    memset(n->ending.told, 0, n->ranks * sizeof *n->ending.told);
    n->stands = !n->algorithm->async->sends_first;
    n->stands_at = n->state.exchange;
    memset(n->needs, 0, n->ranks * sizeof *n->needs);
    memset(n->first, 0, n->ranks * sizeof *n->first);
    memset(n->newest, 0, n->ranks * sizeof *n->newest);
    memset(n->heard, 0, n->ranks * sizeof *n->heard);
    return result == 0 ? open(n, error) : result;
}

static int make_rows(sl_async *n, sl_error *error) {
    free(n->row_peers);
    free(n->row_weights);
    n->row_peers = NULL;
    n->row_weights = NULL;
    if (n->view->broken_count == 0 && !weighs(n))
        return 0;
    n->row_peers = calloc(2 * (n->ranks + 1u), sizeof *n->row_peers);
    n->row_weights = calloc(2 * (n->ranks + 1u), sizeof *n->row_weights);
    return n->row_peers != NULL && n->row_weights != NULL
               ? 0
               : sl_fail(error, SL_ENOMEM, "node %u: out of memory", n->settings.rank);
}

static int begin_view(sl_async *n, sl_error *error) {
    const int result = begin_anew(n, error);
    return result == 0 ? make_rows(n, error) : result;
}

static const char *awaits(const sl_async *n, uint32_t slot) {
    if (n->rests)
        return is_out(n) && owes_word(n, slot) ? "word that it has sent all" : NULL;
    if (!n->out.open && !n->heard[slot] && !have_all_stood(n))
        return "word of where it stands";
    if (!n->out.open || !is_out(n))
        return NULL;
    const sl_row in = in_row(n);
    const uint32_t k = sl_peer_index(in.peers, in.count, n->peers[slot]);
    return k < in.count && version_of(n, k, slot) == SL_VERSION_NONE
               ? "a version of its model that is new enough"
               : NULL;
}

/* Each neighbour publishes as often as this node, and has heard all of it. */
static bool is_whole(const sl_async *n) {
    const sl_row in = in_of(n, n->state.exchange);
    bool whole = is_out(n) && !n->stands;
    for (uint32_t k = 0; k < in.count; k++)
        whole = whole && n->newest[sl_async_slot(n, in.peers[k])] == n->state.exchange;
    return whole;
}

const sl_async_pattern sl_async_versions = {.open = open,
                                            .received = received,
                                            .next = next,
                                            .left = left,
                                            .advance = advance,
                                            .drain = add_rest,
                                            .rest = rest,
                                            .cut = cut,
                                            .is_still = is_still,
                                            .gather = gather,
                                            .begin_view = begin_view,
                                            .rests_late = true,
                                            .is_whole = is_whole,
                                            .is_over = is_over,
                                            .awaits = awaits};
