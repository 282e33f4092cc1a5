/* file.c - the topology file: JSON to a checked topology and back. Format: docs/topology.md. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "base/json.h"
#include "starling/topology.h"
#include "topology/foreign/recognise.h"
#include "topology/links/fields.h"
#include "topology/links/links.h"
#include "topology/opening/matrix.h"
#include "topology/opening/parameters.h"
#include "topology/spectrum/spectral.h"

enum { FILE_BYTES_MAX = 256 << 20, SLOTS_MAX = 4096 };

/* Keys beside the parameters of families. */
static const char *const common_keys[] = {"nodes",      "family",   "weights", "directed",
                                          "edges",      "schedule", "W",       "links",
                                          "provenance", "hash",     "comment"};
enum { COMMON_KEYS = sizeof common_keys / sizeof *common_keys };

/* Everything that the spec points to while it is read. */
typedef struct reading {
    sl_topology_spec spec;
    sl_slot_spec *slots;
    sl_edge **edges; /* (slot_count) */
    sl_links *links;
    bool weighted, unweighted; /* edges with and without a weight were seen */
    bool weights_named;
    char *provenance;           /* as text */
    char hash[HASH_DIGITS + 1]; /* that it must have; empty: any */
} reading;

/* ---- edges ---- */

/* Arrays of numbers have 1.0 for 1, too. */
static bool read_node(json_int_t *out, const json_t *value) {
    const double number = json_number_value(value);
    const bool is_whole = json_is_real(value) && number == floor(number);
    *out = json_is_integer(value)                                       ? json_integer_value(value)
           : is_whole && fabs(number) <= (double)SL_NODES_DESCRIBED_MAX ? (json_int_t)number
                                                                        : -1;
    return json_is_integer(value) || is_whole;
}

static int read_edge(json_t *value, size_t index, uint32_t nodes, sl_edge *out, bool *weighted,
                     sl_error *error) {
    size_t size = json_array_size(value);
    json_t *from = json_array_get(value, 0), *to = json_array_get(value, 1),
           *weight = json_array_get(value, 2);
    json_int_t a, b;
    if ((size != 2 && size != 3) || !read_node(&a, from) || !read_node(&b, to) ||
        (weight && !json_is_number(weight)))
        return sl_fail(error, SL_EINVAL, "edges[%zu]: must be [from, to] or [from, to, weight]",
                       index);
    if (a < 0 || b < 0 || a >= nodes || b >= nodes)
        return sl_fail(error, SL_EINVAL,
                       "edges[%zu]: [%lld, %lld] names a node that is not in 0..%u", index,
                       (long long)a, (long long)b, nodes - 1);
    *weighted = weight != NULL;
    *out = (sl_edge){(uint32_t)a, (uint32_t)b, weight ? json_number_value(weight) : NAN};
    return 0;
}

static int read_slot(reading *r, json_t *edges, size_t k, sl_error *error) {
    if (!json_is_array(edges))
        return sl_field_refuse(edges, "edges", "a list of [from, to] or [from, to, weight]", error);
    size_t count = json_array_size(edges);
    r->edges[k] = calloc(count + 1, sizeof(sl_edge));
    if (r->edges[k] == NULL)
        return sl_fail(error, SL_ENOMEM, "edges: out of memory for %zu edges", count);
    r->slots[k] = (sl_slot_spec){r->edges[k], count};
    for (size_t e = 0; e < count; e++) {
        bool weighted = false;
        int result = read_edge(json_array_get(edges, e), e, r->spec.nodes, &r->edges[k][e],
                               &weighted, error);
        if (result != 0)
            return result;
        r->weighted = r->weighted || weighted;
        r->unweighted = r->unweighted || !weighted;
        if (r->weighted && r->unweighted)
            return sl_fail(error, SL_EINVAL,
                           "edges[%zu]: some edges have a weight and some have none; give all of "
                           "them one, or none",
                           e);
    }
    return 0;
}

