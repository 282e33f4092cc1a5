/* layout.c - where the nodes of a graph stand; see layout.h. */
#include "starling/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/layout/stress.h"

enum { TREE_ROW_LEAVES_MAX = 27 };
#define ARC_GAP 0.9      /* of a path's circle, in radians */
#define NESTED 0.56      /* width of what is nested, in steps of the lattice around it */
#define NESTED_TURN 0.42 /* radians: so that long edges pass beside nodes, not through them */
#define NESTED_SINGLE_TURN 0.6
#define TREE_HEIGHT 0.8 /* of a tree in rows, by its width */

/* ---- which ---- */

static bool is_tree(const sl_topology *t) {
    uint64_t ends = 0;
    const uint32_t *peers;
    for (uint32_t i = 0; i < sl_topology_nodes(t); i++)
        ends += sl_topology_peers(t, i, &peers);
    return ends == 2 * ((uint64_t)sl_topology_nodes(t) - 1); /* a topology is connected */
}

static bool is_cycle(const sl_topology *t) {
    const uint32_t *peers;
    bool result = sl_topology_nodes(t) > 2;
    for (uint32_t i = 0; result && i < sl_topology_nodes(t); i++)
        result = sl_topology_peers(t, i, &peers) == 2;
    return result;
}

static bool has_leaf_root(const sl_topology *t) {
    const uint32_t *peers;
    return sl_topology_peers(t, 0, &peers) < 2;
}

/* Sides of length 1 are no dimension; a cube's sides are all 2. One dimension alone is a line or a
 * circle. */
static void take_sides(sl_layout *l, const sl_topology_spec *d, sl_family family) {
    for (uint32_t k = 0; k < d->side_count; k++)
        if (d->sides[k] > 1)
            l->sides[l->side_count++] = d->sides[k];
    for (uint32_t n = d->side_count == 0 ? d->nodes : 1; n > 1; n /= 2)
        l->sides[l->side_count++] = 2;
    if (l->side_count < 2)
        l->kind = family == SL_FAMILY_TORUS ? SL_LAYOUT_CIRCLE : SL_LAYOUT_ARC;
}

/* Where a family does not stand as the rules below say. */
static const struct {
    sl_family family;
    sl_layout_kind kind;
} usual[] = {
    {SL_FAMILY_RING, SL_LAYOUT_CIRCLE},
    {SL_FAMILY_COMPLETE, SL_LAYOUT_CIRCLE},
    {SL_FAMILY_CIRCULANT, SL_LAYOUT_CIRCLE},
    {SL_FAMILY_SYMMETRIC_EXPONENTIAL, SL_LAYOUT_CIRCLE},
    {SL_FAMILY_WATTS_STROGATZ, SL_LAYOUT_CIRCLE},
    {SL_FAMILY_U_EQUISTATIC, SL_LAYOUT_CIRCLE},
    {SL_FAMILY_PATH, SL_LAYOUT_ARC},
    {SL_FAMILY_STAR, SL_LAYOUT_HUB},
    {SL_FAMILY_WHEEL, SL_LAYOUT_HUB},
    {SL_FAMILY_COMPLETE_BIPARTITE, SL_LAYOUT_COLUMNS},
    {SL_FAMILY_GRID, SL_LAYOUT_LATTICE},
    {SL_FAMILY_TORUS, SL_LAYOUT_LATTICE},
    {SL_FAMILY_HYPERCUBE, SL_LAYOUT_LATTICE},
    {SL_FAMILY_ONE_PEER_HYPERCUBE, SL_LAYOUT_LATTICE},
    {SL_FAMILY_K_ARY_TREE, SL_LAYOUT_TREE},
};

sl_layout sl_layout_choose(const sl_topology *t) {
    const sl_topology_spec *d = sl_topology_description(t);
    sl_family family = d->family == SL_FAMILY_MATCHA ? d->base : d->family;
    const sl_family_info *info = sl_family_describe(family);
    sl_layout l = {.kind = SL_LAYOUT_STRESS, .part = d->part};
    if (info->directed || info->schedule)
        l.kind = SL_LAYOUT_CIRCLE;
    else if (is_tree(t) && !has_leaf_root(t))
        l.kind = SL_LAYOUT_TREE;
    if (is_cycle(t))
        l.kind = SL_LAYOUT_CYCLE;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (usual[i].family == family)
            l.kind = usual[i].kind;
    if (l.kind == SL_LAYOUT_LATTICE)
        take_sides(&l, d, family);
    return l;
}

/* ---- where ---- */

