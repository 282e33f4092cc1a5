/* parameters.c - see parameters.h. */
#include "topology/opening/parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "starling/suggest.h"
#include "topology/links/fields.h"

enum { NAMES_MAX = 64 };
_Static_assert((int)SL_FAMILIES <= (int)NAMES_MAX, "a list of names must hold all families");

int sl_name_read(json_t *value, const char *key, const char *(*name_of)(int), int count,
                 sl_error *error) {
    const char *names[NAMES_MAX];
    const char *text = json_string_value(value);
    char all[640] = "";
    for (int i = 0; i < count; i++) {
        names[i] = name_of(i);
        if (text != NULL && strcmp(text, names[i]) == 0)
            return i;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", names[i]);
    }
    if (text == NULL) {
        char allowed[sizeof all + 16];
        snprintf(allowed, sizeof allowed, "one of %s", all);
        sl_field_refuse(value, key, allowed, error);
        return -1;
    }
    char otherwise[sizeof all + 32], way_out[sizeof otherwise];
    snprintf(otherwise, sizeof otherwise, "; it must be one of %s", all);
    sl_suggest_text(way_out, sizeof way_out, text, names, (size_t)count, otherwise);
    sl_fail(error, SL_EINVAL, "%s: \"%.64s\" is not known%s", key, text, way_out);
    return -1;
}

static const char *family_at(int i) {
    return sl_family_describe((sl_family)(i + 1))
        ->name; /* edges that are listed have no name in a file */
}

int sl_family_read(json_t *value, const char *key, sl_family *out, sl_error *error) {
    int index = sl_name_read(value, key, family_at, SL_FAMILIES - 1, error);
    if (index < 0)
        return SL_EINVAL;
    *out = (sl_family)(index + 1);
    return 0;
}

/* A number alone is a list of one. */
static int read_list(const parameter *p, json_t *list, uint32_t *out, uint32_t *out_count,
                     sl_error *error) {
    bool is_number = json_is_integer(list);
    size_t count = is_number ? 1 : json_array_size(list);
    if (count < 1 || count > p->count_max) {
        char allowed[64];
        snprintf(allowed, sizeof allowed, "a list of 1 to %u integers", p->count_max);
        return sl_field_refuse(list, p->name, allowed, error);
    }
    for (size_t i = 0; i < count; i++) {
        json_t *value = is_number ? list : json_array_get(list, i);
        const json_int_t number = json_integer_value(value);
        if (number < 1 || number > SL_NODES_DESCRIBED_MAX) {
            char key[64], allowed[64];
            snprintf(key, sizeof key, "%s[%zu]", p->name, i);
            snprintf(allowed, sizeof allowed, "an integer from 1 to %u", SL_NODES_DESCRIBED_MAX);
            return sl_field_refuse(value, key, allowed, error);
        }
        out[i] = (uint32_t)number;
    }
    *out_count = (uint32_t)count;
    return 0;
}

static int read_fraction(const parameter *p, json_t *value, double *out, sl_error *error) {
    double number = json_number_value(value);
    if (!(number > 0 && number <= 1))
        return sl_field_refuse(value, p->name, "a number above 0 and at most 1", error);
    *out = number;
    return 0;
}

int sl_parameter_read(const parameter *p, json_t *root, sl_topology_spec *spec, sl_error *error) {
    json_t *value = json_object_get(root, p->name);
    void *at = (char *)spec + p->at;
    json_int_t number = 0;
    int result = 0;
    switch (p->kind) {
    case WHOLE:
        result = sl_field_integer(root, p->name, 1, SL_NODES_DESCRIBED_MAX, &number, error);
        if (result == 0)
            *(uint32_t *)at = (uint32_t)number;
        return result;
    case SEED:
        result = sl_field_integer(root, p->name, 0, INT64_MAX, &number, error);
        if (result == 0)
            *(uint64_t *)at = (uint64_t)number;
        return result;
    case WHOLES:
        return read_list(p, value, at, (uint32_t *)((char *)spec + p->count_at), error);
    case FRACTION:
        return read_fraction(p, value, at, error);
    case FAMILY:
        return sl_family_read(value, p->name, at, error);
    }
    return result;
}

json_t *sl_parameter_json(const parameter *p, const sl_topology_spec *spec) {
    const void *at = (const char *)spec + p->at;
    switch (p->kind) {
    case WHOLE:
        return json_integer(*(const uint32_t *)at);
    case SEED:
        return json_integer((json_int_t) * (const uint64_t *)at);
    case FRACTION:
        return json_real(*(const double *)at);
    case FAMILY:
        return json_string(sl_family_describe(*(const sl_family *)at)->name);
    case WHOLES:
        break;
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < *(const uint32_t *)((const char *)spec + p->count_at); i++)
        sl_json_append(&list, json_integer(((const uint32_t *)at)[i]));
    return list;
}

int sl_mesh_check(const sl_topology_spec *spec, sl_error *error) {
    enum { LINE_NODES_MAX = 3 }; /* so few are a line in any case */
    const family *f = sl_family_of(spec->base != SL_FAMILY_EDGES ? spec->base : spec->family);
    if (f == NULL || f->settle != sl_family_settle_sides || spec->side_count > 0 ||
        spec->nodes <= LINE_NODES_MAX)
        return 0;
    sl_topology_spec squared = *spec;
    sl_family_squarest(&squared);
    if (squared.sides[0] > 1)
        return 0;
    const char *line = f == &sl_torus_family ? "ring" : "path";
    return sl_fail(error, SL_EINVAL,
                   "nodes: %u is prime, so that a %s would be 1 x %u, a %s; take another number of "
                   "nodes, or that family, or say \"sides\": [1, %u]",
                   spec->nodes, f->info.name, spec->nodes, line, spec->nodes);
}