static int read_slots(reading *r, json_t *root, sl_error *error) {
    static const char *const slot_keys[] = {"edges", "comment"};
    json_t *edges = json_object_get(root, "edges"), *schedule = json_object_get(root, "schedule");
    size_t count = schedule ? json_array_size(schedule) : 1;
    if (schedule && (!json_is_array(schedule) || count == 0 || count > SLOTS_MAX)) {
        char allowed[80];
        snprintf(allowed, sizeof allowed, "a list of 1 to %d objects {\"edges\": [...]}",
                 SLOTS_MAX);
        return sl_field_refuse(schedule, "schedule", allowed, error);
    }
    r->spec.family = SL_FAMILY_EDGES;
    r->slots = calloc(count, sizeof *r->slots);
    r->edges = calloc(count, sizeof *r->edges);
    if (r->slots == NULL || r->edges == NULL)
        return sl_fail(error, SL_ENOMEM, "schedule: out of memory");
    r->spec.slots = r->slots;
    r->spec.slot_count = count;
    int result = schedule ? 0 : read_slot(r, edges, 0, error);
    for (size_t k = 0; schedule && k < count && result == 0; k++) {
        json_t *entry = json_array_get(schedule, k);
        result = json_is_object(entry)
                     ? sl_fields_known(entry, slot_keys, 2, error)
                     : sl_fail(error, SL_EINVAL, "must be an object {\"edges\": [...]}");
        if (result == 0)
            result = read_slot(r, json_object_get(entry, "edges"), k, error);
        if (result != 0)
            sl_fail_prefix(error, result, "schedule[%zu]", k);
    }
    return result;
}

/* ---- the rest ---- */

static int check_root_keys(json_t *root, sl_error *error) {
    const char *known[COMMON_KEYS + PARAMETERS];
    memcpy(known, common_keys, sizeof common_keys);
    for (int i = 0; i < PARAMETERS; i++)
        known[COMMON_KEYS + i] = sl_parameters[i].name;
    return sl_fields_known(root, known, COMMON_KEYS + PARAMETERS, error);
}

static int read_general(reading *r, json_t *root, uint32_t nodes_max, sl_error *error) {
    json_int_t nodes = 0;
    int result = 0;
    if (json_object_get(root, "nodes") == NULL)
        result = sl_fail(error, SL_EINVAL, "nodes: missing; it must be an integer from 1 to %u",
                         nodes_max);
    if (result == 0)
        result = sl_field_integer(root, "nodes", 1, nodes_max, &nodes, error);
    json_t *directed = json_object_get(root, "directed");
    if (result == 0 && directed && !json_is_boolean(directed))
        result = sl_field_refuse(directed, "directed", "true or false", error);
    r->spec.nodes = (uint32_t)nodes;
    r->spec.directed = json_is_true(directed);
    return result;
}

/* The parameters of a family, one after the other: "sides, seed". */
static void list_parameters(const family *f, char *text, size_t size) {
    snprintf(text, size, "%s", f->takes ? "" : "no parameters");
    for (int i = 0; i < PARAMETERS; i++)
        if (f->takes & 1u << i)
            snprintf(text + strlen(text), size - strlen(text), "%s%s", *text ? ", " : "",
                     sl_parameters[i].name);
}

/* Keys that mean nothing for this family are mistakes, not decoration. */
static int read_parameters(reading *r, json_t *root, sl_error *error) {
    const family *f = sl_family_of(r->spec.family);
    if (f != NULL && json_object_get(root, "directed"))
        return sl_fail(
            error, SL_EINVAL,
            "directed: has no meaning for family \"%s\"; it belongs to edges that are listed",
            f->info.name);
    for (int i = 0; i < PARAMETERS; i++) {
        const parameter *p = &sl_parameters[i];
        if (json_object_get(root, p->name) == NULL)
            continue;
        char taken[256];
        if (f == NULL)
            return sl_fail(error, SL_EINVAL, "%s: has no meaning for edges that are listed",
                           p->name);
        list_parameters(f, taken, sizeof taken);
        if ((f->takes & 1u << i) == 0)
            return sl_fail(error, SL_EINVAL, "%s: has no meaning for family \"%s\", which takes %s",
                           p->name, f->info.name, taken);
        int result = sl_parameter_read(p, root, &r->spec, error);
        if (result != 0)
            return result;
    }
    return 0;
}

static int read_scheme(reading *r, json_t *value, sl_error *error) {
    r->spec.weighting =
        r->spec.directed ? SL_WEIGHTING_UNIFORM : sl_family_describe(r->spec.family)->weighting;
    if (value == NULL)
        return 0;
    if (!json_is_string(value))
        return sl_field_refuse(value, "weights", "the name of a scheme, such as \"metropolis\"",
                               error);
    return sl_weighting_parse(&r->spec.weighting, &r->spec.lazy, json_string_value(value), error);
}

