/* double_tree.h - the double binary tree of Sanders, Speck and Träff (2009): two in-order binary
 * trees over all places, the second shifted by one.
 *
 * Label v > 0 has the height of its lowest set bit, q; its parent is (v xor q) or 2q, or v xor q
 * where that is no label. 0 is a leaf under the root, the largest power of two below n. In the
 * first tree a place's label is the place, in the second place + 1 modulo n: inner labels are even,
 * so that no place is inner in both.
 *
 * A tree sums up half of the vector in blocks, which follow each other: in turn t a label of depth
 * e sends block t - (height - e) to its parent. A parent takes left child, right child, and the
 * root 0, one after the other; the trees take turns.
 */
#ifndef SL_DOUBLE_TREE_H
#define SL_DOUBLE_TREE_H

#include "route/form.h"

/* Of the first half: all blocks to the root. */
uint32_t sl_double_tree_steps(const sl_form *form);
sl_move sl_double_tree_move(const sl_form *form, uint32_t place, uint32_t step);
/* The place of a tree's root. */
uint32_t sl_double_tree_root(const sl_form *form, uint32_t tree);

#endif
