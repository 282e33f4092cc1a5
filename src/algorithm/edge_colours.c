/* edge_colours.c - see edge_colours.h. */
#include "algorithm/edge_colours.h"

#include <stdlib.h>

#include "algorithm/relay_tree.h"

enum { BITS = 64 };

typedef struct colouring {
    uint32_t nodes, colours;
    size_t words;   /* of a node's set */
    uint64_t *used; /* (nodes, words) colours of its edges */
    uint32_t *peers;
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

static void colour_all(colouring *c, const sl_topology *topology, uint32_t rank) {
    for (uint32_t i = 0; i < c->nodes; i++) {
        const sl_row row = sl_topology_in(topology, 1, i);
        for (uint32_t k = 0; k < row.count; k++) {
            const uint32_t j = row.peers[k];
            if (j < i)
                continue;
            const uint32_t colour = take_colour(c, i, j);
            if (i == rank || j == rank)
                c->peers[colour] = i == rank ? j : i;
        }
    }
}

int sl_edge_colours(uint32_t *colours, uint32_t **peers, const sl_topology *topology, uint32_t rank,
                    sl_error *error) {
    colouring c = {.nodes = sl_topology_nodes(topology)};
    size_t degree = 0;
    for (uint32_t i = 0; i < c.nodes; i++) {
        const size_t count = sl_topology_in(topology, 1, i).count;
        degree = count > degree ? count : degree;
    }
    c.words = 2 * degree / BITS + 1;
    c.used = calloc(c.nodes * c.words, sizeof *c.used);
    c.peers = malloc((2 * degree + 1) * sizeof *c.peers);
    const bool complete = c.used != NULL && c.peers != NULL;
    for (size_t i = 0; complete && i <= 2 * degree; i++)
        c.peers[i] = SL_NOBODY;
    if (complete)
        colour_all(&c, topology, rank);
    else
        free(c.peers);
    free(c.used);
    *peers = complete ? c.peers : NULL;
    *colours = c.colours;
    return complete ? 0
                    : sl_fail(error, SL_ENOMEM, "topology: out of memory for the edges of %u nodes",
                              c.nodes);
}