static int read_weights(reading *r, json_t *value, sl_error *error) {
    r->weights_named = value != NULL || r->weighted;
    int result = read_scheme(r, value, error);
    if (result != 0 || !r->weighted)
        return result;
    if (value != NULL && (r->spec.weighting != SL_WEIGHTING_PUSH_SUM || r->spec.lazy))
        return sl_fail(error, SL_EINVAL,
                       "weights: \"%s\" would replace the weights that the edges already have; "
                       "leave one of them out",
                       sl_weighting_name(r->spec.weighting, r->spec.lazy));
    r->spec.self_completes_column = value != NULL;
    r->spec.weighting = SL_WEIGHTING_EXPLICIT;
    return 0;
}

/* An object is the links themselves, a string the name of their file, beside the topology's. */
static int read_links(reading *r, json_t *value, const char *where, sl_error *error) {
    if (value == NULL)
        return 0;
    if (r->spec.weighting != SL_WEIGHTING_BANDWIDTH)
        return sl_fail(error, SL_EINVAL,
                       "links: have no meaning for weights \"%s\"; they belong to \"bandwidth\"",
                       sl_weighting_name(r->spec.weighting, r->spec.lazy));
    int result;
    if (json_is_string(value)) {
        const char *name = json_string_value(value), *slash = strrchr(where, '/');
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%.*s%s",
                 *name == '/' || slash == NULL ? 0 : (int)(slash - where + 1), where, name);
        result = sl_links_load(&r->links, path, error);
    } else {
        result = sl_links_read(&r->links, value, error);
    }
    r->spec.links = r->links;
    return result == 0 ? 0 : sl_fail_prefix(error, result, "links");
}

static int read_provenance(reading *r, json_t *root, sl_error *error) {
    json_t *provenance = json_object_get(root, "provenance"), *hash = json_object_get(root, "hash");
    if (provenance != NULL && (!json_is_object(provenance) || r->spec.family != SL_FAMILY_EDGES))
        return sl_field_refuse(provenance, "provenance",
                               "an object that says where listed edges came from", error);
    if (hash != NULL && (!json_is_string(hash) || json_string_length(hash) != HASH_DIGITS))
        return sl_field_refuse(hash, "hash", "text of 16 hexadecimal digits", error);
    snprintf(r->hash, sizeof r->hash, "%s", hash ? json_string_value(hash) : "");
    r->provenance =
        provenance ? json_dumps(provenance, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    return 0;
}

static int check_hash(const reading *r, const sl_topology *t, sl_error *error) {
    char hash[HASH_DIGITS + 1];
    snprintf(hash, sizeof hash, "%0*llx", HASH_DIGITS, (unsigned long long)sl_topology_hash(t));
    if (r->hash[0] == '\0' || strcasecmp(r->hash, hash) == 0)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "hash: %.16s is written, but this topology has %s: it was changed since, or is "
                   "drawn differently by this version; "
                   "leave \"hash\" out to take it as it is",
                   r->hash, hash);
}

static int read_root(reading *r, json_t *root, const char *where, uint32_t nodes_max,
                     sl_error *error) {
    if (!json_is_object(root)) {
        char *text = sl_json_text(root, JSON_ENCODE_ANY | JSON_COMPACT);
        int result = sl_fail(error, SL_EINVAL,
                             "%.80s is not allowed; it must be an object such as {\"nodes\": 8, "
                             "\"family\": \"ring\"}",
                             text ? text : "?");
        free(text);
        return result;
    }
    int result = sl_graph_refuse(sl_graph_recognise_object(root), error);
    if (result == 0)
        result = check_root_keys(root, error);
    if (result == 0)
        result = sl_matrix_list_edges(root, error);
    if (result == 0)
        result = read_general(r, root, nodes_max, error);
    if (result != 0)
        return result;
    json_t *name = json_object_get(root, "family");
    int kinds = (name != NULL) + (json_object_get(root, "edges") != NULL) +
                (json_object_get(root, "schedule") != NULL);
    if (kinds != 1)
        return sl_fail(error, SL_EINVAL,
                       "exactly one of \"family\", \"edges\", \"schedule\" and \"W\" says what "
                       "the graph is; %d of them are there",
                       kinds);
    if (name != NULL)
        result = sl_family_read(name, "family", &r->spec.family, error);
    else
        result = read_slots(r, root, error);
    if (result == 0)
        result = read_parameters(r, root, error);
    if (result == 0)
        result = sl_mesh_check(&r->spec, error);
    if (result == 0)
        result = read_weights(r, json_object_get(root, "weights"), error);
    if (result == 0)
        result = read_links(r, json_object_get(root, "links"), where, error);
    if (result == 0)
        result = read_provenance(r, root, error);
    return result;
}

