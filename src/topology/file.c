/* file.c - the topology file: JSON to a checked topology and back. Format: docs/topology.md. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "file.h"
#include "suggest.h"
#include "topology/fields.h"
#include "topology/graph.h"

enum { FAMILIES = SL_FAMILY_ONE_PEER_EXPONENTIAL + 1, WEIGHTINGS = SL_WEIGHTING_EXPLICIT, FILE_BYTES_MAX = 256 << 20, PHASES_MAX = 4096 };

static const char *const known_keys[] = {"nodes",  "family",      "weights", "directed", "edges",
                                         "schedule", "sides", "degree",  "probability", "seed",    "comment"};
enum { KEYS = sizeof known_keys / sizeof *known_keys };

/* Everything that the spec points to while it is read. */
typedef struct reading {
    sl_topology_spec spec;
    sl_phase_spec *phases;
    sl_edge **edges; /* (phase_count) */
    bool weighted, unweighted; /* edges with and without a weight were seen */
} reading;

/* The position of a string among names; -1 with an error. */
static int read_name(json_t *value, const char *key, const char *(*name_of)(int), int count, sl_error *error) {
    const char *names[FAMILIES];
    const char *text = json_string_value(value);
    char all[256] = "";
    for (int i = 0; i < count; i++) {
        names[i] = name_of(i);
        if (text != NULL && strcmp(text, names[i]) == 0)
            return i;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = text ? sl_suggest(text, names, (size_t)count) : NULL;
    sl_fail(error, SL_EINVAL, "%s: \"%.64s\" is not known%s%s%s; it must be one of %s", key, text ? text : "(not a string)",
            near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "", all);
    return -1;
}

static const char *family_at(int i) {
    return family_name((sl_family)(i + 1)); /* explicit edges have no name in a file */
}

static const char *weighting_at(int i) {
    return weighting_name((sl_weighting)i);
}

/* ---- edges ---- */

static int read_edge(json_t *value, size_t index, uint32_t nodes, sl_edge *out, bool *weighted, sl_error *error) {
    size_t size = json_array_size(value);
    json_t *from = json_array_get(value, 0), *to = json_array_get(value, 1), *weight = json_array_get(value, 2);
    if ((size != 2 && size != 3) || !json_is_integer(from) || !json_is_integer(to) || (weight && !json_is_number(weight)))
        return sl_fail(error, SL_EINVAL, "edges[%zu]: must be [from, to] or [from, to, weight]", index);
    json_int_t a = json_integer_value(from), b = json_integer_value(to);
    if (a < 0 || b < 0 || a >= nodes || b >= nodes)
        return sl_fail(error, SL_EINVAL, "edges[%zu]: [%lld, %lld] names a node that is not in 0..%u", index, (long long)a,
                       (long long)b, nodes - 1);
    *weighted = weight != NULL;
    *out = (sl_edge){(uint32_t)a, (uint32_t)b, weight ? json_number_value(weight) : NAN};
    return 0;
}

static int read_phase(reading *r, json_t *edges, size_t k, sl_error *error) {
    if (!json_is_array(edges))
        return sl_fail(error, SL_EINVAL, "edges: must be a list of [from, to] or [from, to, weight]");
    size_t count = json_array_size(edges);
    r->edges[k] = calloc(count + 1, sizeof(sl_edge));
    if (r->edges[k] == NULL)
        return sl_fail(error, SL_ENOMEM, "edges: out of memory for %zu edges", count);
    r->phases[k] = (sl_phase_spec){r->edges[k], count};
    for (size_t e = 0; e < count; e++) {
        bool weighted = false;
        int result = read_edge(json_array_get(edges, e), e, r->spec.nodes, &r->edges[k][e], &weighted, error);
        if (result != 0)
            return result;
        r->weighted = r->weighted || weighted;
        r->unweighted = r->unweighted || !weighted;
        if (r->weighted && r->unweighted)
            return sl_fail(error, SL_EINVAL, "edges[%zu]: some edges have a weight and some have none; give all of them one, or none", e);
    }
    return 0;
}

static int read_phases(reading *r, json_t *root, sl_error *error) {
    static const char *const phase_keys[] = {"edges", "comment"};
    json_t *edges = json_object_get(root, "edges"), *schedule = json_object_get(root, "schedule");
    size_t count = schedule ? json_array_size(schedule) : 1;
    if (schedule && (!json_is_array(schedule) || count == 0 || count > PHASES_MAX))
        return sl_fail(error, SL_EINVAL, "schedule: must be a list of 1 to %d objects {\"edges\": [...]}", PHASES_MAX);
    r->spec.family = SL_FAMILY_EDGES;
    r->phases = calloc(count, sizeof *r->phases);
    r->edges = calloc(count, sizeof *r->edges);
    if (r->phases == NULL || r->edges == NULL)
        return sl_fail(error, SL_ENOMEM, "schedule: out of memory");
    r->spec.phases = r->phases;
    r->spec.phase_count = count;
    int result = schedule ? 0 : read_phase(r, edges, 0, error);
    for (size_t k = 0; schedule && k < count && result == 0; k++) {
        json_t *entry = json_array_get(schedule, k);
        result = json_is_object(entry) ? fields_known(entry, phase_keys, 2, error)
                                       : sl_fail(error, SL_EINVAL, "must be an object {\"edges\": [...]}");
        if (result == 0)
            result = read_phase(r, json_object_get(entry, "edges"), k, error);
        if (result != 0)
            sl_fail_prefix(error, result, "schedule[%zu]", k);
    }
    return result;
}

/* ---- the rest ---- */

static int read_sides(reading *r, json_t *sides, sl_error *error) {
    size_t count = json_array_size(sides);
    if (sides == NULL)
        return 0;
    if (!json_is_array(sides) || count < 1 || count > SL_SIDES_MAX)
        return sl_fail(error, SL_EINVAL, "sides: must be a list of 1 to %d integers", SL_SIDES_MAX);
    for (size_t d = 0; d < count; d++) {
        json_int_t length = json_integer_value(json_array_get(sides, d));
        if (length < 1 || length > SL_NODES_MAX)
            return sl_fail(error, SL_EINVAL, "sides[%zu]: must be an integer from 1 to %u", d, SL_NODES_MAX);
        r->spec.sides[d] = (uint32_t)length;
    }
    r->spec.side_count = (uint32_t)count;
    return 0;
}

static int read_numbers(reading *r, json_t *root, sl_error *error) {
    json_int_t nodes = 0, degree = 0, seed = 1;
    int result = 0;
    if (json_object_get(root, "nodes") == NULL)
        result = sl_fail(error, SL_EINVAL, "nodes: missing; it must be an integer from 1 to %u", SL_NODES_MAX);
    if (result == 0)
        result = field_integer(root, "nodes", 1, SL_NODES_MAX, &nodes, error);
    if (result == 0)
        result = field_integer(root, "degree", 1, SL_NODES_MAX, &degree, error);
    if (result == 0)
        result = field_integer(root, "seed", 0, INT64_MAX, &seed, error);
    json_t *probability = json_object_get(root, "probability"), *directed = json_object_get(root, "directed");
    if (result == 0 && probability && !json_is_number(probability))
        result = sl_fail(error, SL_EINVAL, "probability: must be a number above 0 and at most 1");
    if (result == 0 && directed && !json_is_boolean(directed))
        result = sl_fail(error, SL_EINVAL, "directed: must be true or false");
    r->spec.nodes = (uint32_t)nodes;
    r->spec.degree = (uint32_t)degree;
    r->spec.seed = (uint64_t)seed;
    r->spec.probability = probability ? json_number_value(probability) : 0;
    r->spec.directed = json_is_true(directed);
    return result;
}

static int read_weights(reading *r, json_t *value, sl_error *error) {
    bool directed = r->spec.directed || r->spec.family == SL_FAMILY_ONE_PEER_EXPONENTIAL;
    int scheme = directed ? SL_WEIGHTING_UNIFORM : SL_WEIGHTING_METROPOLIS;
    if (value != NULL)
        scheme = read_name(value, "weights", weighting_at, WEIGHTINGS, error);
    if (scheme < 0)
        return SL_EINVAL;
    r->spec.weighting = (sl_weighting)scheme;
    if (!r->weighted)
        return 0;
    if (value != NULL && scheme != SL_WEIGHTING_PUSH_SUM)
        return sl_fail(error, SL_EINVAL, "weights: \"%s\" would replace the weights that the edges already have; leave one of them out",
                       weighting_name((sl_weighting)scheme));
    r->spec.self_completes_column = value != NULL;
    r->spec.weighting = SL_WEIGHTING_EXPLICIT;
    return 0;
}

/* Keys that mean nothing for this family are mistakes, not decoration. */
static int check_used(const sl_topology_spec *spec, json_t *root, sl_error *error) {
    static const struct {
        const char *key;
        sl_family family;
    } only_for[] = {
        {"sides", SL_FAMILY_TORUS}, {"degree", SL_FAMILY_RANDOM_REGULAR}, {"probability", SL_FAMILY_ERDOS_RENYI}, {"directed", SL_FAMILY_EDGES}};
    for (size_t i = 0; i < sizeof only_for / sizeof *only_for; i++)
        if (json_object_get(root, only_for[i].key) && spec->family != only_for[i].family)
            return sl_fail(error, SL_EINVAL, "%s: has no meaning for %s; it belongs to %s", only_for[i].key, family_name(spec->family),
                           family_name(only_for[i].family));
    if (spec->family == SL_FAMILY_RANDOM_REGULAR && !json_object_get(root, "degree"))
        return sl_fail(error, SL_EINVAL, "degree: missing; family \"random-regular\" needs it");
    if (spec->family == SL_FAMILY_ERDOS_RENYI && !json_object_get(root, "probability"))
        return sl_fail(error, SL_EINVAL, "probability: missing; family \"erdos-renyi\" needs it");
    return 0;
}

static int read_root(reading *r, json_t *root, sl_error *error) {
    if (!json_is_object(root))
        return sl_fail(error, SL_EINVAL, "must be an object such as {\"nodes\": 8, \"family\": \"ring\"}");
    int result = fields_known(root, known_keys, KEYS, error);
    if (result == 0)
        result = read_numbers(r, root, error);
    if (result != 0)
        return result;
    json_t *family = json_object_get(root, "family");
    int kinds = (family != NULL) + (json_object_get(root, "edges") != NULL) + (json_object_get(root, "schedule") != NULL);
    if (kinds != 1)
        return sl_fail(error, SL_EINVAL, "exactly one of \"family\", \"edges\" and \"schedule\" says what the graph is; %d of them are there", kinds);
    if (family != NULL) {
        int index = read_name(family, "family", family_at, FAMILIES - 1, error);
        if (index < 0)
            return SL_EINVAL;
        r->spec.family = (sl_family)(index + 1);
    } else {
        result = read_phases(r, root, error);
    }
    if (result == 0)
        result = check_used(&r->spec, root, error);
    if (result == 0)
        result = read_sides(r, json_object_get(root, "sides"), error);
    if (result == 0)
        result = read_weights(r, json_object_get(root, "weights"), error);
    return result;
}

static void reading_free(reading *r) {
    for (size_t k = 0; r->edges != NULL && k < r->spec.phase_count; k++)
        free(r->edges[k]);
    free(r->edges);
    free(r->phases);
}

int sl_topology_parse(sl_topology **out, const char *json, const char *where, sl_error *error) {
    json_error_t problem;
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);
    if (root == NULL)
        return sl_fail(error, SL_EINVAL, "%s:%d:%d: %s", where, problem.line, problem.column, problem.text);
    reading r = {0};
    sl_topology_spec_defaults(&r.spec);
    int result = read_root(&r, root, error);
    if (result == 0)
        result = sl_topology_open(out, &r.spec, error);
    if (result != 0)
        sl_fail_prefix(error, result, "%s", where);
    reading_free(&r);
    json_decref(root);
    return result;
}