static void place_circle(sl_point *points, uint32_t first, uint32_t n, double gap) {
    double turn = n > 1 ? (2 * M_PI - gap) / (gap > 0 ? n - 1 : n) : 0,
           start = gap > 0 ? M_PI / 2 + gap / 2 : -M_PI / 2;
    for (uint32_t i = first; i < n + first; i++)
        points[i] = (sl_point){cos(start + turn * (i - first)), sin(start + turn * (i - first))};
}

/* On a circle in the order in which the one cycle leads from node to node. */
static void place_cycle(sl_point *points, const sl_topology *t) {
    uint32_t n = sl_topology_nodes(t), before = 0, at = 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t *peers;
        double angle = 2 * M_PI * k / n;
        points[at] = (sl_point){sin(angle), -cos(angle)};
        sl_topology_peers(t, at, &peers);
        uint32_t next = k == 0 || peers[0] != before ? peers[0] : peers[1];
        before = at;
        at = next;
    }
}

static void place_columns(sl_point *points, uint32_t part, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t count = i < part ? part : n - part, at = i < part ? i : i - part;
        points[i] = (sl_point){i < part ? 0 : 0.75, (at + 0.5) / count};
    }
}

/* Dimensions two by two, down and right, from the outermost to the innermost: each pair nested
 * between the steps of the one before, and turned against it. */
static void place_lattice(sl_point *points, const sl_layout *l, uint32_t n) {
    sl_point steps[SL_SIDES_MAX];
    double step = 1, angle = 0;
    for (uint32_t d = 0; d < l->side_count; d += 2) {
        bool single = d + 1 == l->side_count;
        uint32_t longest = single || l->sides[d] > l->sides[d + 1] ? l->sides[d] : l->sides[d + 1];
        if (d > 0) {
            step *= NESTED / (longest - 1);
            angle += single ? NESTED_SINGLE_TURN : NESTED_TURN;
        }
        sl_point right = {step * cos(angle), -step * sin(angle)},
                 down = {step * sin(angle), step * cos(angle)};
        steps[d] = single ? right : down;
        if (!single)
            steps[d + 1] = right;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rest = i;
        points[i] = (sl_point){0, 0};
        for (uint32_t d = l->side_count; d-- > 0; rest /= l->sides[d]) {
            points[i].x += rest % l->sides[d] * steps[d].x;
            points[i].y += rest % l->sides[d] * steps[d].y;
        }
    }
}

uint32_t sl_layout_wraps(const sl_layout *l, uint32_t i, uint32_t j) {
    uint32_t steps = 0;
    if (l->kind != SL_LAYOUT_LATTICE)
        return 0;
    for (uint32_t d = l->side_count; d-- > 0; i /= l->sides[d], j /= l->sides[d]) {
        uint32_t a = i % l->sides[d], b = j % l->sides[d];
        if (a == b)
            continue;
        if (steps > 0 || l->sides[d] < 3 || (a > b ? a - b : b - a) != l->sides[d] - 1)
            return 0;
        steps = l->sides[d] - 1;
    }
    return steps;
}

/* ---- trees ---- */

typedef struct tree {
    uint32_t *parent, *depth, *order; /* (n) order: by depth */
    double *across;                   /* (n) leaves count 0.5, 1.5, ... */
    uint32_t leaves, deepest;
} tree;

static void tree_grow(tree *r, const sl_topology *t) {
    const uint32_t *peers;
    uint32_t count = 1;
    r->order[0] = r->parent[0] = r->depth[0] = 0;
    for (uint32_t at = 0; at < count; at++) {
        uint32_t i = r->order[at], degree = sl_topology_peers(t, i, &peers);
        for (uint32_t e = 0; e < degree; e++)
            if (at == 0 || peers[e] != r->parent[i]) {
                r->parent[peers[e]] = i;
                r->depth[peers[e]] = r->depth[i] + 1;
                r->order[count++] = peers[e];
            }
        r->deepest = r->depth[i];
    }
}

/* Leaves in the order in which a walk around the tree meets them, parents above the middle of their
 * children. */
static void tree_spread(tree *r, const sl_topology *t, uint32_t i) {
    const uint32_t *peers;
    uint32_t degree = sl_topology_peers(t, i, &peers), children = 0;
    double sum = 0;
    for (uint32_t e = 0; e < degree; e++)
        if (i == 0 || peers[e] != r->parent[i]) {
            tree_spread(r, t, peers[e]); /* as deep as the tree: at most SL_LAYOUT_NODES_MAX */
            sum += r->across[peers[e]];
            children++;
        }
    r->across[i] = children > 0 ? sum / children : 0.5 + r->leaves++;
}

