/* form.c - see form.h. Each form says what its first half does. */
#include "route/form.h"

#include <string.h>

/* Elements of a block of the double tree, at most: so that a frame's costs do not matter. */
static const size_t block_max = 32768;

static sl_range half_of(sl_range range, bool upper) {
    const size_t middle = (2 * range.from + range.count) / 2;
    return upper ? (sl_range){middle, range.from + range.count - middle}
                 : (sl_range){range.from, middle - range.from};
}

static sl_move rest(void) {
    return (sl_move){.to = SL_NOWHERE, .from = SL_NOWHERE};
}

static bool is_rest(const sl_move *m) {
    return m->to == SL_NOWHERE && m->from == SL_NOWHERE;
}

static sl_move send(uint32_t to, sl_range range) {
    return (sl_move){.to = to, .from = SL_NOWHERE, .leaves = range};
}

static sl_move take(uint32_t from, sl_range range) {
    return (sl_move){.to = SL_NOWHERE, .from = from, .comes = range};
}

static uint32_t largest_power(uint32_t n) {
    uint32_t p = 1;
    while (p <= n / 2)
        p *= 2;
    return p;
}

static uint32_t log_of(uint32_t power) {
    uint32_t log = 0;
    while (power >> (log + 1) != 0)
        log++;
    return log;
}

/* ---- rings ---- */

/* Every `stride`-th place from `first` on. */
typedef struct line {
    uint32_t first, stride, count, at;
} line;

static uint32_t place_on(line l, uint32_t at) {
    return l.first + at % l.count * l.stride;
}

/* After count - 1 steps all is summed up; as many more pass it on. */
static sl_move round_the_ring(line l, sl_range range, uint32_t step) {
    const uint32_t sent = (l.at + l.count - step % l.count) % l.count,
                   comes = (sent + l.count - 1) % l.count;
    return (sl_move){.to = place_on(l, l.at + 1),
                     .from = place_on(l, l.at + l.count - 1),
                     .leaves = sl_shard(range, sent, l.count),
                     .comes = sl_shard(range, comes, l.count)};
}

/* Of which this member of the ring has the sum in the end. */
static sl_range summed_on(line l, sl_range range) {
    return sl_shard(range, (l.at + 1) % l.count, l.count);
}

/* ---- torus; a ring is one of one row ---- */

static line row_of(const sl_form *f, uint32_t place) {
    return (line){place / f->group * f->group, 1, f->group, place % f->group};
}

static line column_of(const sl_form *f, uint32_t place) {
    return (line){place % f->group, f->group, f->places / f->group, place / f->group};
}

/* The first ring stands still while the second one sums up and passes on. */
static sl_move on_torus(line first, line second, sl_range range, uint32_t step) {
    const uint32_t sums = first.count - 1, stands = 2 * (second.count - 1);
    if (step < sums || step >= sums + stands)
        return round_the_ring(first, range, step < sums ? step : step - stands);
    return round_the_ring(second, summed_on(first, range), step - sums);
}

static uint32_t torus_steps(const sl_form *f) {
    return f->group - 1 + f->places / f->group - 1;
}

static sl_move on_two_rings(const sl_form *f, uint32_t place, uint32_t step) {
    const line row = row_of(f, place), column = column_of(f, place);
    const sl_range half = half_of(f->all, step % 2 != 0);
    return step % 2 ? on_torus(column, row, half, step / 2) : on_torus(row, column, half, step / 2);
}

/* ---- groups ---- */

static uint32_t group_count(const sl_form *f) {
    return (f->places - 1) / f->group + 1;
}

/* The ring of the first places. */
static line firsts(const sl_form *f, uint32_t place) {
    return (line){0, f->group, group_count(f), place / f->group};
}

static sl_move in_groups(const sl_form *f, uint32_t place, uint32_t step) {
    const uint32_t member = place % f->group, first = place - member;
    if (step >= f->group - 1)
        return member == 0 ? round_the_ring(firsts(f, place), f->all, step - (f->group - 1))
                           : rest();
    if (member == 0 && first + step + 1 < f->places)
        return take(first + step + 1, f->all);
    return member == step + 1 ? send(first, f->all) : rest();
}

