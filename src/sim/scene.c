/* scene.c - see scene.h. */
#include "sim/scene.h"

#include <stdlib.h>
#include <string.h>

int sl_scene_open(sl_scene *s, const sl_experiment *experiment, size_t dimension, sl_error *error) {
    const uint32_t nodes = sl_experiment_ranks(experiment);
    *s = (sl_scene){.experiment = experiment, .dimension = dimension};
    s->sides_before = calloc(nodes, sizeof *s->sides_before);
    s->views = calloc(nodes, sizeof *s->views);
    return s->sides_before != NULL && s->views != NULL
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
    free(s->sides_before);
    free(s->views);
    sl_cast_close(&s->cast);
}

bool sl_scene_has(const sl_scene *s, uint32_t rank) {
    return s->cast.sides[rank] != SL_ABSENT;
}

bool sl_scene_parts(const sl_scene *s, uint32_t rank, uint32_t other) {
    return other != rank && s->sides_before[other] == s->sides_before[rank] &&
           s->cast.sides[other] != s->cast.sides[rank];
}

/* ---- views ---- */

/* Does each of them stand under a view of just these already? */
static bool stands(const sl_scene *s, const uint32_t *ranks, uint32_t count) {
    const sl_scene_view *view = s->views[ranks[0]];
    for (uint32_t k = 0; k < count; k++)
        if (s->views[ranks[k]] != view || s->sides_before[ranks[k]] == SL_ABSENT)
            return false;
    return count ==
           (view != NULL ? view->view.members.count : sl_topology_nodes(s->experiment->topology));
}

/* Opened among these; it lives as long as the scene. */
static int make_view(sl_scene *s, const uint32_t *ranks, uint32_t count, uint64_t round,
                     uint64_t exchange, sl_scene_view **out, sl_error *error) {
    sl_scene_view *v = calloc(1, sizeof *v);
    int result = v != NULL
                     ? sl_grouping_open(&v->group, s->experiment, s->dimension, ranks, count, error)
                     : sl_fail(error, SL_ENOMEM, "simulator: out of memory for a view");
    if (result != 0) {
        free(v);
        return result;
    }
    const sl_grouping *g = &v->group;
    v->view = (sl_view){.round = round,
                        .exchange = exchange,
                        .members = {g->ranks, count},
                        .topology = g->topology,
                        .plan = &g->plan};
    v->before = s->made;
    s->made = *out = v;
    return 0;
}

int sl_scene_turn(sl_scene *s, uint32_t side, uint64_t round, uint64_t exchange,
                  const sl_scene_view **out, sl_error *error) {
    sl_scene_view *v = NULL;
    uint32_t *ranks = malloc(s->cast.nodes * sizeof *ranks);
    const uint32_t count = ranks != NULL ? sl_cast_members(&s->cast, side, ranks) : 0;
    const bool wanted = count > 0 && !stands(s, ranks, count);
    int result = 0;
    *out = NULL;
    if (ranks == NULL)
        result = sl_fail(error, SL_ENOMEM, "simulator: out of memory for %u nodes", s->cast.nodes);
    else if (wanted)
        result = make_view(s, ranks, count, round, exchange, &v, error);
    free(ranks);
    if (result != 0 || !wanted)
        return result;
    for (uint32_t k = 0; k < count; k++)
        s->views[v->group.ranks[k]] = v;
    *out = v;
    return 0;
}

static bool is_of(const sl_scene_view *v, const sl_log_entry *e) {
    return v->view.round == e->round && v->view.exchange == e->exchange &&
           v->group.count == e->members &&
           memcmp(v->group.ranks, e->ranks, v->group.count * sizeof *v->group.ranks) == 0;
}

int sl_scene_repeat(sl_scene *s, const sl_log_entry *e, const sl_scene_view **out,
                    sl_error *error) {
    sl_scene_view *v = s->made;
    while (v != NULL && !is_of(v, e))
        v = v->before;
    const int result =
        v == NULL ? make_view(s, e->ranks, (uint32_t)e->members, e->round, e->exchange, &v, error)
                  : 0;
    *out = v;
    return result;
}

static uint32_t size_before(const sl_scene *s, uint32_t side) {
    uint32_t size = 0;
    for (uint32_t i = 0; i < s->cast.nodes; i++)
        size += s->sides_before[i] == side;
    return size;
}

uint32_t sl_scene_leader(const sl_scene *s, const sl_scene_view *view) {
    uint32_t leader = SL_ABSENT, most = 0;
    for (uint32_t k = 0; k < view->view.members.count; k++) {
        const uint32_t side = s->sides_before[view->group.ranks[k]],
                       size = side != SL_ABSENT ? size_before(s, side) : 0;
        if (size > most) {
            most = size;
            leader = view->group.ranks[k];
        }
    }
    return leader;
}

uint32_t sl_scene_sponsor(const sl_scene *s, const sl_scene_view *view, uint32_t rank) {
    const uint32_t *peers, count = sl_topology_peers(view->group.topology, rank, &peers);
    for (uint32_t k = 0; k < count; k++)
        if (s->sides_before[peers[k]] != SL_ABSENT)
            return peers[k];
    return sl_scene_leader(s, view);
}
