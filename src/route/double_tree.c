/* double_tree.c - see double_tree.h. */
#include "route/double_tree.h"

/* Elements of a block, at most: long enough that a frame's costs do not matter. */
static const size_t block_max = 32768;

typedef enum side { LEFT, RIGHT, BELOW_ROOT, SIDES } side;

static uint32_t root_label(uint32_t n) {
    uint32_t root = 1;
    while (root <= (n - 1) / 2)
        root *= 2;
    return root;
}

static uint32_t lowest_bit(uint32_t v) {
    return v & -v;
}

static uint32_t parent_of(uint32_t n, uint32_t v) {
    const uint32_t q = lowest_bit(v), above = v ^ q;
    return v == 0 ? root_label(n) : (above | 2 * q) < n ? (above | 2 * q) : above;
}

static uint32_t depth_of(uint32_t n, uint32_t v) {
    const uint32_t root = root_label(n);
    uint32_t depth = 0;
    for (; v != root; v = parent_of(n, v))
        depth++;
    return depth;
}

/* The leftmost way down is the longest. */
static uint32_t height_of(uint32_t n) {
    uint32_t height = 0;
    while (root_label(n) >> (height + 1) != 0)
        height++;
    return height > 0 ? height : 1;
}

static side side_of(uint32_t n, uint32_t v) {
    return v == 0 ? BELOW_ROOT : v < parent_of(n, v) ? LEFT : RIGHT;
}

/* SL_NOWHERE: it has none on this side. */
static uint32_t child_of(uint32_t n, uint32_t v, side s) {
    if (s == BELOW_ROOT)
        return v == root_label(n) ? 0 : SL_NOWHERE;
    uint32_t q = lowest_bit(v) / 2;
    if (s == LEFT || v == 0)
        return q > 0 ? v - q : SL_NOWHERE;
    while (q >= n - v)
        q /= 2;
    return q > 0 ? v + q : SL_NOWHERE;
}

static uint32_t label_of(const sl_form *f, uint32_t tree, uint32_t place) {
    return (place + tree) % f->places;
}

static uint32_t place_of(const sl_form *f, uint32_t tree, uint32_t label) {
    return label == SL_NOWHERE ? SL_NOWHERE : (label + f->places - tree) % f->places;
}

static uint32_t blocks_of(const sl_form *f) {
    const size_t blocks = (f->all.count / 2 + block_max) / block_max;
    return blocks < UINT32_MAX / 64 ? (uint32_t)blocks : UINT32_MAX / 64;
}

uint32_t sl_double_tree_steps(const sl_form *f) {
    return f->places > 1 ? 2 * SIDES * (blocks_of(f) + height_of(f->places) - 1) : 0;
}

uint32_t sl_double_tree_root(const sl_form *f, uint32_t tree) {
    return f->places > 1 ? place_of(f, tree, root_label(f->places)) : 0;
}

/* The block that a label of this depth sends in this turn; empty: none. */
static sl_range block_of(const sl_form *f, uint32_t tree, uint32_t depth, uint32_t turn) {
    const uint32_t begins = height_of(f->places) - depth, blocks = blocks_of(f);
    const sl_range half = sl_shard(f->all, tree, 2);
    return turn < begins || turn - begins >= blocks ? (sl_range){0, 0}
                                                    : sl_shard(half, turn - begins, blocks);
}

sl_move sl_double_tree_move(const sl_form *f, uint32_t place, uint32_t step) {
    const uint32_t tree = step % 2, turn = step / (2 * SIDES), n = f->places,
                   v = label_of(f, tree, place), depth = depth_of(n, v);
    const side s = (side)(step / 2 % SIDES);
    sl_move m = {.to = SL_NOWHERE, .from = place_of(f, tree, child_of(n, v, s))};
    if (m.from != SL_NOWHERE)
        m.comes = block_of(f, tree, depth + 1, turn);
    if (depth > 0 && side_of(n, v) == s) {
        m.to = place_of(f, tree, parent_of(n, v));
        m.leaves = block_of(f, tree, depth, turn);
    }
    return m;
}