int sl_topology_load(sl_topology **out, const char *path, sl_error *error) {
    char *text;
    int result = sl_file_read(&text, path, FILE_BYTES_MAX, error);
    if (result != 0)
        return result;
    result = sl_topology_parse(out, text, path, error);
    free(text);
    return result;
}

/* ---- back to JSON ---- */

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

static void family_json(const sl_topology *t, json_t *root) {
    const sl_topology_spec *s = &t->spec;
    json_object_set_new(root, "family", json_string(family_name(s->family)));
    if (s->family == SL_FAMILY_RANDOM_REGULAR)
        json_object_set_new(root, "degree", json_integer(s->degree));
    if (s->family == SL_FAMILY_ERDOS_RENYI)
        json_object_set_new(root, "probability", json_real(s->probability));
    if (family_is_random(s->family))
        json_object_set_new(root, "seed", json_integer((json_int_t)s->seed));
    if (s->side_count > 0) {
        json_t *sides = json_array();
        for (uint32_t d = 0; d < s->side_count; d++)
            json_array_append_new(sides, json_integer(s->sides[d]));
        json_object_set_new(root, "sides", sides);
    }
}

char *sl_topology_json(const sl_topology *t) {
    json_t *root = json_pack("{si}", "nodes", (int)t->nodes);
    if (t->spec.family != SL_FAMILY_EDGES) {
        family_json(t, root);
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
