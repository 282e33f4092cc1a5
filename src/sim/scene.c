/* scene.c - see scene.h. */
#include "sim/scene.h"

#include <stdlib.h>
#include <string.h>

int sl_scene_open(sl_scene *s, const sl_experiment *experiment, size_t dimension, sl_error *error) {
    const uint32_t nodes = sl_experiment_ranks(experiment);
    *s = (sl_scene){.experiment = experiment, .dimension = dimension};
    s->ranks = calloc(nodes, sizeof *s->ranks);
    return s->ranks != NULL
               ? sl_cast_open(&s->cast, nodes, sl_topology_nodes(experiment->topology), error)
               : sl_fail(error, SL_ENOMEM, "simulator: out of memory for %u nodes", nodes);
}

static void close_view(sl_scene_view *v) {
    sl_grouping_close(&v->group);
    free(v);
}

void sl_scene_close(sl_scene *s) {
    while (s->made != NULL) {
        sl_scene_view *view = s->made;
        s->made = view->before;
        close_view(view);
    }
    free(s->ranks);
    sl_cast_close(&s->cast);
}

/* Opened among these; it lives as long as the scene. */
static int make_view(sl_scene *s, const sl_log_entry *like, sl_scene_view **out, sl_error *error) {
    const uint32_t *ranks = like->ranks, count = (uint32_t)like->members;
    sl_scene_view *v = calloc(1, sizeof *v);
    int result = v != NULL
                     ? sl_grouping_open(&v->group, s->experiment, s->dimension, ranks, count, error)
                     : sl_fail(error, SL_ENOMEM, "simulator: out of memory for a view");
    if (result != 0) {
        free(v);
        return result;
    }
    const sl_grouping *g = &v->group;
    v->view = (sl_node_view){.round = like->round,
                             .exchange = like->exchange,
                             .members = {g->ranks, count},
                             .topology = g->topology,
                             .plan = &g->plan,
                             .broken = like->broken,
                             .broken_count = (uint32_t)like->broken_count};
    v->before = s->made;
    s->made = *out = v;
    return 0;
}

int sl_scene_turn(sl_scene *s, uint64_t round, uint64_t exchange, const sl_scene_view **out,
                  sl_error *error) {
    sl_scene_view *v = NULL;
    const uint32_t count = sl_cast_members(&s->cast, s->ranks);
    const sl_log_entry of = {
        .round = round, .exchange = exchange, .ranks = s->ranks, .members = count};
    const int result = make_view(s, &of, &v, error);
    *out = v;
    return result;
}

static bool is_of(const sl_scene_view *v, const sl_log_entry *e) {
    return v->view.round == e->round && v->view.exchange == e->exchange &&
           v->group.count == e->members && v->view.broken_count == e->broken_count &&
           memcmp(v->group.ranks, e->ranks, v->group.count * sizeof *v->group.ranks) == 0;
}

int sl_scene_repeat(sl_scene *s, const sl_log_entry *e, const sl_scene_view **out,
                    sl_error *error) {
    sl_scene_view *v = s->made;
    while (v != NULL && !is_of(v, e))
        v = v->before;
    const int result = v == NULL ? make_view(s, e, &v, error) : 0;
    *out = v;
    return result;
}