static void tree_place(sl_point *points, const tree *r, uint32_t n) {
    bool rows = r->leaves <= TREE_ROW_LEAVES_MAX;
    for (uint32_t i = 0; i < n; i++) {
        double across = r->across[i] / r->leaves, down = (double)r->depth[i] / r->deepest,
               angle = 2 * M_PI * across;
        points[i] = rows ? (sl_point){across, TREE_HEIGHT * down}
                         : (sl_point){down * sin(angle), -down * cos(angle)};
    }
}

static int place_tree(sl_point *points, const sl_topology *t, sl_error *error) {
    uint32_t n = sl_topology_nodes(t), *numbers = calloc(3 * (size_t)n, sizeof *numbers);
    tree r = {numbers, numbers + n, numbers + 2 * (size_t)n, calloc(n, sizeof(double)), 0, 0};
    int result = numbers && r.across
                     ? 0
                     : sl_fail(error, SL_ENOMEM, "out of memory for the picture of %u nodes", n);
    if (result == 0) {
        tree_grow(&r, t);
        tree_spread(&r, t, 0);
        tree_place(points, &r, n);
    }
    free(numbers);
    free(r.across);
    return result;
}

/* ---- distances ---- */

static void walk_from(uint16_t *hops, uint32_t *queue, const sl_topology *t, uint32_t from) {
    uint32_t n = sl_topology_nodes(t), count = 1;
    memset(hops, 0xFF, n * sizeof *hops);
    hops[from] = 0;
    queue[0] = from;
    for (uint32_t at = 0; at < count; at++) {
        const uint32_t *peers;
        uint32_t degree = sl_topology_peers(t, queue[at], &peers);
        for (uint32_t e = 0; e < degree; e++)
            if (hops[peers[e]] == UINT16_MAX) {
                hops[peers[e]] = (uint16_t)(hops[queue[at]] + 1);
                queue[count++] = peers[e];
            }
    }
}

static int place_by_distances(sl_point *points, const sl_topology *t, sl_error *error) {
    uint32_t n = sl_topology_nodes(t), *queue = malloc(n * sizeof *queue);
    uint16_t *hops = malloc((size_t)n * n * sizeof *hops);
    int result = queue && hops
                     ? 0
                     : sl_fail(error, SL_ENOMEM, "out of memory for the picture of %u nodes", n);
    for (uint32_t i = 0; result == 0 && i < n; i++)
        walk_from(hops + (size_t)i * n, queue, t, i);
    if (result == 0)
        result = sl_stress_place(points, hops, n, error);
    free(queue);
    free(hops);
    return result;
}

/* ---- all together ---- */

/* Into the unit square, in proportion, centred. */
static void fit(sl_point *points, uint32_t n) {
    double left = INFINITY, right = -INFINITY, top = INFINITY, bottom = -INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        left = fmin(left, points[i].x);
        right = fmax(right, points[i].x);
        top = fmin(top, points[i].y);
        bottom = fmax(bottom, points[i].y);
    }
    double side = fmax(right - left, bottom - top), scale = side > 0 ? 1 / side : 0;
    for (uint32_t i = 0; i < n; i++)
        points[i] = (sl_point){0.5 + scale * (points[i].x - (left + right) / 2),
                               0.5 + scale * (points[i].y - (top + bottom) / 2)};
}

int sl_layout_place(sl_point *points, const sl_layout *l, const sl_topology *t, sl_error *error) {
    uint32_t n = sl_topology_nodes(t);
    int result = 0;
    if (n > SL_LAYOUT_NODES_MAX)
        return sl_fail(error, SL_EINVAL, "%u nodes are too many to be shown one by one; at most %u",
                       n, SL_LAYOUT_NODES_MAX);
    switch (l->kind) {
    case SL_LAYOUT_CIRCLE:
        place_circle(points, 0, n, 0);
        break;
    case SL_LAYOUT_CYCLE:
        place_cycle(points, t);
        break;
    case SL_LAYOUT_ARC:
        place_circle(points, 0, n, ARC_GAP);
        break;
    case SL_LAYOUT_HUB:
        points[0] = (sl_point){0, 0};
        place_circle(points, 1, n - 1, 0);
        break;
    case SL_LAYOUT_COLUMNS:
        place_columns(points, l->part, n);
        break;
    case SL_LAYOUT_LATTICE:
        place_lattice(points, l, n);
        break;
    case SL_LAYOUT_TREE:
        result = n > 1 ? place_tree(points, t, error) : 0;
        break;
    case SL_LAYOUT_STRESS:
        result = place_by_distances(points, t, error);
        break;
    }
    if (result == 0)
        fit(points, n);
    return result;
}
