/* record_json.c - see record_json.h. */
#include "folder/record_json.h"

#include <math.h>

#include "base/json.h"

json_t *sl_number_json(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *times_json(const sl_times *t) {
    return json_pack("{so so so so so so}", "total", sl_number_json(t->total), "gradient",
                     sl_number_json(t->gradient), "encode", sl_number_json(t->encode), "exchange",
                     sl_number_json(t->exchange), "wait", sl_number_json(t->wait), "combine",
                     sl_number_json(t->combine));
}

/* Of nodes that go at their own times. */
static json_t *with_staleness(json_t *line, uint64_t staleness) {
    if (staleness > 0)
        sl_json_set(&line, "staleness", json_integer((json_int_t)staleness));
    return line;
}

/* Of their simulation. */
static json_t *with_virtual(json_t *line, double virtual_s) {
    if (virtual_s > 0)
        sl_json_set(&line, "virtual_s", sl_number_json(virtual_s));
    return line;
}

json_t *sl_record_json(const sl_record *r) {
    json_t *line = json_pack(
        "{sI sI so so so so so so sI sI sI sI so so}", "round", (json_int_t)r->round.round, "node",
        (json_int_t)r->rank, "loss", sl_number_json(r->round.loss), "test_loss",
        sl_number_json(r->evaluation.loss), "accuracy", sl_number_json(r->evaluation.accuracy),
        "learning_rate", sl_number_json(r->round.learning_rate), "neighbour_distance",
        sl_number_json(r->round.neighbour_distance), "push_sum_weight",
        sl_number_json(r->round.push_sum_weight), "bytes_sent", (json_int_t)r->bytes_sent,
        "bytes_received", (json_int_t)r->bytes_received, "messages_sent",
        (json_int_t)r->messages_sent, "messages_silent", (json_int_t)r->messages_silent, "seconds",
        times_json(&r->times), "time", sl_number_json(r->time_s));
    return with_staleness(with_virtual(line, r->virtual_s), r->round.staleness);
}

/* A line of metrics, with whom the node refused. */
static json_t *node_json(const sl_record *record) {
    json_t *node = sl_record_json(record), *refused = json_object();
#define ADD(kind, name)                                                                            \
    sl_json_set(&refused, name, json_integer((json_int_t)record->refused[kind]));
    SL_REFUSED_KINDS_X(ADD)
#undef ADD
    sl_json_set(&node, "refused", refused);
    sl_json_set(&node, "doubtful", json_integer((json_int_t)record->doubtful));
    return node;
}

json_t *sl_consensus_json(uint64_t round, const sl_consensus *c) {
    json_t *line = json_pack(
        "{sI so so so so}", "round", (json_int_t)round, "consensus_distance",
        sl_number_json(c->distance), "test_loss", sl_number_json(c->mean_model.loss), "accuracy",
        sl_number_json(c->mean_model.accuracy), "bytes_sent", sl_number_json(c->bytes_sent));
    return with_virtual(line, c->virtual_s);
}

const sl_record *sl_summary_averaged(const sl_summary *s) {
    for (size_t i = 0; i < s->record_count; i++)
        if (s->records[i].averaged)
            return &s->records[i];
    return NULL;
}

/* Of any node, as all have the same: how far apart the models were that were averaged last. */
static json_t *average_json(const sl_record *record) {
    return json_pack("{so}", "distance_before", sl_number_json(record->averaged_distance));
}

static json_t *loss_json(const sl_loss *l) {
    return json_pack(
        "{sI sI sb sI so so ss}", "node", (json_int_t)l->rank, "round", (json_int_t)l->round,
        "left", l->left, "restarts", (json_int_t)l->restarts, "restarted_s",
        l->restarts > 0 ? json_real(l->restarted_s) : json_null(), "returned",
        l->returned > 0 ? json_integer((json_int_t)l->returned) : json_null(), "why", l->why);
}

static json_t *losses_json(const sl_summary *s) {
    json_t *all = json_array();
    for (size_t i = 0; i < s->loss_count; i++)
        sl_json_append(&all, loss_json(&s->losses[i]));
    return all;
}

static json_t *ranks_json(const sl_summary *s) {
    json_t *all = json_array();
    for (uint32_t i = 0; i < s->member_count; i++)
        sl_json_append(&all, json_integer(s->members[i]));
    return all;
}

/* Whom the others have gone on without, and when parts of the network became one again, if any. */
static void set_members(json_t **root, const sl_summary *s) {
    if (s->member_count > 0) {
        sl_json_set(root, "members", ranks_json(s));
        sl_json_set(root, "minority", json_boolean(s->minority));
    }
    if (s->missing != NULL)
        sl_json_set(root, "missing", json_string(s->missing));
    if (s->loss_count > 0)
        sl_json_set(root, "lost", losses_json(s));
}

static json_t *evaluation_json(const sl_evaluation *e) {
    return json_pack("{so so}", "loss", sl_number_json(e->loss), "accuracy",
                     sl_number_json(e->accuracy));
}

static json_t *best_json(uint64_t round, const sl_evaluation *e) {
    return json_pack("{sI so so}", "round", (json_int_t)round, "loss", sl_number_json(e->loss),
                     "accuracy", sl_number_json(e->accuracy));
}

json_t *sl_summary_json(const sl_summary *s, uint64_t best_round, const sl_evaluation *best) {
    json_t *nodes = json_array();
    for (size_t i = 0; i < s->record_count; i++)
        sl_json_append(&nodes, node_json(&s->records[i]));
    json_t *root =
        json_pack("{ss sI sI so so}", "driver", s->driver, "rounds", (json_int_t)s->rounds, "nodes",
                  (json_int_t)s->nodes, "seconds", sl_number_json(s->seconds), "per_node", nodes);
    if (s->has_consensus) {
        sl_json_set(&root, "mean_model", evaluation_json(&s->consensus.mean_model));
        sl_json_set(&root, "consensus_distance", sl_number_json(s->consensus.distance));
    }
    const sl_record *averaged = sl_summary_averaged(s);
    if (averaged != NULL)
        sl_json_set(&root, "final_average", average_json(averaged));
    set_members(&root, s);
    if (best_round > 0)
        sl_json_set(&root, "best", best_json(best_round, best));
    if (s->predicted_seconds > 0)
        sl_json_set(&root, "predicted_seconds", sl_number_json(s->predicted_seconds));
    return root;
}
