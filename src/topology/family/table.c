/* table.c - the table of families.
 *
 * A family is a constant beside the code that draws it (undirected.c, random_graphs.c, directed.c,
 * schedules.c, ...). The rows are those of SL_FAMILIES_OF in starling/graph.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/family/family.h"

#define FAMILY_ROW(NAME, name) [SL_FAMILY_##NAME] = &sl_##name##_family,
static const family *const families[SL_FAMILIES] = {SL_FAMILIES_OF(FAMILY_ROW)};

const family *sl_family_of(sl_family which) {
    return (unsigned)which < SL_FAMILIES ? families[which] : NULL;
}

const sl_family_info *sl_family_describe(sl_family which) {
    static const sl_family_info edges = {
        .name = "edges", .meaning = "edges as listed", .weighting = SL_WEIGHTING_METROPOLIS};
    const family *f = sl_family_of(which);
    return f ? &f->info : &edges;
}

/* ---- checking a description ---- */

static int check_given(const sl_topology_spec *spec, const family *f, sl_error *error) {
    for (int i = 0; i < PARAMETERS; i++) {
        const parameter *p = &sl_parameters[i];
        bool given = sl_parameter_is_given(spec, p);
        if ((f->needs & 1u << i) && !given)
            return sl_fail(error, SL_EINVAL, "%s: missing; family \"%s\" needs it: %s", p->name,
                           f->info.name, p->meaning);
        if ((f->takes & 1u << i) == 0 || p->kind != FRACTION || !given)
            continue;
        double value = *(const double *)((const char *)spec + p->at);
        if (!(value > 0 && value <= 1))
            return sl_fail(error, SL_EINVAL,
                           "%s: %g is not allowed; it must be above 0 and at most 1", p->name,
                           value);
    }
    return 0;
}

/* The graph that a family is made from: described by the family, and settled. */
static int settle_inner(sl_topology_spec *inner, const sl_topology_spec *spec, const family *f,
                        sl_error *error) {
    const char *name = "";
    for (int i = 0; i < PARAMETERS; i++)
        if (sl_parameters[i].at == f->inner_at)
            name = sl_parameters[i].name;
    sl_family which = *(const sl_family *)((const char *)spec + f->inner_at);
    int result = f->describe_inner(inner, spec, sl_family_of(which), error);
    if (result == 0)
        result = sl_family_settle(inner, error);
    if (result != 0)
        sl_fail_prefix(error, result, "%s", name);
    return result;
}

int sl_family_settle(sl_topology_spec *spec, sl_error *error) {
    const family *f = sl_family_of(spec->family);
    if (f == NULL)
        return sl_fail(error, SL_EINVAL, "family: %d is not the number of a family",
                       (int)spec->family);
    const sl_family_info *info = &f->info;
    if ((info->weighting == SL_WEIGHTING_EXPLICIT) != (spec->weighting == SL_WEIGHTING_EXPLICIT))
        return sl_fail(error, SL_EINVAL,
                       info->weighting == SL_WEIGHTING_EXPLICIT
                           ? "weights: family \"%s\" brings its own; leave them out"
                           : "weights: family \"%s\" needs a scheme",
                       info->name);
    if (spec->nodes < f->nodes_min)
        return sl_fail(error, SL_EINVAL, "nodes: %u is too few for family \"%s\"; at least %u",
                       spec->nodes, info->name, f->nodes_min);
    int result = check_given(spec, f, error);
    if (result == 0 && f->settle != NULL)
        result = f->settle(spec, error);
    if (result != 0 || f->inner_at == 0)
        return result;
    sl_topology_spec inner;
    result = settle_inner(&inner, spec, f, error);
    if (result == 0 && f->shares) {
        inner.family = spec->family;
        inner.weighting = spec->weighting;
        *spec = inner;
    }
    return result;
}

static int generate_inner(const sl_topology_spec *spec, const family *f, uint64_t attempt,
                          edge_list *out, sl_error *error) {
    sl_topology_spec inner;
    edge_lists lists = {0};
    int result = settle_inner(&inner, spec, f, error);
    if (result == 0)
        result = sl_family_generate(&inner, attempt, &lists, error);
    if (result == 0 && lists.lost.out_of_memory)
        result = sl_fail(error, SL_ENOMEM, "out of memory for a graph of %u nodes", inner.nodes);
    if (result == 0) {
        *out = lists.lists[0];
        lists.lists[0] = (edge_list){0};
    }
    sl_edge_lists_close(&lists);
    return result;
}

int sl_family_generate(const sl_topology_spec *spec, uint64_t attempt, edge_lists *out,
                       sl_error *error) {
    const family *f = families[spec->family];
    int result = f->inner_at > 0 ? generate_inner(spec, f, attempt, &out->inner, error) : 0;
    return result == 0 ? f->generate(spec, attempt, out, error) : result;
}

/* ---- help ---- */

static void write_family(FILE *to, const family *f) {
    fprintf(to, "  %-22s %s", f->info.name, f->info.meaning);
    for (int i = 0; i < PARAMETERS; i++)
        if (f->takes & 1u << i)
            fprintf(to, "%s%s%s", (f->takes & ((1u << i) - 1)) ? ", " : "; takes ",
                    sl_parameters[i].name, (f->needs & 1u << i) ? " (needed)" : "");
    fputc('\n', to);
}

char *sl_families_help(void) {
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (to == NULL)
        return NULL;
    for (int i = SL_FAMILY_EDGES + 1; i < SL_FAMILIES; i++)
        write_family(to, families[i]);
    fputs("\nparameters:\n", to);
    for (int i = 0; i < PARAMETERS; i++)
        fprintf(to, "  %-22s %s\n", sl_parameters[i].name, sl_parameters[i].meaning);
    if (fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
