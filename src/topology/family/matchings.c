/* matchings.c - edge colouring with at most one colour more than the largest degree: Misra, Gries,
 * "A constructive proof of Vizing's theorem", 1992.
 *
 * One edge u v after the other gets a colour. A fan at u is a list of neighbours, v first, in which
 * the edge to each has a colour that the one before lacks. With c lacking at u and d at the fan's
 * last node, the path of d and c edges from u changes its colours; then the fan up to some node
 * that lacks d moves its colours up by one, and the edge to that node gets d.
 */
#include "topology/family/matchings.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t none = UINT32_MAX;
static const uint64_t table_max = 50000000;

typedef struct colouring {
    matchings *m;
    uint32_t colours;
    uint32_t *at;   /* (nodes, colours) the edge of that colour, or none */
    uint32_t *fan;  /* (colours) edges */
    uint32_t *path; /* (nodes) edges */
} colouring;

static uint32_t *edge_at(const colouring *c, uint32_t node, uint32_t colour) {
    return &c->at[(size_t)node * c->colours + colour];
}

static uint32_t other_end(const colouring *c, uint32_t edge, uint32_t node) {
    const uint32_t *ends = c->m->ends[edge];
    return ends[0] == node ? ends[1] : ends[0];
}

static void set_colour(colouring *c, uint32_t edge, uint32_t colour) {
    c->m->of[edge] = colour;
    *edge_at(c, c->m->ends[edge][0], colour) = *edge_at(c, c->m->ends[edge][1], colour) = edge;
}

static void clear_colour(colouring *c, uint32_t edge) {
    uint32_t colour = c->m->of[edge];
    *edge_at(c, c->m->ends[edge][0], colour) = *edge_at(c, c->m->ends[edge][1], colour) = none;
}

/* There is one, as there are more colours than neighbours. */
static uint32_t lacking(const colouring *c, uint32_t node) {
    uint32_t colour = 0;
    while (*edge_at(c, node, colour) != none)
        colour++;
    return colour;
}

static bool is_in_fan(const colouring *c, uint32_t edge, uint32_t length) {
    for (uint32_t k = 0; k < length; k++)
        if (c->fan[k] == edge)
            return true;
    return false;
}

static uint32_t grow_fan(colouring *c, uint32_t u, uint32_t edge) {
    uint32_t length = 1;
    c->fan[0] = edge;
    for (bool grown = true; grown;) {
        grown = false;
        uint32_t last = other_end(c, c->fan[length - 1], u);
        for (uint32_t colour = 0; colour < c->colours && !grown; colour++) {
            uint32_t next = *edge_at(c, u, colour);
            if (next == none || *edge_at(c, last, colour) != none || is_in_fan(c, next, length))
                continue;
            c->fan[length++] = next;
            grown = true;
        }
    }
    return length;
}

static void swap_colours(colouring *c, uint32_t u, uint32_t first, uint32_t second) {
    uint32_t length = 0, node = u;
    for (uint32_t colour = first; *edge_at(c, node, colour) != none;
         colour = first + second - colour) {
        c->path[length] = *edge_at(c, node, colour);
        node = other_end(c, c->path[length++], node);
    }
    for (uint32_t k = 0; k < length; k++)
        clear_colour(c, c->path[k]);
    for (uint32_t k = 0; k < length; k++)
        set_colour(c, c->path[k], first + second - c->m->of[c->path[k]]);
}

static void colour_edge(colouring *c, uint32_t edge) {
    uint32_t u = c->m->ends[edge][0], length = grow_fan(c, u, edge);
    uint32_t own = lacking(c, u), free_at_end = lacking(c, other_end(c, c->fan[length - 1], u)),
             k = 0;
    swap_colours(c, u, free_at_end, own);
    /* The first node of the fan that now lacks the colour; up to it the fan has kept its property.
     */
    while (*edge_at(c, other_end(c, c->fan[k], u), free_at_end) != none)
        k++;
    for (uint32_t i = 0; i < k; i++) {
        uint32_t colour = c->m->of[c->fan[i + 1]];
        clear_colour(c, c->fan[i + 1]);
        set_colour(c, c->fan[i], colour);
    }
    set_colour(c, c->fan[k], free_at_end);
}

/* Colours that no edge has are left out. */
static int number_matchings(matchings *m, uint32_t colours, sl_error *error) {
    uint32_t *number = malloc(colours * sizeof *number);
    if (number == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u matchings", colours);
    memset(number, 0xFF, colours * sizeof *number);
    for (uint32_t e = 0; e < m->edges; e++) {
        if (number[m->of[e]] == none)
            number[m->of[e]] = m->count++;
        m->of[e] = number[m->of[e]];
    }
    free(number);
    return 0;
}

static uint32_t largest_degree(const matchings *m, uint32_t *degrees) {
    uint32_t largest = 0;
    memset(degrees, 0, m->nodes * sizeof *degrees);
    for (uint32_t e = 0; e < m->edges; e++)
        for (int end = 0; end < 2; end++)
            if (++degrees[m->ends[e][end]] > largest)
                largest = degrees[m->ends[e][end]];
    return largest;
}

static int colour_edges(matchings *m, sl_error *error) {
    colouring c = {.m = m, .path = malloc(m->nodes * sizeof *c.path)};
    int result = 0;
    if (c.path != NULL) {
        m->degree_max = largest_degree(m, c.path);
        c.colours = m->degree_max + 1;
        if ((uint64_t)m->nodes * c.colours > table_max) {
            free(c.path);
            return sl_fail(error, SL_EINVAL,
                           "nodes: %u nodes of up to %u neighbours are too many to split into "
                           "matchings; at most %llu in all",
                           m->nodes, m->degree_max, (unsigned long long)table_max);
        }
        c.at = malloc((size_t)m->nodes * c.colours * sizeof *c.at);
        c.fan = malloc(c.colours * sizeof *c.fan);
    }
    if (c.path && c.at && c.fan) {
        memset(c.at, 0xFF, (size_t)m->nodes * c.colours * sizeof *c.at);
        for (uint32_t e = 0; e < m->edges; e++)
            colour_edge(&c, e);
        result = number_matchings(m, c.colours, error);
    } else {
        result = sl_fail(error, SL_ENOMEM, "out of memory for the matchings of %u nodes", m->nodes);
    }
    free(c.at);
    free(c.fan);
    free(c.path);
    return result;
}

int sl_matchings_open(matchings *out, const edge_list *list, uint32_t nodes, sl_error *error) {
    matchings m = {.nodes = nodes, .edges = (uint32_t)(list->count / 2)};
    m.ends = malloc((m.edges + 1u) * sizeof *m.ends);
    m.of = malloc((m.edges + 1u) * sizeof *m.of);
    int result = 0;
    if (m.ends == NULL || m.of == NULL)
        result = sl_fail(error, SL_ENOMEM, "out of memory for the matchings of %u edges", m.edges);
    for (uint32_t e = 0; result == 0 && e < m.edges; e++) {
        m.ends[e][0] = list->edges[2 * (size_t)e].from;
        m.ends[e][1] = list->edges[2 * (size_t)e].to;
    }
    if (result == 0)
        result = colour_edges(&m, error);
    if (result != 0) {
        sl_matchings_close(&m);
        return result;
    }
    *out = m;
    return 0;
}

void sl_matchings_close(matchings *m) {
    free(m->ends);
    free(m->of);
    *m = (matchings){0};
}
