/* waits.c - see waits.h. Edges lead from who waits to who is awaited. A root is awaited and does
 * not wait; those that wait for it are found from it, against the edges. */
#include "status/waits.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHILE_S 1.0 /* shorter waits belong to every round */

/* ---- what was said ---- */

static bool take_awaited(view *v, const json_t *edges) {
    const size_t count = json_array_size(edges);
    v->awaited = calloc(count + 1, sizeof *v->awaited);
    for (size_t i = 0; i < count && v->awaited != NULL; i++) {
        const json_t *edge = json_array_get(edges, i);
        if (json_is_true(json_object_get(edge, "awaited")))
            v->awaited[v->awaited_count++] =
                (uint32_t)json_integer_value(json_object_get(edge, "rank"));
    }
    return v->awaited != NULL;
}

/* False: out of memory. Who answers something else does not answer. */
static bool take(view *v, const asked *from, bool is_by_rank) {
    v->rank = from->rank;
    json_t *all = from->said != NULL ? json_loads(from->said, 0, NULL) : NULL;
    const char *doing = json_string_value(json_object_get(all, "doing"));
    const json_int_t rank = json_integer_value(json_object_get(all, "rank"));
    const char *words = json_string_value(json_object_get(all, "waits_for"));
    bool taken = true;
    if (doing != NULL && words != NULL && (rank == from->rank || !is_by_rank)) {
        v->answers = true;
        v->rank = (uint32_t)rank;
        snprintf(v->words, sizeof v->words, "%s", words);
        snprintf(v->doing, sizeof v->doing, "%s", doing);
        v->nodes = (uint32_t)json_integer_value(json_object_get(all, "nodes"));
        v->round = (uint64_t)json_integer_value(json_object_get(all, "round"));
        v->still_s = json_number_value(json_object_get(all, "still_s"));
        taken = take_awaited(v, json_object_get(all, "neighbours"));
    }
    json_decref(all);
    return taken;
}

view *views_open(const asked *all, size_t count, bool are_by_rank) {
    view *views = calloc(count + 1, sizeof *views);
    bool taken = views != NULL;
    for (size_t i = 0; i < count && taken; i++)
        taken = take(&views[i], &all[i], are_by_rank);
    if (taken)
        return views;
    if (views != NULL)
        views_close(views, count);
    return NULL;
}

void views_close(view *views, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(views[i].awaited);
    free(views);
}

bool view_waits(const view *v) {
    return v->answers && v->awaited_count > 0 && v->still_s >= WHILE_S;
}

/* ---- roots ---- */

static const view *find(const view *views, size_t count, uint32_t rank) {
    for (size_t i = 0; i < count; i++)
        if (views[i].rank == rank)
            return &views[i];
    return NULL;
}

static bool awaits(const view *v, uint32_t rank) {
    for (size_t i = 0; i < v->awaited_count; i++)
        if (v->awaited[i] == rank)
            return view_waits(v);
    return false;
}

/* Those that wait for the root, near ones first, go to queue[1...] as indices of views; their
 * number. queue[0] stands for the root. */
static size_t follow(const view *views, size_t count, uint32_t root, uint32_t *queue, bool *seen) {
    size_t found = 0;
    memset(seen, 0, count);
    for (size_t done = 0; done <= found; done++) {
        const uint32_t rank = done == 0 ? root : views[queue[done]].rank;
        for (size_t i = 0; i < count; i++)
            if (!seen[i] && views[i].rank != root && awaits(&views[i], rank)) {
                seen[i] = true;
                queue[++found] = (uint32_t)i;
            }
    }
    return found;
}

static void print_root(const view *views, size_t count, uint32_t rank, const uint32_t *queue,
                       size_t found) {
    const view *v = find(views, count, rank);
    if (v == NULL)
        printf("rank %u is not here", rank);
    else if (!v->answers)
        printf("rank %u does not answer", rank);
    else
        printf("rank %u %s round %llu since %.0f s", rank, v->doing, (unsigned long long)v->round,
               v->still_s);
    for (size_t i = 1; i <= found; i++)
        printf("%s%u", i == 1 ? "; " : ", ", views[queue[i]].rank);
    printf(" %s for it\n", found == 1 ? "waits" : "wait");
}

static bool is_root(const view *views, size_t count, uint32_t rank) {
    const view *v = find(views, count, rank);
    return v == NULL || !view_waits(v);
}

/* Each root once: at the first that waits for it. */
static bool is_first(const view *views, size_t waiter, uint32_t rank) {
    for (size_t i = 0; i < waiter; i++)
        if (awaits(&views[i], rank))
            return false;
    return true;
}

bool print_roots(const view *views, size_t count) {
    uint32_t *queue = calloc(count + 1, sizeof *queue);
    bool *seen = calloc(count + 1, sizeof *seen);
    const bool room = queue != NULL && seen != NULL;
    for (size_t i = 0; i < count && room; i++)
        for (size_t k = 0; k < views[i].awaited_count && view_waits(&views[i]); k++) {
            const uint32_t rank = views[i].awaited[k];
            if (!is_root(views, count, rank) || !is_first(views, i, rank))
                continue;
            print_root(views, count, rank, queue, follow(views, count, rank, queue, seen));
        }
    free(queue);
    free(seen);
    return room;
}
