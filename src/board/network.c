/* network.c - who is connected to whom: edges and weights of the present members, where they stand,
 * and how fast they agree. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "board/state.h"
#include "starling/layout.h"
#include "starling/spectrum.h"

static const double work_max = 1e9; /* of a spectrum: a second */

/* ---- links, which outlive edges ---- */

sl_board_link *sl_board_link_of(sl_board_state *s, uint32_t from, uint32_t to) {
    if (from >= s->node_room || to >= s->node_room)
        return NULL;
    uint32_t *at = &s->link_at[(size_t)to * s->node_room + from];
    if (*at > 0)
        return &s->links[*at - 1];
    if (s->link_count >= 4 * SL_BOARD_EDGES_MAX ||
        !sl_board_grow((void **)&s->links, &s->link_room, s->link_count, sizeof *s->links))
        return NULL;
    s->links[s->link_count] =
        (sl_board_link){.from = from, .to = to, .bytes = NAN, .mb_s = NAN, .round_trip_s = NAN};
    *at = (uint32_t)++s->link_count;
    return &s->links[*at - 1];
}

/* ---- edges ---- */

void sl_board_disconnect(sl_board_state *s) {
    for (size_t i = 0; i < s->edge_count; i++)
        json_decref(s->edges[i].slots);
    free(s->edges);
    json_decref(s->positions);
    s->edges = NULL;
    s->edge_count = 0;
    s->positions = NULL;
}

static int by_peer(const void *a, const void *b) {
    const sl_board_edge *one = a, *two = b;
    return (one->from > two->from) - (one->from < two->from);
}

/* The edge to `to`, of those from `first` on; a new one at their end. */
static sl_board_edge *edge_of(sl_board_state *s, size_t first, uint32_t from, uint32_t to) {
    for (size_t i = first; i < s->edge_count; i++)
        if (s->edges[i].from == from)
            return &s->edges[i];
    if (s->edge_count == SL_BOARD_EDGES_MAX)
        return NULL;
    s->edges[s->edge_count] = (sl_board_edge){.from = from, .to = to, .slots = json_array()};
    return &s->edges[s->edge_count++];
}

/* Weights are means over the slots in which an edge is. False: there are too many. */
static bool add_edges(sl_board_state *s, const sl_topology *t, uint32_t to) {
    const uint32_t period = sl_topology_period(t);
    const size_t first = s->edge_count;
    for (uint32_t slot = 0; slot < period; slot++) {
        const sl_row row = sl_topology_in(t, slot + 1, to);
        for (uint32_t k = 0; k < row.count; k++) {
            sl_board_edge *edge = edge_of(s, first, row.peers[k], to);
            if (edge == NULL)
                return false;
            edge->weight += row.weights[k];
            sl_json_append(&edge->slots, json_integer(slot));
        }
    }
    for (size_t i = first; i < s->edge_count; i++) {
        sl_board_edge *edge = &s->edges[i];
        const size_t slots = json_array_size(edge->slots);
        edge->weight /= slots > 0 ? (double)slots : 1;
        if (slots == period) {
            json_decref(edge->slots);
            edge->slots = NULL;
        }
    }
    if (s->edge_count > first)
        qsort(s->edges + first, s->edge_count - first, sizeof *s->edges, by_peer);
    return true;
}

static int list_edges(sl_board_state *s, const sl_topology *t, sl_error *error) {
    s->edges = calloc(SL_BOARD_EDGES_MAX, sizeof *s->edges);
    if (s->edges == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the run's edges");
    for (uint32_t to = 0; to < sl_topology_nodes(t); to++)
        if (!add_edges(s, t, to)) {
            sl_board_disconnect(s);
            s->node_count = s->node_room = 0;
            return 0;
        }
    return 0;
}

/* ---- where they stand ---- */

/* Members that stay keep their places; with newcomers all stand anew, on a circle: the rest of a
 * family's graph, in ranks, may be in parts. */
static int place(sl_board_state *s, sl_error *error) {
    const sl_topology *t = s->experiment->topology;
    const uint32_t first = sl_topology_nodes(t);
    const sl_layout layout = sl_layout_choose(t);
    sl_point points[SL_LAYOUT_NODES_MAX];
    int result = sl_layout_place(points, &layout, t, error);
    s->positions = json_array();
    for (uint32_t i = 0; result == 0 && i < s->node_count; i++) {
        const double angle = 2 * M_PI * i / s->node_count;
        const sl_point p = s->node_count == first
                               ? points[i]
                               : (sl_point){0.5 + 0.5 * sin(angle), 0.5 - 0.5 * cos(angle)};
        sl_json_append(&s->positions, json_pack("[ff]", p.x, p.y));
    }
    return result;
}

/* ---- all ---- */

static void measure(sl_board_state *s, const sl_topology *t) {
    sl_spectrum_settings settings;
    sl_spectrum spectrum;
    sl_spectrum_defaults(&settings);
    settings.work_max = work_max;
    s->rho = sl_spectrum_compute(&spectrum, t, &settings, NULL) == 0 && spectrum.converged
                 ? pow(spectrum.rho, 1.0 / sl_topology_period(t))
                 : NAN;
}

int sl_board_connect(sl_board_state *s, sl_error *error) {
    const sl_topology *first = s->experiment->topology, *t = s->topology ? s->topology : first;
    sl_board_disconnect(s);
    if (s->topology == NULL)
        measure(s, first);
    int result = s->node_count > 0 ? list_edges(s, t, error) : 0;
    if (result == 0 && s->node_count > 0)
        result = place(s, error);
    return result;
}

int sl_board_members(sl_board_state *s, const uint32_t *ranks, uint32_t count, sl_error *error) {
    sl_topology *among = NULL, *in_ranks = NULL;
    sl_regrouping how;
    uint32_t *copy = malloc(count * sizeof *copy);
    if (copy == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the run's members");
    memcpy(copy, ranks, count * sizeof *copy);
    free(s->members);
    s->members = copy;
    s->member_count = count;
    if (ranks[count - 1] >= s->node_count && ranks[count - 1] < s->node_room)
        s->node_count = ranks[count - 1] + 1;
    int result = sl_topology_among(&among, &how, s->experiment->topology, ranks, count, error);
    if (result == 0)
        result = sl_topology_in_ranks(&in_ranks, among, ranks, sl_experiment_ranks(s->experiment),
                                      error);
    if (result == 0) {
        sl_topology_close(&s->topology);
        s->topology = in_ranks;
        measure(s, among);
        result = sl_board_connect(s, error);
    }
    sl_topology_close(&among);
    return result;
}
