/* edge_colours.c - see edge_colours.h. */
#include "algorithm/gossip/edge_colours.h"

#include <stdlib.h>
#include <string.h>

#include "algorithm/gossip/relay_tree.h"

enum { BITS = 64 };

typedef struct colouring {
    uint32_t nodes, colours;
    size_t words;   /* of a node's set */
    uint64_t *used; /* (nodes, words) colours of its edges */
} colouring;

static uint32_t take_colour(colouring *c, uint32_t i, uint32_t j) {
    uint64_t *a = c->used + i * c->words, *b = c->used + j * c->words;
    size_t word = 0;
    while ((a[word] | b[word]) == UINT64_MAX)
        word++;
    const uint32_t bit = (uint32_t)__builtin_ctzll(~(a[word] | b[word])),
                   colour = (uint32_t)word * BITS + bit;
    a[word] |= (uint64_t)1 << bit;
    b[word] |= (uint64_t)1 << bit;
    c->colours = colour >= c->colours ? colour + 1 : c->colours;
    return colour;
}

static void colour_slot(colouring *c, const sl_topology *topology, uint32_t slot,
                        void (*each)(void *context, const sl_coloured_edge *edge), void *context) {
    memset(c->used, 0, c->nodes * c->words * sizeof *c->used);
    for (uint32_t i = 0; i < c->nodes; i++) {
        const sl_row row = sl_topology_in(topology, slot + 1, i);
        for (uint32_t k = 0; k < row.count; k++) {
            const uint32_t j = row.peers[k];
            if (j > i)
                each(context, &(sl_coloured_edge){slot, i, j, take_colour(c, i, j)});
        }
    }
}

static size_t largest_degree(const sl_topology *topology) {
    size_t degree = 0;
    for (uint32_t slot = 0; slot < sl_topology_period(topology); slot++)
        for (uint32_t i = 0; i < sl_topology_nodes(topology); i++) {
            const size_t count = sl_topology_in(topology, slot + 1, i).count;
            degree = count > degree ? count : degree;
        }
    return degree;
}

static int no_memory(const sl_topology *topology, sl_error *error) {
    return sl_fail(error, SL_ENOMEM, "topology: out of memory for the edges of %u nodes",
                   sl_topology_nodes(topology));
}

int sl_edge_colours_each(uint32_t *colours, const sl_topology *topology,
                         void (*each)(void *context, const sl_coloured_edge *edge), void *context,
                         sl_error *error) {
    colouring c = {.nodes = sl_topology_nodes(topology),
                   .words = 2 * largest_degree(topology) / BITS + 1};
    c.used = malloc(c.nodes * c.words * sizeof *c.used);
    if (c.used == NULL)
        return no_memory(topology, error);
    for (uint32_t slot = 0; slot < sl_topology_period(topology); slot++)
        colour_slot(&c, topology, slot, each, context);
    free(c.used);
    *colours = c.colours;
    return 0;
}

typedef struct meetings {
    uint32_t rank;
    size_t room;
    uint32_t *peers; /* (slots, room) */
} meetings;

static void note_meeting(void *context, const sl_coloured_edge *e) {
    const meetings *m = context;
    if (e->i == m->rank || e->j == m->rank)
        m->peers[e->slot * m->room + e->colour] = e->i == m->rank ? e->j : e->i;
}

int sl_edge_colours(uint32_t *colours, uint32_t **peers, const sl_topology *topology, uint32_t rank,
                    sl_error *error) {
    const size_t slots = sl_topology_period(topology);
    meetings m = {.rank = rank, .room = 2 * largest_degree(topology) + 1};
    m.peers = malloc(slots * m.room * sizeof *m.peers);
    if (m.peers == NULL)
        return no_memory(topology, error);
    for (size_t i = 0; i < slots * m.room; i++)
        m.peers[i] = SL_NOBODY;
    const int result = sl_edge_colours_each(colours, topology, note_meeting, &m, error);
    if (result != 0) {
        free(m.peers);
        return result;
    }
    for (size_t slot = 1, width = *colours + 1u; slot < slots; slot++)
        memmove(m.peers + slot * width, m.peers + slot * m.room, width * sizeof *m.peers);
    *peers = m.peers;
    return 0;
}