/* ---- trees and cubes ---- */

static sl_move to_the_middle(const sl_form *f, uint32_t place) {
    return place == f->middle ? take(SL_EVERYWHERE, f->all) : send(f->middle, f->all);
}

/* Of so many places, the first ones. */
static sl_move up_the_tree(const sl_form *f, uint32_t places, uint32_t place, uint32_t step) {
    const uint32_t h = 1u << step;
    if (place % (2 * h) == h)
        return send(place - h, f->all);
    return place % (2 * h) == 0 && h < places - place ? take(place + h, f->all) : rest();
}

static sl_move fold(const sl_form *f, uint32_t place, uint32_t power) {
    if (place >= power)
        return send(place - power, f->all);
    return power < f->places - place ? take(place + power, f->all) : rest();
}

/* What a place below p keeps after the fold and `steps` halvings. */
static sl_range kept_of(const sl_form *f, uint32_t place, uint32_t steps) {
    sl_range range = f->all;
    for (uint32_t h = largest_power(f->places) / 2; steps > 0; steps--, h /= 2)
        range = half_of(range, (place & h) != 0);
    return range;
}

static sl_move halve(const sl_form *f, uint32_t place, uint32_t step) {
    const uint32_t h = largest_power(f->places) >> (step + 1);
    const sl_range range = kept_of(f, place, step);
    return (sl_move){.to = place ^ h,
                     .from = place ^ h,
                     .leaves = half_of(range, (place & h) == 0),
                     .comes = half_of(range, (place & h) != 0)};
}

static sl_move after_a_fold(const sl_form *f, uint32_t place, uint32_t step) {
    const uint32_t power = largest_power(f->places);
    if (step == 0)
        return fold(f, place, power);
    if (place >= power)
        return rest();
    const uint32_t other = place ^ 1u << (step - 1);
    if (f->kind == SL_ALL_REDUCE_RECURSIVE_DOUBLING)
        return (sl_move){other, other, f->all, f->all};
    return f->kind == SL_ALL_REDUCE_HALVING_DOUBLING ? halve(f, place, step - 1)
                                                     : up_the_tree(f, power, place, step - 1);
}

/* ---- double tree ----
 *
 * Two in-order binary trees over all places, the second shifted by one. Label v > 0 has the height
 * of its lowest set bit, q; its parent is (v xor q) or 2q, or v xor q where that is no label. 0 is
 * a leaf under the root, the largest power of two below n. In the first tree a place's label is the
 * place, in the second place + 1 modulo n: inner labels are even, so that no place is inner in
 * both.
 *
 * A tree sums up half of the vector in blocks, which follow each other: in turn t a label of depth
 * e sends block t - (height - e) to its parent. A parent takes left child, right child, and the
 * root 0, one after the other; the trees take turns.
 */

typedef enum side { LEFT, RIGHT, BELOW_ROOT, SIDES } side;

/* The largest power of two below n. */
static uint32_t root_label(uint32_t n) {
    return largest_power(n - 1);
}

static uint32_t parent_of(uint32_t n, uint32_t v) {
    const uint32_t q = v & -v, above = v ^ q;
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
    const uint32_t height = log_of(root_label(n));
    return height > 0 ? height : 1;
}

static side side_of(uint32_t n, uint32_t v) {
    return v == 0 ? BELOW_ROOT : v < parent_of(n, v) ? LEFT : RIGHT;
}