static void reading_close(reading *r) {
    for (size_t k = 0; r->edges != NULL && k < r->spec.slot_count; k++)
        free(r->edges[k]);
    free(r->edges);
    free(r->slots);
    free(r->provenance);
    sl_links_close(&r->links);
}

/* From text to a spec; what it points to is the reading's, which is to be freed in any case. */
static int read_text(reading *r, const char *json, const char *where, uint32_t nodes_max,
                     sl_error *error) {
    *r = (reading){0};
    sl_topology_spec_defaults(&r->spec);
    json_t *root;
    int result = sl_json_parse(&root, json, strlen(json), 0, where, SL_EINVAL, error);
    if (result != 0)
        return result;
    result = read_root(r, root, where, nodes_max, error);
    if (result != 0)
        sl_fail_prefix(error, result, "%s", where);
    json_decref(root);
    return result;
}

int sl_topology_spec_parse(sl_topology_spec *out, const char *json, const char *where,
                           sl_error *error) {
    reading r;
    int result = read_text(&r, json, where, SL_NODES_DESCRIBED_MAX, error);
    if (result == 0 && r.spec.family != SL_FAMILY_EDGES) {
        result = sl_family_settle(&r.spec, error);
        if (result != 0)
            sl_fail_prefix(error, result, "%s", where);
    }
    reading_close(&r);
    if (result != 0)
        return result;
    *out = r.spec;
    out->slots = NULL;
    out->slot_count = 0;
    out->links = NULL;
    return 0;
}

static int open_read(sl_topology **out, reading *r, sl_error *error) {
    sl_topology *t = NULL;
    int result = sl_topology_open(&t, &r->spec, error);
    if (result == 0)
        result = check_hash(r, t, error);
    if (result != 0) {
        sl_topology_close(&t);
        return result;
    }
    t->provenance = r->provenance;
    r->provenance = NULL;
    *out = t;
    return 0;
}

static int reopen_lazy(sl_topology **t, reading *r, sl_error *error) {
    r->provenance = (*t)->provenance;
    (*t)->provenance = NULL;
    sl_topology_close(t);
    r->spec.lazy = true;
    r->hash[0] = '\0'; /* it was the hash of the other weights */
    return open_read(t, r, error);
}

/* Listed weights, and a family's own, have no lazy form. */
static int choose_weights(sl_topology **t, reading *r, sl_lazy_choice *choice, sl_error *error) {
    choice->taken = false;
    if (r->weights_named || r->spec.weighting == SL_WEIGHTING_EXPLICIT ||
        choice->below == -INFINITY)
        return 0;
    const int result = sl_graph_is_below(&choice->taken, &(*t)->graph, choice->below, error);
    return result == 0 && choice->taken ? reopen_lazy(t, r, error) : result;
}

/* The text of a topology file, or the one that a matrix stands for. */
static int read_file(char **out, const char *path, sl_error *error) {
    sl_bytes bytes;
    int result = sl_bytes_read(&bytes, path, FILE_BYTES_MAX, error);
    if (result != 0)
        return result;
    if (sl_graph_recognise((const char *)bytes.data, bytes.size) != SL_GRAPH_NPY)
        return sl_graph_take_text(out, &bytes, error);
    result = sl_matrix_of_npy(out, bytes.data, bytes.size, error);
    sl_bytes_close(&bytes);
    return result != 0 ? sl_fail_prefix(error, result, "%s", path) : 0;
}

int sl_topology_parse_as(sl_topology **out, const char *json, const char *where,
                         const sl_topology_opening *how, sl_error *error) {
    reading r;
    int result = read_text(&r, json, where, SL_NODES_MAX, error);
    if (result == 0) {
        r.spec.in_parts = how->in_parts;
        r.spec.watch = how->watch;
        result = open_read(out, &r, error);
        if (result == 0 && how->lazy != NULL)
            result = choose_weights(out, &r, how->lazy, error);
        if (result != 0)
            sl_fail_prefix(error, result, "%s", where);
    }
    reading_close(&r);
    return result;
}

int sl_topology_load_as(sl_topology **out, const char *path, const sl_topology_opening *how,
                        sl_error *error) {
    char *text;
    int result = read_file(&text, path, error);
    if (result != 0)
        return result;
    result = sl_topology_parse_as(out, text, path, how, error);
    free(text);
    return result;
}

int sl_topology_parse(sl_topology **out, const char *json, const char *where, sl_error *error) {
    return sl_topology_parse_as(out, json, where, &(sl_topology_opening){0}, error);
}

int sl_topology_load(sl_topology **out, const char *path, sl_error *error) {
    return sl_topology_load_as(out, path, &(sl_topology_opening){0}, error);
}
