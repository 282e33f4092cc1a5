/* write.c - a topology back to JSON, with its hash and where it came from; see file.c for the way
 * in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "starling/topology.h"
#include "topology/links/links.h"
#include "topology/opening/parameters.h"

static bool has_edge(const side *s, uint32_t i, uint32_t peer) {
    for (uint64_t e = s->start[i]; e < s->start[i + 1]; e++)
        if (s->peers[e] == peer)
            return true;
    return false;
}

/* The last weight, which the next one often equals, as text. */
typedef struct written {
    double weight;
    char *text;
} written;

static void write_edge(FILE *to, const char *comma, uint32_t from, uint32_t i, double weight,
                       written *last) {
    if (last->text == NULL || last->weight != weight) {
        free(last->text);
        *last = (written){weight, sl_json_number(weight)};
    }
    if (last->text != NULL)
        fprintf(to, "%s[%u,%u,%s]", comma, from, i, last->text);
    else
        fprintf(to, "%s[%u,%u,%.17g]", comma, from, i, weight);
}

/* Straight to text: millions of edges as JSON values would take a gigabyte. */
static void write_edges(FILE *to, const sl_topology *t, const slot *p, bool weighted) {
    const char *comma = "";
    written last = {0};
    fputs("\"edges\":[", to);
    for (uint32_t i = 0; i < t->graph.nodes; i++) {
        if (weighted) {
            write_edge(to, comma, i, i, p->self[i], &last);
            comma = ",";
        }
        for (uint64_t e = p->in.start[i]; e < p->in.start[i + 1]; e++) {
            uint32_t from = p->in.peers[e];
            if (weighted)
                write_edge(to, comma, from, i, p->in.weights[e], &last);
            else if (t->spec.directed || from < i || !has_edge(&p->in, from, i))
                fprintf(to, "%s[%u,%u]", comma, from, i);
            else
                continue;
            comma = ",";
        }
    }
    free(last.text);
    fputc(']', to);
}

static void write_slots(FILE *to, const sl_topology *t, bool weighted) {
    if (t->graph.period == 1) {
        write_edges(to, t, &t->graph.slots[0], weighted);
        return;
    }
    fputs("\"schedule\":[", to);
    for (uint32_t k = 0; k < t->graph.period; k++) {
        fputs(k ? ",{" : "{", to);
        write_edges(to, t, &t->graph.slots[k], weighted);
        fputc('}', to);
    }
    fputc(']', to);
}

static void set_weights(json_t **root, const sl_topology_spec *spec) {
    if (spec->weighting != SL_WEIGHTING_EXPLICIT)
        sl_json_set(root, "weights", json_string(sl_weighting_name(spec->weighting, spec->lazy)));
    if (spec->links != NULL)
        sl_json_set(root, "links", sl_links_value(spec->links));
}

static void set_family(json_t **root, const sl_topology_spec *spec) {
    const family *f = sl_family_of(spec->family);
    sl_json_set(root, "family", json_string(f->info.name));
    for (int i = 0; i < PARAMETERS; i++)
        if ((f->takes & 1u << i) && sl_parameter_is_given(spec, &sl_parameters[i]))
            sl_json_set(root, sl_parameters[i].name, sl_parameter_json(&sl_parameters[i], spec));
    set_weights(root, spec);
}

static void set_hash(json_t **root, const sl_topology *t) {
    char hash[HASH_DIGITS + 1];
    snprintf(hash, sizeof hash, "%0*llx", HASH_DIGITS, (unsigned long long)t->hash);
    sl_json_set(root, "hash", json_string(hash));
}

/* The object as text, with the slots as its last member. */
static char *dump_with_slots(json_t *root, const sl_topology *t, bool weighted) {
    char *head = sl_json_text(root, JSON_COMPACT), *text = NULL;
    size_t size;
    FILE *to = head ? open_memstream(&text, &size) : NULL;
    if (to != NULL) {
        fprintf(to, "%.*s,", (int)strlen(head) - 1, head);
        write_slots(to, t, weighted);
        fputc('}', to);
        if (ferror(to) | fclose(to)) {
            free(text);
            text = NULL;
        }
    }
    free(head);
    return text;
}

static json_t *new_root(const sl_topology_spec *spec) {
    return json_pack("{sI}", "nodes", (json_int_t)spec->nodes);
}

char *sl_topology_spec_json(const sl_topology_spec *spec) {
    json_t *root = new_root(spec);
    set_family(&root, spec);
    char *text = sl_json_text(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

/* How near weights that were found are to the best. */
static void set_optimum(json_t **provenance, const sl_topology *t) {
    sl_optimum optimum;
    if (sl_topology_optimum(&optimum, t))
        sl_json_set(provenance, "optimum",
                    json_pack("{sf sf}", "rho", optimum.rho, "lower_bound", optimum.lower_bound));
}

/* Where listed edges come from; NULL: from nowhere else. */
static json_t *provenance_of(const sl_topology *t, bool weighted) {
    bool named = t->spec.family != SL_FAMILY_EDGES,
         weighed = weighted && t->spec.weighting != SL_WEIGHTING_EXPLICIT;
    if (t->provenance != NULL)
        return json_loads(t->provenance, 0, NULL);
    if (!named && !weighed)
        return NULL;
    json_t *provenance = json_object();
    if (named)
        set_family(&provenance, &t->spec);
    else
        set_weights(&provenance, &t->spec);
    set_optimum(&provenance, t);
    return provenance;
}

static char *edges_text(const sl_topology *t, bool weighted) {
    json_t *root = new_root(&t->spec), *provenance = provenance_of(t, weighted);
    if (!weighted)
        set_weights(&root, &t->spec);
    if (!weighted && t->spec.directed)
        sl_json_set(&root, "directed", json_true());
    if (provenance != NULL)
        sl_json_set(&root, "provenance", provenance);
    if (!sl_topology_is_endless(t)) /* what is listed is its first rounds */
        set_hash(&root, t);
    char *text = dump_with_slots(root, t, weighted);
    json_decref(root);
    return text;
}

char *sl_topology_json(const sl_topology *t) {
    bool listed = t->spec.family == SL_FAMILY_EDGES;
    if (listed || sl_weighting_is_solved(t->spec.weighting))
        return edges_text(t, sl_weighting_is_solved(t->spec.weighting) ||
                                 t->spec.weighting == SL_WEIGHTING_EXPLICIT);
    json_t *root = new_root(&t->spec);
    set_family(&root, &t->spec);
    set_hash(&root, t);
    char *text = sl_json_text(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

char *sl_topology_json_expanded(const sl_topology *t) {
    return edges_text(t, true);
}