/* SL_NOWHERE: it has none on this side. */
static uint32_t child_of(uint32_t n, uint32_t v, side s) {
    if (s == BELOW_ROOT)
        return v == root_label(n) ? 0 : SL_NOWHERE;
    uint32_t q = (v & -v) / 2;
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

static uint32_t double_tree_steps(const sl_form *f) {
    return f->places > 1 ? 2 * SIDES * (blocks_of(f) + height_of(f->places) - 1) : 0;
}

static uint32_t double_tree_root(const sl_form *f, uint32_t tree) {
    return f->places > 1 ? place_of(f, tree, root_label(f->places)) : 0;
}

/* The block that a label of this depth sends in this turn; empty: none. */
static sl_range block_of(const sl_form *f, uint32_t tree, uint32_t depth, uint32_t turn) {
    const uint32_t begins = height_of(f->places) - depth, blocks = blocks_of(f);
    const sl_range half = sl_shard(f->all, tree, 2);
    return turn < begins || turn - begins >= blocks ? (sl_range){0, 0}
                                                    : sl_shard(half, turn - begins, blocks);
}

static sl_move on_double_tree(const sl_form *f, uint32_t place, uint32_t step) {
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

/* ---- all of them ---- */

static sl_move move_in(const sl_form *f, uint32_t place, uint32_t step) {
    switch (f->kind) {
    case SL_ALL_REDUCE_TREE:
    case SL_ALL_REDUCE_RECURSIVE_DOUBLING:
    case SL_ALL_REDUCE_HALVING_DOUBLING:
        return f->folds ? after_a_fold(f, place, step) : up_the_tree(f, f->places, place, step);
    case SL_ALL_REDUCE_HIERARCHICAL:
        return in_groups(f, place, step);
    case SL_ALL_REDUCE_RING:
    case SL_ALL_REDUCE_TORUS_2D:
        return on_torus(row_of(f, place), column_of(f, place), f->all, step);
    case SL_ALL_REDUCE_TWO_RINGS:
        return on_two_rings(f, place, step);
    case SL_ALL_REDUCE_DOUBLE_TREE:
        return on_double_tree(f, place, step);
    case SL_ALL_REDUCE_STAR:
        return to_the_middle(f, place);
    }
    return rest();
}

/* Of the first half. */
static uint32_t steps_in(const sl_form *f) {
    switch (f->kind) {
    case SL_ALL_REDUCE_TREE:
    case SL_ALL_REDUCE_RECURSIVE_DOUBLING:
    case SL_ALL_REDUCE_HALVING_DOUBLING:
        return f->folds        ? 1 + log_of(largest_power(f->places))
               : f->places > 1 ? log_of(f->places - 1) + 1
                               : 0;
    case SL_ALL_REDUCE_HIERARCHICAL:
        return f->group - 1 + group_count(f) - 1;
    case SL_ALL_REDUCE_RING:
    case SL_ALL_REDUCE_TORUS_2D:
        return torus_steps(f);
    case SL_ALL_REDUCE_TWO_RINGS:
        return 2 * torus_steps(f);
    case SL_ALL_REDUCE_DOUBLE_TREE:
        return double_tree_steps(f);
    case SL_ALL_REDUCE_STAR:
        return 1;
    }
    return 0;
}

/* How many steps of the first half go back. */
static uint32_t steps_back(const sl_form *f) {
    return f->kind == SL_ALL_REDUCE_RECURSIVE_DOUBLING ? 1 : steps_in(f);
}

/* Does the second half do this step in a ring's direction? */
static bool goes_on(const sl_form *f, uint32_t step) {
    return f->kind == SL_ALL_REDUCE_RING || f->kind == SL_ALL_REDUCE_TORUS_2D ||
           f->kind == SL_ALL_REDUCE_TWO_RINGS ||
           (f->kind == SL_ALL_REDUCE_HIERARCHICAL && step + 1 < group_count(f));
}

/* Parts of the vector that are summed up by themselves, by turns. */
static uint32_t parts_of(const sl_form *f) {
    return f->kind == SL_ALL_REDUCE_TWO_RINGS || f->kind == SL_ALL_REDUCE_DOUBLE_TREE ? 2 : 1;
}

/* A form of one place has steps, too, in which nothing moves. */
uint32_t sl_form_steps(const sl_form *f, bool gather) {
    const uint32_t steps = gather ? steps_back(f) : steps_in(f), least = parts_of(f);
    return steps > least ? steps : least;
}

sl_move sl_form_move(const sl_form *f, bool gather, uint32_t place, uint32_t step) {
    if (f->places == 1 && f->kind != SL_ALL_REDUCE_STAR)
        return rest();
    if (!gather || goes_on(f, step))
        return move_in(f, place, gather ? steps_in(f) + step : step);
    const sl_move m = move_in(f, place, steps_back(f) - 1 - step);
    return (sl_move){.to = m.from, .from = m.to, .leaves = m.comes, .comes = m.leaves};
}

/* Of a part: what came last is whole, unless the place has sent it on; a double tree's is a block.
 */
sl_range sl_form_summed(const sl_form *f, uint32_t place, uint32_t step) {
    const uint32_t parts = parts_of(f), steps = steps_in(f),
                   part = goes_on(f, step) ? step : parts - 1 - step; /* back: the other first */
    sl_move last = rest();
    if (step >= parts)
        return last.comes;
    if (f->places == 1 || f->kind == SL_ALL_REDUCE_DOUBLE_TREE)
        return double_tree_root(f, part) != place ? last.comes
               : parts > 1                        ? half_of(f->all, part > 0)
                                                  : f->all;
    for (uint32_t i = steps - parts + part; is_rest(&last) && i < steps; i -= parts)
        last = move_in(f, place, i);
    return last.comes;
}

/* ---- opening ---- */

static uint32_t divisor_up_to(uint32_t most, uint32_t n) {
    while (n % most != 0)
        most--;
    return most;
}

static uint32_t root_of(uint32_t n) {
    uint32_t root = 1;
    while ((uint64_t)(root + 1) * (root + 1) <= n)
        root++;
    return root;
}

static uint32_t group_of(sl_all_reduce_form kind, uint32_t group, uint32_t n) {
    const uint32_t wanted = group == 0 ? root_of(n) : group < n ? group : n;
    if (kind == SL_ALL_REDUCE_TORUS_2D || kind == SL_ALL_REDUCE_TWO_RINGS)
        return divisor_up_to(wanted, n);
    return kind == SL_ALL_REDUCE_HIERARCHICAL ? wanted : kind == SL_ALL_REDUCE_RING ? n : 1;
}

sl_form sl_form_of(sl_all_reduce_form kind, uint32_t group, uint32_t places, size_t dimension) {
    const bool folds =
        kind == SL_ALL_REDUCE_RECURSIVE_DOUBLING || kind == SL_ALL_REDUCE_HALVING_DOUBLING;
    return (sl_form){kind, places, group_of(kind, group, places), 0, {0, dimension}, folds};
}

sl_form sl_form_of_merges(uint32_t places, size_t dimension) {
    return (sl_form){SL_ALL_REDUCE_TREE, places, 1, 0, {0, dimension}, true};
}

uint32_t sl_peer_add(uint32_t *sorted, uint32_t count, uint32_t peer) {
    uint32_t at = count;
    while (at > 0 && sorted[at - 1] > peer)
        at--;
    if (peer >= SL_EVERYWHERE || (at > 0 && sorted[at - 1] == peer))
        return count;
    memmove(sorted + at + 1, sorted + at, (count - at) * sizeof *sorted);
    sorted[at] = peer;
    return count + 1;
}

/* The first half has them all. Of one element, so that there are no blocks. */
uint32_t sl_form_partners(const sl_form *f, uint32_t place, uint32_t *out) {
    sl_form short_form = *f;
    uint32_t count = 0;
    short_form.all.count = 1;
    for (uint32_t step = 0; step < sl_form_steps(&short_form, false); step++) {
        const sl_move m = sl_form_move(&short_form, false, place, step);
        count = sl_peer_add(out, count, m.to);
        count = sl_peer_add(out, count, m.from);
    }
    for (uint32_t i = 0; f->kind == SL_ALL_REDUCE_STAR && place == f->middle && i < f->places; i++)
        count = i != place ? sl_peer_add(out, count, i) : count;
    return count;
}
