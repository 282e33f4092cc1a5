/* parts.c - in words, why a graph is not connected: for whoever has to mend its edges. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/graph/graph.h"

enum { NAMED_MAX = 6, NO_PART = UINT32_MAX };

/* Text that grows until its room is full. */
typedef struct words {
    char *text;
    size_t room, used;
} words;

__attribute__((format(printf, 2, 3))) static void say(words *w, const char *format, ...) {
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(w->text + w->used, w->room - w->used, format, values);
    va_end(values);
    w->used += length < 0 ? 0 : (size_t)length;
    w->used = w->used < w->room ? w->used : w->room - 1;
}

/* What stands before item k of `count`, of which NAMED_MAX are named at most. */
static const char *before(uint32_t k, uint32_t count) {
    return k == 0 ? "" : k + 1 == count ? " and " : ", ";
}

/* ---- parts: what hangs together if edges lead both ways ---- */

typedef struct parts {
    uint32_t *of;                 /* (nodes) the part of a node */
    uint32_t *size;               /* (nodes) of each part, in the order of their lowest nodes */
    uint32_t *first;              /* (nodes) the lowest node of each */
    uint32_t *queue;              /* (nodes) */
    uint32_t count, alone, large; /* of one node; of more */
} parts;

static void parts_close(parts *p) {
    free(p->of);
    free(p->size);
    free(p->first);
    free(p->queue);
}

static void visit(parts *p, const side *s, uint32_t node, uint32_t part) {
    for (uint64_t e = s->start[node]; e < s->start[node + 1]; e++)
        if (p->of[s->peers[e]] == NO_PART) {
            p->of[s->peers[e]] = part;
            p->queue[p->size[part]++] = s->peers[e];
        }
}

static void gather(parts *p, const graph *g, uint32_t first) {
    const uint32_t part = p->count++;
    p->of[first] = part;
    p->first[part] = p->queue[0] = first;
    p->size[part] = 1;
    for (uint32_t done = 0; done < p->size[part]; done++)
        for (uint32_t k = 0; k < g->period; k++) {
            const uint32_t node = p->queue[done];
            visit(p, &g->slots[k].in, node, part);
            visit(p, &g->slots[k].out, node, part);
        }
    *(p->size[part] == 1 ? &p->alone : &p->large) += 1;
}

static bool parts_open(parts *out, const graph *g) {
    const size_t bytes = g->nodes * sizeof(uint32_t);
    parts p = {
        .of = malloc(bytes), .size = malloc(bytes), .first = malloc(bytes), .queue = malloc(bytes)};
    const bool allocated = p.of && p.size && p.first && p.queue;
    for (uint32_t i = 0; allocated && i < g->nodes; i++)
        p.of[i] = NO_PART;
    for (uint32_t i = 0; allocated && i < g->nodes; i++)
        if (p.of[i] == NO_PART)
            gather(&p, g, i);
    if (allocated)
        *out = p;
    else
        parts_close(&p);
    return allocated;
}

/* "node 7 has no edge", "nodes 1, 4 and 3 others have no edge" */
static void say_alone(words *w, const parts *p) {
    const uint32_t named = p->alone > NAMED_MAX ? NAMED_MAX : p->alone,
                   items = p->alone > named ? named + 1 : named;
    uint32_t k = 0;
    say(w, p->alone == 1 ? "node " : "nodes ");
    for (uint32_t part = 0; part < p->count && k < named; part++)
        if (p->size[part] == 1) {
            say(w, "%s%u", before(k, items), p->first[part]);
            k++;
        }
    if (items > named)
        say(w, " and %u others", p->alone - named);
    say(w, p->alone == 1 ? " has no edge" : " have no edge");
}

/* "2 parts: 5 nodes with node 0 and 3 nodes with node 5" */
static void say_parts(words *w, const parts *p) {
    const uint32_t named = p->large > NAMED_MAX ? NAMED_MAX : p->large,
                   items = p->large > named ? named + 1 : named;
    uint32_t k = 0;
    say(w, "%u parts: ", p->large);
    for (uint32_t part = 0; part < p->count && k < named; part++)
        if (p->size[part] > 1) {
            say(w, "%s%u nodes with node %u", before(k, items), p->size[part], p->first[part]);
            k++;
        }
    if (items > named)
        say(w, " and %u others", p->large - named);
}

/* ---- directions ---- */

static bool is_bare(const graph *g, bool forward, uint32_t node) {
    uint64_t edges = 0;
    for (uint32_t k = 0; k < g->period; k++) {
        const side *s = forward ? &g->slots[k].out : &g->slots[k].in;
        edges += s->start[node + 1] - s->start[node];
    }
    return edges == 0;
}

static void say_direction(words *w, const graph *g) {
    for (uint32_t i = 0; i < g->nodes; i++)
        for (int forward = 0; forward < 2; forward++)
            if (is_bare(g, forward, i)) {
                say(w, "no edge leads %s node %u", forward ? "away from" : "to", i);
                return;
            }
    const uint32_t lost = sl_graph_unreached(g, true);
    if (lost != 0)
        say(w, "no way leads from node 0 to node %u", lost);
    else
        say(w, "no way leads from node %u to node 0", sl_graph_unreached(g, false));
}

void sl_graph_say_parts(char *out, size_t room, const graph *g) {
    words w = {.text = out, .room = room};
    parts p;
    *out = '\0';
    if (!parts_open(&p, g)) {
        say(&w, "some nodes can never hear of others");
        return;
    }
    if (p.large > 1)
        say_parts(&w, &p);
    if (p.alone > 0 && p.large > 1)
        say(&w, "; ");
    if (p.alone > 0 && p.count > 1)
        say_alone(&w, &p);
    if (p.count == 1)
        say_direction(&w, g);
    parts_close(&p);
}

void sl_topology_say_parts(char *out, size_t room, const sl_topology *topology) {
    sl_graph_say_parts(out, room, &topology->graph);
}
