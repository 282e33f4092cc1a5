/* place.c - see place.h. */
#include "agent/place.h"

#include <stdlib.h>
#include <string.h>

int sl_place_open(sl_place *out, const sl_tree *tree, uint32_t rank, sl_neighbour *neighbours,
                  uint32_t count, sl_error *error) {
    sl_place p = {.links = calloc(count + 1u, sizeof *p.links)};
    if (p.links == NULL)
        return sl_fail(error, SL_ENOMEM, "agent %u: out of memory for %u neighbours", rank, count);
    for (uint32_t i = 0; i < count; i++)
        if (tree->parents[neighbours[i].rank] == rank)
            p.links[p.child_count++] = &neighbours[i];
    p.link_count = p.child_count;
    for (uint32_t i = 0; i < count; i++)
        if (rank != tree->order[0] && neighbours[i].rank == tree->parents[rank])
            p.links[p.link_count++] = &neighbours[i];
    *out = p;
    return 0;
}

void sl_place_close(sl_place *p) {
    free(p->links);
    memset(p, 0, sizeof *p);
}

uint32_t sl_place_link(const sl_place *p, const sl_neighbour *neighbour) {
    uint32_t i = 0;
    while (i < p->link_count && p->links[i] != neighbour)
        i++;
    return i;
}
