/* tree_position.h - this agent's place in the tree over the agents of a view (route/tree.h). */
#ifndef SL_TREE_POSITION_H
#define SL_TREE_POSITION_H

#include "agent/peers/neighbour.h"
#include "route/tree.h"

/* Its neighbours in the tree: the children in rising order, then the parent. */
typedef struct sl_tree_position {
    sl_neighbour **links; /* (link_count) */
    uint32_t link_count, child_count;
    uint32_t *towards; /* (nodes) the link on the way to a rank; link_count: to this agent itself;
                          SL_TREE_NOBODY: a rank that is not in the tree */
    uint32_t nodes, members; /* of the run, in the tree */
    uint32_t view;           /* its number; 0: it is in none yet */
} sl_tree_position;

/* `neighbours` (count) are sorted by rank, borrowed, and hold all of the rank's in the tree. */
int sl_tree_position_open(sl_tree_position *out, const sl_tree *tree, uint32_t rank,
                          sl_neighbour *neighbours, uint32_t count, sl_error *error);
void sl_tree_position_close(sl_tree_position *place);
/* link_count: not one of them. */
uint32_t sl_tree_position_link(const sl_tree_position *place, const sl_neighbour *neighbour);

/* Has the link begun the view? What it hears before is of no use to it. */
bool sl_tree_position_reaches(const sl_tree_position *place, uint32_t link);

/* NULL: the rank is this agent's own. */
const sl_neighbour *sl_tree_position_towards(const sl_tree_position *place, uint32_t rank);

static inline bool sl_tree_position_is_root(const sl_tree_position *place) {
    return place->link_count == place->child_count;
}

#endif
