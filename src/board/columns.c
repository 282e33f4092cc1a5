/* columns.c - the members of the document that are about time: curves and strip. */
#include <math.h>

#include "base/json.h"
#include "board/state.h"
#include "folder/record_json.h"

enum { POINTS_MAX = 1000, TIMES_MAX = 240 };

/* ---- curves ---- */

typedef struct sl_curves {
    json_t *round, *loss, *accuracy, *averaged, *distance, *predicted, *apart, *bytes;
} sl_curves;

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

static void add_point(sl_curves *c, const sl_board_state *s, size_t at) {
    const sl_recorded *r = &s->records[at];
    sl_json_append(&c->round, json_integer((json_int_t)r->round));
    sl_json_append(&c->loss, mean_json(r->loss, r->losses));
    sl_json_append(&c->accuracy, mean_json(r->accuracy, r->accuracies));
    sl_json_append(&c->averaged, sl_number_json(r->averaged));
    sl_json_append(&c->distance, sl_number_json(r->distance));
    sl_json_append(&c->predicted, sl_number_json(predict(s, at)));
    sl_json_append(&c->apart, mean_json(r->apart, r->aparts));
    sl_json_append(&c->bytes, mean_json(r->bytes, r->nodes));
}

/* Of more than fit each second, third, ... and always the last. */
json_t *sl_board_curves_json(const sl_board_state *s) {
    sl_curves c = {json_array(), json_array(), json_array(), json_array(),
                   json_array(), json_array(), json_array(), json_array()};
    const size_t stride = (s->record_count + POINTS_MAX - 1) / POINTS_MAX;
    for (size_t i = 0; i < s->record_count; i++)
        if ((s->record_count - 1 - i) % stride == 0)
            add_point(&c, s, i);
    json_t *curves = json_object();
    sl_json_set(&curves, "round", c.round);
    sl_json_set(&curves, "loss", c.loss);
    sl_json_set(&curves, "accuracy", c.accuracy);
    sl_json_set(&curves, "averaged", c.averaged);
    sl_json_set(&curves, "distance", c.distance);
    sl_json_set(&curves, "predicted", c.predicted);
    sl_json_set(&curves, "apart", c.apart);
    sl_json_set(&curves, "bytes", c.bytes);
    return curves;
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

typedef struct sl_strip_row {
    json_t *until, *round, *compute, *encode, *exchange, *wait;
} sl_strip_row;

static void add_interval(sl_strip_row *r, const sl_sample *before, const sl_sample *after) {
    const sl_phases p = sl_phases_between(before, after);
    sl_json_append(&r->until, sl_number_json(after->time_s));
    sl_json_append(&r->round, json_integer((json_int_t)after->round));
    sl_json_append(&r->compute, sl_number_json(p.compute));
    sl_json_append(&r->encode, sl_number_json(p.encode));
    sl_json_append(&r->exchange, sl_number_json(p.exchange));
    sl_json_append(&r->wait, sl_number_json(p.wait));
}

static json_t *row_json(const sl_board_state *s, uint32_t rank) {
    const sl_board_node *n = &s->nodes[rank];
    const size_t stride = (n->sample_count + TIMES_MAX - 1) / TIMES_MAX;
    sl_strip_row r = {json_array(), json_array(), json_array(),
                      json_array(), json_array(), json_array()};
    const sl_sample *before = NULL;
    for (size_t i = 0; i < n->sample_count; i++)
        if ((n->sample_count - 1 - i) % stride == 0) {
            add_interval(&r, before, &n->samples[i]);
            before = &n->samples[i];
        }
    json_t *row = json_object();
    sl_json_set(&row, "rank", json_integer(rank));
    sl_json_set(&row, "until", r.until);
    sl_json_set(&row, "round", r.round);
    sl_json_set(&row, "compute", r.compute);
    sl_json_set(&row, "encode", r.encode);
    sl_json_set(&row, "exchange", r.exchange);
    sl_json_set(&row, "wait", r.wait);
    sl_json_set(&row, "down", downs_json(n));
    return row;
}

json_t *sl_board_strip_json(const sl_board_state *s) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->node_count; i++)
        sl_json_append(&list, row_json(s, i));
    return list;
}
