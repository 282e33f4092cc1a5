/* columns.c - the members of the document that are about time: curves and strip. */
#include <math.h>

#include "base/json.h"
#include "board/state.h"
#include "folder/record_json.h"

enum {
    POINTS_MAX = 500,
    TIMES_MAX = 240, /* of a node, and of all together */
    TIMES_MIN = 16,
    TIMES_OF_ALL = 6000
};

/* Empty ones. */
static json_t *open_columns(const char *const *names, size_t count) {
    json_t *columns = json_object();
    for (size_t i = 0; i < count; i++)
        sl_json_set(&columns, names[i], json_array());
    return columns;
}

static void add(json_t **columns, const char *name, json_t *value) {
    if (json_array_append_new(json_object_get(*columns, name), value) == 0)
        return;
    json_decref(*columns);
    *columns = NULL;
}

/* ---- curves ---- */

static const char *const curves[] = {"round",    "loss",      "accuracy", "averaged",
                                     "distance", "predicted", "apart",    "bytes"};

static json_t *mean_json(double sum, uint32_t count) {
    return sl_number_json(count > 0 ? sum / count : NAN);
}

/* As averaging alone would leave of the recorded round before. */
static double predict(const sl_board_state *s, size_t at) {
    if (at == 0)
        return NAN;
    const sl_recorded *before = &s->records[at - 1];
    return before->distance * pow(s->rho, (double)(s->records[at].round - before->round));
}

static void add_point(json_t **to, const sl_board_state *s, size_t at) {
    const sl_recorded *r = &s->records[at];
    add(to, "round", json_integer((json_int_t)r->round));
    add(to, "loss", mean_json(r->loss, r->losses));
    add(to, "accuracy", mean_json(r->accuracy, r->accuracies));
    add(to, "averaged", sl_number_json(r->averaged));
    add(to, "distance", sl_number_json(r->distance));
    add(to, "predicted", sl_number_json(predict(s, at)));
    add(to, "apart", mean_json(r->apart, r->aparts));
    add(to, "bytes", mean_json(r->bytes, r->nodes));
}

/* Of more than fit each second, third, ... and always the last. */
json_t *sl_board_curves_json(const sl_board_state *s) {
    json_t *columns = open_columns(curves, sizeof curves / sizeof *curves);
    const size_t stride = (s->record_count + POINTS_MAX - 1) / POINTS_MAX;
    for (size_t i = 0; i < s->record_count; i++)
        if ((s->record_count - 1 - i) % stride == 0)
            add_point(&columns, s, i);
    return columns;
}

/* ---- strip ---- */

static double more(double after, double before) {
    return fmax(0, after - before);
}

/* An exchange runs beside the rest: its own time is what nothing else explains. */
sl_phases sl_phases_between(const sl_sample *before, const sl_sample *after) {
    static const sl_sample begin = {0};
    const sl_sample *b = before != NULL ? before : &begin;
    const double encode = more(after->encode, b->encode) + more(after->combine, b->combine);
    sl_phases p = {.compute = more(after->gradient, b->gradient),
                   .encode = encode,
                   .wait = more(after->wait, b->wait)};
    const double rest = more(after->total, b->total) - p.compute - p.encode - p.wait;
    p.exchange = fmax(0, fmin(rest, more(after->exchange, b->exchange) - p.wait - p.encode));
    return p;
}

static json_t *downs_json(const sl_board_node *n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n->down_count && !isnan(n->epoch_s); i++)
        sl_json_append(&list, json_pack("[fo]", n->downs[i].from_s - n->epoch_s,
                                        sl_number_json(n->downs[i].until_s - n->epoch_s)));
    return list;
}

static const char *const row[] = {"until", "round", "compute", "encode", "exchange", "wait"};

static void add_interval(json_t **to, const sl_sample *before, const sl_sample *after) {
    const sl_phases p = sl_phases_between(before, after);
    add(to, "until", sl_number_json(after->time_s));
    add(to, "round", json_integer((json_int_t)after->round));
    add(to, "compute", sl_number_json(p.compute));
    add(to, "encode", sl_number_json(p.encode));
    add(to, "exchange", sl_number_json(p.exchange));
    add(to, "wait", sl_number_json(p.wait));
}

static json_t *row_json(const sl_board_state *s, uint32_t rank, size_t most) {
    const sl_board_node *n = &s->nodes[rank];
    const size_t stride = (n->sample_count + most - 1) / most;
    json_t *columns = open_columns(row, sizeof row / sizeof *row);
    const sl_sample *before = NULL;
    for (size_t i = 0; i < n->sample_count; i++)
        if ((n->sample_count - 1 - i) % stride == 0) {
            add_interval(&columns, before, &n->samples[i]);
            before = &n->samples[i];
        }
    sl_json_set(&columns, "rank", json_integer(rank));
    sl_json_set(&columns, "down", downs_json(n));
    return columns;
}

json_t *sl_board_strip_json(const sl_board_state *s) {
    json_t *list = json_array();
    const size_t share = TIMES_OF_ALL / (s->node_count + 1), most = share > TIMES_MAX   ? TIMES_MAX
                                                                    : share < TIMES_MIN ? TIMES_MIN
                                                                                        : share;
    for (uint32_t i = 0; i < s->node_count; i++)
        sl_json_append(&list, row_json(s, i, most));
    return list;
}
