/* waits.c - see waits.h. Edges lead from who waits to who is awaited. A root is awaited and does
 * not wait; those that wait for it are found from it, against the edges. */
#include "status/waits.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHILE_S 0.5 /* shorter waits belong to every round */
#define LATELY_S 1.0

/* ---- what was said ---- */

static view *find(const views *vs, uint32_t rank) {
    for (size_t i = 0; i < vs->count; i++)
        if (vs->all[i].rank == rank)
            return &vs->all[i];
    return NULL;
}

/* NULL: out of memory. */
static view *add(views *vs, uint32_t rank) {
    view *more = realloc(vs->all, (vs->count + 1) * sizeof *more);
    if (more == NULL)
        return NULL;
    vs->all = more;
    more[vs->count] = (view){.rank = rank};
    return &more[vs->count++];
}

static bool add_awaited(view *v, uint32_t rank) {
    uint32_t *more = realloc(v->awaited, (v->awaited_count + 1) * sizeof *more);
    if (more == NULL)
        return false;
    v->awaited = more;
    more[v->awaited_count++] = rank;
    return true;
}

static uint32_t rank_of(const json_t *said) {
    return (uint32_t)json_integer_value(json_object_get(said, "rank"));
}

/* Whoever answers at a port may say anything. */
static void take_text(char *out, size_t room, const char *said) {
    sl_text_show(out, room, said, strlen(said));
}

static void take_state(view *v, const json_t *said, double ago_s) {
    const char *doing = json_string_value(json_object_get(said, "doing"));
    v->answers = doing != NULL;
    take_text(v->doing, sizeof v->doing, doing != NULL ? doing : "");
    v->round = (uint64_t)json_integer_value(json_object_get(said, "round"));
    v->still_s = json_number_value(json_object_get(said, "still_s")) + ago_s;
}

/* Who answers something else does not answer. */
static bool take_own(views *vs, const sl_asked *from, const json_t *said, bool is_by_rank) {
    const char *words = json_string_value(json_object_get(said, "waits_for"));
    const bool whole = words != NULL && json_object_get(said, "doing") != NULL;
    const json_t *edges = json_object_get(said, "neighbours");
    view *v = add(vs, is_by_rank || !whole ? from->rank : rank_of(said));
    bool taken = v != NULL;
    if (!taken || !whole || rank_of(said) != v->rank)
        return taken;
    take_state(v, said, 0);
    take_text(v->words, sizeof v->words, words);
    for (size_t i = 0; i < json_array_size(edges) && taken; i++) {
        const json_t *edge = json_array_get(edges, i);
        if (json_is_true(json_object_get(edge, "awaited")))
            taken = add_awaited(v, rank_of(edge));
    }
    return taken;
}

/* ---- hearsay ---- */

/* Of who was not asked, or is elsewhere: what it has lately told a neighbour that was asked. */
static bool take_neighbours(views *vs, const json_t *answer) {
    const json_t *edges = json_object_get(answer, "neighbours");
    bool taken = true;
    for (size_t i = 0; i < json_array_size(edges) && taken; i++) {
        const json_t *said = json_object_get(json_array_get(edges, i), "said");
        const json_t *waits_for = json_object_get(said, "waits_for");
        const double ago_s = json_number_value(json_object_get(said, "ago_s"));
        if (!json_is_object(said) || ago_s > LATELY_S || find(vs, rank_of(said)) != NULL)
            continue;
        view *v = add(vs, rank_of(said));
        taken = v != NULL;
        if (taken)
            take_state(v, said, ago_s);
        if (taken && json_is_integer(waits_for))
            taken = add_awaited(v, (uint32_t)json_integer_value(waits_for));
    }
    return taken;
}

/* Of who waits for somebody of whom nothing is known: it knows itself for whom in the end. */
static bool take_root(views *vs, uint32_t waiter, const json_t *root) {
    view *v = find(vs, waiter);
    if (!json_is_object(root) || v == NULL || !v->answers)
        return true;
    for (size_t i = 0; i < v->awaited_count; i++)
        if (find(vs, v->awaited[i]) == NULL)
            v->awaited[i] = rank_of(root);
    if (find(vs, rank_of(root)) != NULL)
        return true;
    view *last = add(vs, rank_of(root));
    if (last != NULL)
        take_state(last, root, 0);
    return last != NULL;
}

