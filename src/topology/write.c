/* write.c - a topology back to JSON; see file.c for the way in. */
#include <stdlib.h>

#include <jansson.h>

#include "topology/parameters.h"

static bool has_edge(const side *s, uint32_t i, uint32_t peer) {
    for (uint64_t e = s->start[i]; e < s->start[i + 1]; e++)
        if (s->peers[e] == peer)
            return true;
    return false;
}

static json_t *edges_json(const sl_topology *t, const phase *p) {
    bool weighted = t->spec.weighting == SL_WEIGHTING_EXPLICIT;
    json_t *edges = json_array();
    for (uint32_t i = 0; i < t->nodes; i++) {
        if (weighted)
            json_array_append_new(edges, json_pack("[iif]", (int)i, (int)i, p->self[i]));
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++) {
            int from = (int)p->in.peers[e], to = (int)i;
            if (weighted)
                json_array_append_new(edges, json_pack("[iif]", from, to, p->in.weights[e]));
            else if (t->spec.directed || from < to || !has_edge(&p->in, p->in.peers[e], i))
                json_array_append_new(edges, json_pack("[ii]", from, to));
        }
    }
    return edges;
}

static void family_json(const sl_topology_spec *spec, json_t *root) {
    const family *f = family_of(spec->family);
    json_object_set_new(root, "family", json_string(f->info.name));
    for (int i = 0; i < PARAMETERS; i++)
        if (f->takes & 1u << i)
            json_object_set_new(root, parameters[i].name, parameter_json(&parameters[i], spec));
}

char *sl_topology_json(const sl_topology *t) {
    json_t *root = json_pack("{si}", "nodes", (int)t->nodes);
    if (t->spec.family != SL_FAMILY_EDGES) {
        family_json(&t->spec, root);
    } else {
        if (t->spec.directed)
            json_object_set_new(root, "directed", json_true());
        json_t *schedule = json_array();
        for (uint32_t k = 0; k < t->period; k++)
            json_array_append_new(schedule, json_pack("{so}", "edges", edges_json(t, &t->phases[k])));
        if (t->period == 1)
            json_object_set(root, "edges", json_object_get(json_array_get(schedule, 0), "edges"));
        else
            json_object_set(root, "schedule", schedule);
        json_decref(schedule);
    }
    if (t->spec.weighting != SL_WEIGHTING_EXPLICIT)
        json_object_set_new(root, "weights", json_string(weighting_name(t->spec.weighting)));
    char *text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(root);
    return text;
}
