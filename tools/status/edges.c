/* edges.c - see edges.h. */
#include "status/edges.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/complain.h"

enum { NAME_MAX_BYTES = 128 };

/* What one agent says of its neighbours goes to *known, by rank. */
static void take(json_t *known, const json_t *said) {
    const json_t *edges = json_object_get(said, "neighbours");
    for (size_t i = 0; i < json_array_size(edges); i++) {
        const json_t *edge = json_array_get(edges, i);
        json_t *protection = json_object_get(edge, "protection");
        char rank[24];
        snprintf(rank, sizeof rank, "%" JSON_INTEGER_FORMAT,
                 json_integer_value(json_object_get(edge, "rank")));
        if (!json_is_string(protection))
            continue;
        const bool memory = json_is_true(json_object_get(edge, "memory"));
        json_object_set_new(
            known, rank,
            json_sprintf("%s%s", json_string_value(protection), memory ? ", data in memory" : ""));
    }
}

/* NULL: they differ, or there are none. */
static const char *same_of_all(const json_t *known) {
    const char *rank, *same = NULL;
    json_t *protection;
    json_object_foreach((json_t *)known, rank, protection) {
        if (same != NULL && strcmp(json_string_value(protection), same) != 0)
            return NULL;
        same = json_string_value(protection);
    }
    return same;
}

/* Whoever answers may say a megabyte. */
static const char *name_of(const char *said, char name[NAME_MAX_BYTES]) {
    return sl_text_show(name, NAME_MAX_BYTES, said, strlen(said));
}

void print_edges(const sl_asked *all, size_t count) {
    json_t *known = json_object();
    for (size_t i = 0; i < count; i++) {
        json_t *said = all[i].said != NULL ? json_loads(all[i].said, 0, NULL) : NULL;
        take(known, said);
        json_decref(said);
    }
    const char *same = same_of_all(known), *rank;
    char name[NAME_MAX_BYTES];
    json_t *protection;
    if (same != NULL)
        tell_line("all edges: %s", name_of(same, name));
    else
        json_object_foreach(known, rank, protection)
            tell_line("edge %s: %s", rank, name_of(json_string_value(protection), name));
    json_decref(known);
}