static bool take_roots(views *vs, const json_t *answer) {
    const json_t *edges = json_object_get(answer, "neighbours");
    bool taken = take_root(vs, rank_of(answer), json_object_get(answer, "root"));
    for (size_t i = 0; i < json_array_size(edges) && taken; i++) {
        const json_t *said = json_object_get(json_array_get(edges, i), "said");
        taken = take_root(vs, rank_of(said), json_object_get(said, "root"));
    }
    return taken;
}

static int by_rank(const void *a, const void *b) {
    const view *one = a, *two = b;
    return (one->rank > two->rank) - (one->rank < two->rank);
}

bool views_open(views *out, const sl_asked *all, size_t count, bool are_by_rank) {
    views vs = {0};
    json_t **answers = calloc(count + 1, sizeof *answers);
    bool taken = answers != NULL;
    for (size_t i = 0; i < count && taken; i++) {
        answers[i] = all[i].said != NULL ? json_loads(all[i].said, 0, NULL) : NULL;
        taken = take_own(&vs, &all[i], answers[i], are_by_rank);
    }
    for (size_t i = 0; i < count && taken; i++)
        taken = take_neighbours(&vs, answers[i]);
    for (size_t i = 0; i < count && taken; i++)
        taken = take_roots(&vs, answers[i]);
    for (size_t i = 0; i < count && answers != NULL; i++)
        json_decref(answers[i]);
    free(answers);
    if (!taken)
        views_close(&vs);
    else if (vs.count > 0)
        qsort(vs.all, vs.count, sizeof *vs.all, by_rank);
    *out = vs;
    return taken;
}

void views_close(views *vs) {
    for (size_t i = 0; i < vs->count; i++)
        free(vs->all[i].awaited);
    free(vs->all);
    *vs = (views){0};
}

static bool stands_still(const view *v) {
    return !v->answers || v->still_s >= WHILE_S;
}

bool view_waits(const view *v) {
    return v->answers && v->awaited_count > 0 && stands_still(v);
}

/* ---- roots ---- */

static bool awaits(const view *v, uint32_t rank) {
    for (size_t i = 0; i < v->awaited_count; i++)
        if (v->awaited[i] == rank)
            return view_waits(v);
    return false;
}

/* Those that wait for the root, near ones first, go to queue[1...] as indices of views; their
 * number. queue[0] stands for the root. */
static size_t follow(const views *vs, uint32_t root, uint32_t *queue, bool *seen) {
    size_t found = 0;
    memset(seen, 0, vs->count);
    for (size_t done = 0; done <= found; done++) {
        const uint32_t rank = done == 0 ? root : vs->all[queue[done]].rank;
        for (size_t i = 0; i < vs->count; i++)
            if (!seen[i] && vs->all[i].rank != root && awaits(&vs->all[i], rank)) {
                seen[i] = true;
                queue[++found] = (uint32_t)i;
            }
    }
    return found;
}

static void print_doing(const view *v) {
    printf("rank %u %s", v->rank, v->doing);
    if (v->round > 0)
        printf(" round %llu", (unsigned long long)v->round);
    printf(" since %.0f s", v->still_s);
}

static void print_root(const views *vs, uint32_t rank, const uint32_t *queue, size_t found) {
    const view *v = find(vs, rank);
    if (!v->answers)
        printf("rank %u does not answer", rank);
    else
        print_doing(v);
    for (size_t i = 1; i <= found; i++)
        printf("%s%u", i == 1 ? "; " : ", ", vs->all[queue[i]].rank);
    printf(" %s for it\n", found == 1 ? "waits" : "wait");
}

static bool is_root(const views *vs, uint32_t rank) {
    const view *v = find(vs, rank);
    return v != NULL && stands_still(v) && !view_waits(v);
}

/* Each root once: at the first that waits for it. */
static bool is_first(const views *vs, size_t waiter, uint32_t rank) {
    for (size_t i = 0; i < waiter; i++)
        if (awaits(&vs->all[i], rank))
            return false;
    return true;
}

bool print_roots(const views *vs) {
    uint32_t *queue = calloc(vs->count + 1, sizeof *queue);
    bool *seen = calloc(vs->count + 1, sizeof *seen);
    const bool room = queue != NULL && seen != NULL;
    for (size_t i = 0; i < vs->count && room; i++)
        for (size_t k = 0; k < vs->all[i].awaited_count && view_waits(&vs->all[i]); k++) {
            const uint32_t rank = vs->all[i].awaited[k];
            if (is_root(vs, rank) && is_first(vs, i, rank))
                print_root(vs, rank, queue, follow(vs, rank, queue, seen));
        }
    free(queue);
    free(seen);
    return room;
}
