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

/* peers: of the slot. */
static void colour_all(colouring *c, const sl_topology *topology, uint32_t slot, uint32_t rank,
                       uint32_t *peers) {
    memset(c->used, 0, c->nodes * c->words * sizeof *c->used);
    for (uint32_t i = 0; i < c->nodes; i++) {
        const sl_row row = sl_topology_in(topology, slot + 1, i);
        for (uint32_t k = 0; k < row.count; k++) {
            const uint32_t j = row.peers[k];
            if (j < i)
                continue;
            const uint32_t colour = take_colour(c, i, j);
            if (i == rank || j == rank)
                peers[colour] = i == rank ? j : i;
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

int sl_edge_colours(uint32_t *colours, uint32_t **peers, const sl_topology *topology, uint32_t rank,
                    sl_error *error) {
    const size_t degree = largest_degree(topology), room = 2 * degree + 1,
                 slots = sl_topology_period(topology);
    colouring c = {.nodes = sl_topology_nodes(topology), .words = 2 * degree / BITS + 1};
    c.used = malloc(c.nodes * c.words * sizeof *c.used);
    *peers = malloc(slots * room * sizeof **peers);
    const bool complete = c.used != NULL && *peers != NULL;
    for (size_t i = 0; complete && i < slots * room; i++)
        (*peers)[i] = SL_NOBODY;
    for (uint32_t slot = 0; complete && slot < slots; slot++)
        colour_all(&c, topology, slot, rank, *peers + slot * room);
    for (size_t slot = 1, width = c.colours + 1u; complete && slot < slots; slot++)
        memmove(*peers + slot * width, *peers + slot * room, width * sizeof **peers);
    free(c.used);
    *colours = c.colours;
    if (complete)
        return 0;
    free(*peers);
    *peers = NULL;
    return sl_fail(error, SL_ENOMEM, "topology: out of memory for the edges of %u nodes", c.nodes);
}
