/* scene.c - see scene.h. */
#include "sim/scene.h"

#include <stdlib.h>
#include <string.h>

#include "starling/spectrum.h"

static const double gap_work_max = 1e9; /* a second; beyond it the gap is a bound */

int sl_scene_open(sl_scene *s, const sl_experiment *experiment, size_t dimension, sl_error *error) {
    const uint32_t nodes = sl_topology_nodes(experiment->topology);
    *s = (sl_scene){.experiment = experiment, .dimension = dimension};
    s->sides_before = calloc(nodes, sizeof *s->sides_before);
    s->views = calloc(nodes, sizeof *s->views);
    return s->sides_before != NULL && s->views != NULL
               ? sl_cast_open(&s->cast, nodes, error)
               : sl_fail(error, SL_ENOMEM, "simulator: out of memory for %u nodes", nodes);
}

static void close_view(sl_scene_view *v) {
    sl_topology_close(&v->topology);
    free(v->ranks);
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
    return count == (view != NULL ? view->view.members.count : s->cast.nodes);
}

static int measure(sl_scene_view *v, const sl_topology *among, sl_error *error) {
    sl_spectrum_settings settings;
    sl_spectrum spectrum;
    sl_spectrum_defaults(&settings);
    settings.work_max = gap_work_max;
    const int result = sl_spectrum_compute(&spectrum, among, &settings, error);
    v->gap = spectrum.gap;
    return result;
}

static int open_topologies(const sl_scene *s, sl_scene_view *v, uint32_t count, sl_error *error) {
    const sl_experiment *e = s->experiment;
    sl_topology *among = NULL;
    int result = sl_topology_among(&among, &v->how, e->topology, v->ranks, count, error);
    if (result == 0)
        result = sl_algorithm_plan(&v->plan, &e->algorithm, among, s->dimension, error);
    if (result == 0)
        result = measure(v, among, error);
    if (result == 0)
        result = sl_topology_in_ranks(&v->topology, among, v->ranks, s->cast.nodes, error);
    sl_topology_close(&among);
    return result;
}

int sl_scene_turn(sl_scene *s, uint32_t side, uint64_t round, uint64_t exchange,
                  const sl_scene_view **out, sl_error *error) {
    sl_scene_view *v = calloc(1, sizeof *v);
    *out = NULL;
    if (v != NULL)
        v->ranks = malloc(s->cast.nodes * sizeof *v->ranks);
    if (v == NULL || v->ranks == NULL) {
        free(v);
        return sl_fail(error, SL_ENOMEM, "simulator: out of memory for %u nodes", s->cast.nodes);
    }
    const uint32_t count = sl_cast_members(&s->cast, side, v->ranks);
    const bool wanted = count > 0 && !stands(s, v->ranks, count);
    int result = wanted ? open_topologies(s, v, count, error) : 0;
    if (result != 0 || !wanted) {
        close_view(v);
        return result;
    }
    v->view = (sl_view){round, exchange, {v->ranks, count}, v->topology, &v->plan};
    v->before = s->made;
    s->made = v;
    for (uint32_t k = 0; k < count; k++)
        s->views[v->ranks[k]] = v;
    *out = v;
    return 0;
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
        const uint32_t side = s->sides_before[view->ranks[k]],
                       size = side != SL_ABSENT ? size_before(s, side) : 0;
        if (size > most) {
            most = size;
            leader = view->ranks[k];
        }
    }
    return leader;
}

uint32_t sl_scene_sponsor(const sl_scene *s, const sl_scene_view *view, uint32_t rank) {
    const uint32_t *peers, count = sl_topology_peers(view->topology, rank, &peers);
    for (uint32_t k = 0; k < count; k++)
        if (s->sides_before[peers[k]] != SL_ABSENT)
            return peers[k];
    return sl_scene_leader(s, view);
}
