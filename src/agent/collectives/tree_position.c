/* tree_position.c - see tree_position.h. */
#include "agent/collectives/tree_position.h"

#include <stdlib.h>
#include <string.h>

/* Children are the first links; all that is not below them is behind the parent, the last. */
static void find_ways(sl_tree_position *p, const sl_tree *tree, uint32_t rank) {
    for (uint32_t i = 0, child = 0; i < tree->count; i++) {
        const uint32_t at = tree->order[i], parent = tree->parents[at];
        if (at == rank)
            p->towards[at] = p->link_count;
        else if (parent == rank)
            p->towards[at] = child++;
        else
            p->towards[at] = i == 0 ? p->child_count : p->towards[parent];
    }
}

/* A rank beyond the first topology is in no tree before a view has it. */
static uint32_t parent_of(const sl_tree *tree, uint32_t rank) {
    return rank < tree->nodes ? tree->parents[rank] : SL_TREE_NOBODY;
}

int sl_tree_position_open(sl_tree_position *out, const sl_tree *tree, uint32_t rank,
                          sl_neighbour *neighbours, uint32_t count, sl_error *error) {
    sl_tree_position p = {.links = calloc(count + 1u, sizeof *p.links),
                          .towards = calloc(tree->nodes, sizeof *p.towards),
                          .nodes = tree->nodes,
                          .members = tree->count};
    if (p.links == NULL || p.towards == NULL) {
        sl_tree_position_close(&p);
        return sl_fail(error, SL_ENOMEM, "agent %u: out of memory for %u neighbours", rank, count);
    }
    for (uint32_t i = 0; i < tree->nodes; i++)
        p.towards[i] = SL_TREE_NOBODY;
    for (uint32_t i = 0; i < count; i++)
        if (parent_of(tree, neighbours[i].rank) == rank)
            p.links[p.child_count++] = &neighbours[i];
    p.link_count = p.child_count;
    for (uint32_t i = 0; i < count; i++)
        if (rank != tree->order[0] && neighbours[i].rank == parent_of(tree, rank))
            p.links[p.link_count++] = &neighbours[i];
    find_ways(&p, tree, rank);
    *out = p;
    return 0;
}

const sl_neighbour *sl_tree_position_towards(const sl_tree_position *p, uint32_t rank) {
    return rank < p->nodes && p->towards[rank] < p->link_count ? p->links[p->towards[rank]] : NULL;
}

void sl_tree_position_close(sl_tree_position *p) {
    free(p->links);
    free(p->towards);
    memset(p, 0, sizeof *p);
}

bool sl_tree_position_reaches(const sl_tree_position *p, uint32_t link) {
    const sl_neighbour *n = p->links[link];
    return n->process.view == p->view && !n->absence.gone;
}

uint32_t sl_tree_position_link(const sl_tree_position *p, const sl_neighbour *neighbour) {
    uint32_t i = 0;
    while (i < p->link_count && p->links[i] != neighbour)
        i++;
    return i;
}
