/* panel_graph.c - the graph of a topology: nodes and edges, a schedule slot by slot, a large one
 * as the pattern of its matrix; see picture.h. */
#include <math.h>
#include <stdlib.h>

#include "draw/picture.h"

enum { PHASES_SHOWN = 8, CELLS_A_SIDE = 120, SHADES = 5 };
#define LABEL_HEIGHT 20 /* above each slot */
#define RADIUS_MAX 13
#define RADIUS_MIN 1.4
/* Of the shortest distance between nodes. A slot may have only edges between neighbours on the
 * circle: half of them must be seen. */
#define RADIUS_SHARE 0.31
#define RADIUS_SHARE_SLOT 0.18
#define LABEL_MIN 7 /* size of the smallest numbers that can be read */
#define BEND 0.13   /* of an edge that has a reverse to make room for, by its length */
#define STUB 0.45   /* of an edge that wraps around: how far it is seen, in steps of the lattice */

/* One drawing of the graph; weight_max over all slots. */
typedef struct drawing {
    svg *s;
    const picture *f;
    box b;
    double radius, margin, width_max, weight_max;
} drawing;

static svg_point at(const drawing *d, uint32_t i) {
    double side = fmin(d->b.width, d->b.height) - 2 * d->margin;
    sl_point p = d->f->points[i];
    return (svg_point){d->b.x + d->b.width / 2 + side * (p.x - 0.5),
                       d->b.y + d->b.height / 2 + side * (p.y - 0.5)};
}

static double nearest_pair(const picture *f) {
    double nearest = INFINITY;
    for (uint32_t i = 0; i < sl_topology_nodes(f->topology); i++)
        for (uint32_t j = 0; j < i; j++)
            nearest = fmin(nearest,
                           hypot(f->points[i].x - f->points[j].x, f->points[i].y - f->points[j].y));
    return nearest;
}

static void weight_range(const sl_topology *t, double *min, double *max) {
    *min = INFINITY;
    *max = 0;
    for (uint32_t k = 1; k <= sl_topology_period(t); k++)
        for (uint32_t i = 0; i < sl_topology_nodes(t); i++) {
            sl_row row = sl_topology_in(t, k, i);
            for (uint32_t e = 0; e < row.count; e++) {
                *min = fmin(*min, fabs(row.weights[e]));
                *max = fmax(*max, fabs(row.weights[e]));
            }
        }
}

static double line_width(const drawing *d, double weight) {
    return d->width_max * (0.2 + 0.8 * fabs(weight) / d->weight_max);
}

/* Negative weights push apart: another colour. */
static const char *line_colour(double weight) {
    return weight < 0 ? ORANGE : PALE_BLUE;
}

static svg_point between(svg_point a, svg_point b, double share) {
    return (svg_point){a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)};
}

/* The head of an arrow that comes from `from` and touches the node around `to`. */
static void arrow_head(const drawing *d, svg_point from, svg_point to, double width,
                       const char *colour) {
    double length = hypot(to.x - from.x, to.y - from.y), size = fmin(4 + 2 * width, 0.35 * length);
    if (length <= d->radius)
        return;
    svg_point tip = between(to, from, (d->radius + 0.5) / length),
              base = between(to, from, (d->radius + 0.5 + size) / length);
    svg_point side = {0.42 * size * (to.y - from.y) / length,
                      0.42 * size * (from.x - to.x) / length};
    svg_point head[] = {
        tip, {base.x + side.x, base.y + side.y}, {base.x - side.x, base.y - side.y}};
    svg_polyline(d->s, head, 3, true, &(svg_paint){.fill = colour});
}

/* An edge seen by both its ends: as wide at each as the weight that this end gives the other. */
static void both_ways(const drawing *d, svg_point a, svg_point b, double weight_a,
                      double weight_b) {
    double wide_a = line_width(d, weight_a) / 2, wide_b = line_width(d, weight_b) / 2,
           length = hypot(b.x - a.x, b.y - a.y);
    if (fabs(weight_a - weight_b) <= SL_STOCHASTIC_TOLERANCE) {
        svg_line(d->s, a, b, &(svg_paint){.stroke = line_colour(weight_a), .width = 2 * wide_a});
        return;
    }
    svg_point normal = {(b.y - a.y) / length, (a.x - b.x) / length};
    svg_point outline[] = {{a.x + wide_a * normal.x, a.y + wide_a * normal.y},
                           {b.x + wide_b * normal.x, b.y + wide_b * normal.y},
                           {b.x - wide_b * normal.x, b.y - wide_b * normal.y},
                           {a.x - wide_a * normal.x, a.y - wide_a * normal.y}};
    svg_polyline(d->s, outline, 4, true,
                 &(svg_paint){.fill = line_colour(fmin(weight_a, weight_b))});
}

/* Instead of a line across the whole picture, its two ends. */
static void wrap_around(const drawing *d, svg_point a, svg_point b, uint32_t steps, double weight) {
    svg_paint paint = {
        .stroke = line_colour(weight), .width = line_width(d, weight), .dash = "3 2.5"};
    double share = STUB / steps;
    svg_line(d->s, a, between(a, b, -share), &paint);
    svg_line(d->s, b, between(b, a, -share), &paint);
}

static void one_way(const drawing *d, svg_point from, svg_point to, double weight, bool bend) {
    svg_paint paint = {.stroke = line_colour(weight), .width = line_width(d, weight)};
    svg_point control = between(from, to, 0.5);
    control.x += bend * BEND * (to.y - from.y);
    control.y -= bend * BEND * (to.x - from.x);
    double length = hypot(to.x - control.x, to.y - control.y);
    /* The line ends within the head: its square end would show beside the tip. */
    svg_point end = between(to, control, fmin(1, (d->radius + 3 + paint.width) / length));
    if (bend)
        svg_curve(d->s, from, control, end, &paint);
    else
        svg_line(d->s, from, end, &paint);
    arrow_head(d, control, to, paint.width, BLUE);
}

static double weight_between(sl_row row, uint32_t peer) {
    uint32_t low = 0, high = row.count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (row.peers[middle] < peer)
            low = middle + 1;
        else
            high = middle;
    }
    return low < row.count && row.peers[low] == peer ? row.weights[low] : 0;
}

static bool is_undirected(const sl_topology *t, uint64_t round) {
    for (uint32_t i = 0; i < sl_topology_nodes(t); i++) {
        sl_row in = sl_topology_in(t, round, i), out = sl_topology_out(t, round, i);
        for (uint32_t e = 0; e < in.count; e++)
            if (in.count != out.count || in.peers[e] != out.peers[e])
                return false;
    }
    return true;
}

static void edges(const drawing *d, uint64_t round) {
    const sl_topology *t = d->f->topology;
    bool undirected = is_undirected(t, round);
    for (uint32_t i = 0; i < sl_topology_nodes(t); i++) {
        sl_row row = sl_topology_in(t, round, i);
        for (uint32_t e = 0; e < row.count; e++) {
            uint32_t j = row.peers[e], steps = sl_layout_wraps(&d->f->layout, i, j);
            double back = weight_between(sl_topology_in(t, round, j), i);
            if (!undirected)
                one_way(d, at(d, j), at(d, i), row.weights[e], back != 0);
            else if (i < j && steps > 0)
                wrap_around(d, at(d, i), at(d, j), steps, row.weights[e]);
            else if (i < j)
                both_ways(d, at(d, i), at(d, j), row.weights[e], back);
        }
    }
}

/* With their numbers, if the longest can be read. */
static void nodes(const drawing *d) {
    uint32_t count = sl_topology_nodes(d->f->topology);
    double digits = snprintf(NULL, 0, "%u", count - 1),
           size = fmin(SMALL_SIZE, d->radius * fmin(1.02, 2.7 / digits));
    svg_font font = {.size = size, .colour = "#ffffff", .anchor = SVG_MIDDLE};
    for (uint32_t i = 0; i < count; i++) {
        svg_point p = at(d, i);
        svg_circle(
            d->s, p, d->radius,
            &(svg_paint){.fill = BLUE, .stroke = "#ffffff", .width = fmin(1.2, d->radius / 5)});
        if (size >= LABEL_MIN)
            svg_text(d->s, (svg_point){p.x, p.y + 0.35 * font.size}, &font, "%u", i);
    }
}

/* Does an edge lead from one end of a lattice to the other? */
static bool wraps_somewhere(const picture *f) {
    bool wraps = false;
    for (uint32_t d = 0; d < f->layout.side_count; d++)
        wraps = wraps || f->layout.sides[d] > 2;
    return wraps && f->layout.kind == SL_LAYOUT_LATTICE &&
           sl_topology_description(f->topology)->family == SL_FAMILY_TORUS;
}

/* Of a lattice, in its width. */
static double longest_step(const picture *f) {
    uint32_t side =
        f->layout.sides[0] > f->layout.sides[1] ? f->layout.sides[0] : f->layout.sides[1];
    return 1 / (side - 1 + 2 * STUB);
}

static drawing fitted(svg *s, const picture *f, box b, uint64_t lines) {
    drawing d = {.s = s, .f = f, .b = b};
    double side = fmin(b.width, b.height), weight_min;
    bool schedule = sl_topology_period(f->topology) > 1;
    double share = schedule ? RADIUS_SHARE_SLOT : RADIUS_SHARE;
    d.radius =
        sl_topology_nodes(f->topology) > 1
            ? fmax(RADIUS_MIN, fmin(RADIUS_MAX * side / 480 + 2, share * side * nearest_pair(f)))
            : RADIUS_MAX;
    d.width_max = fmin(d.radius / 2, lines < 60     ? 4.5
                                     : lines < 200  ? 3
                                     : lines < 1000 ? 1.6
                                                    : 0.8) *
                  (side < 300 ? 0.75 : 1) * (f->structure.directed ? 0.7 : 1);
    d.margin = d.radius + 2 + (wraps_somewhere(f) ? STUB * side * longest_step(f) : 0);
    weight_range(f->topology, &weight_min, &d.weight_max);
    return d;
}

/* ---- schedules ---- */

/* All edges that there are in some round, without weights. */
static void union_of_slots(const drawing *d) {
    const sl_topology *t = d->f->topology;
    const uint32_t *peers;
    for (uint32_t i = 0; i < sl_topology_nodes(t); i++) {
        uint32_t count = sl_topology_peers(t, i, &peers);
        for (uint32_t e = 0; e < count; e++)
            if (i < peers[e])
                svg_line(d->s, at(d, i), at(d, peers[e]),
                         &(svg_paint){.stroke = FAINT, .width = fmin(1.2, d->width_max)});
    }
}

/* The slots in rows, the last row in the middle, all of them together in the last place. */
static void small_multiples(svg *s, const picture *f, box b) {
    uint32_t period = sl_topology_period(f->topology),
             shown = period < PHASES_SHOWN ? period : PHASES_SHOWN, cells = shown + 1;
    uint32_t columns = (uint32_t)ceil(sqrt(cells)), rows = (cells + columns - 1) / columns,
             last = cells - (rows - 1) * columns;
    double width = b.width / columns, height = b.height / rows;
    svg_font font = {.size = SMALL_SIZE, .colour = MUTED, .anchor = SVG_MIDDLE};
    for (uint32_t c = 0; c < cells; c++) {
        double indent = c / columns + 1 == rows ? (columns - last) * width / 2 : 0;
        box cell = {b.x + indent + c % columns * width, b.y + c / columns * height, width, height};
        svg_point label = {cell.x + width / 2, cell.y + 12};
        cell = (box){cell.x + 5, cell.y + LABEL_HEIGHT, width - 10, height - LABEL_HEIGHT - 4};
        drawing d = fitted(s, f, cell, f->structure.edges / period);
        if (c < shown) {
            svg_text(s, label, &font, "round %u", c + 1);
            edges(&d, c + 1);
        } else {
            svg_text(s, label, &font, shown < period ? "all %u rounds (%u more)" : "all %u rounds",
                     period, period - shown);
            union_of_slots(&d);
        }
        nodes(&d);
    }
}

/* ---- the pattern of the matrix ---- */

/* Edges of all slots that fall into each cell of a coarse matrix; malloc'ed. */
static uint32_t *count_cells(const sl_topology *t, uint32_t side, uint32_t *most) {
    uint32_t n = sl_topology_nodes(t), *counts = calloc((size_t)side * side, sizeof *counts);
    *most = 1;
    for (uint32_t k = 1; counts != NULL && k <= sl_topology_period(t); k++)
        for (uint32_t i = 0; i < n; i++) {
            sl_row row = sl_topology_in(t, k, i);
            for (uint32_t e = 0; e < row.count; e++) {
                uint32_t *cell =
                    &counts[(uint64_t)i * side / n * side + (uint64_t)row.peers[e] * side / n];
                *most = ++*cell > *most ? *cell : *most;
            }
        }
    return counts;
}

/* From pale to strong, by the logarithm of the count; 0: nothing. */
static uint32_t shade(uint32_t count, uint32_t most) {
    if (count == 0 || most == 1)
        return count > 0 ? SHADES : 0;
    return 1 + (uint32_t)((SHADES - 1) * log(count) / log(most) + 0.5);
}

static void pattern(svg *s, const picture *f, box b) {
    static const char *const shades[SHADES + 1] = {NULL,      "#c5d5e6", "#95b3d1",
                                                   "#6690ba", "#2a6496", "#163d5e"};
    uint32_t n = sl_topology_nodes(f->topology), side = n < CELLS_A_SIDE ? n : CELLS_A_SIDE, most;
    uint32_t *counts = count_cells(f->topology, side, &most);
    double cell = fmin(b.width, b.height) / side;
    for (uint32_t i = 0; counts != NULL && i < side; i++)
        for (uint32_t j = 0, end; j < side; j = end) { /* runs of equal cells are one rectangle */
            uint32_t level = shade(counts[i * side + j], most);
            for (end = j + 1; end < side && shade(counts[i * side + end], most) == level;)
                end++;
            if (level > 0)
                svg_rectangle(s, (svg_point){b.x + j * cell, b.y + i * cell}, (end - j) * cell,
                              cell, &(svg_paint){.fill = shades[level]});
        }
    free(counts);
    svg_rectangle(s, (svg_point){b.x, b.y}, side * cell, side * cell,
                  &(svg_paint){.stroke = FAINT, .width = 1});
}

/* ---- all together ---- */

void panel_graph(svg *s, const picture *f, box b) {
    svg_begin_group(s, "graph");
    if (f->points == NULL) {
        pattern(s, f, b);
    } else if (sl_topology_period(f->topology) > 1) {
        small_multiples(s, f, b);
    } else {
        drawing d = fitted(s, f, b, f->structure.edges);
        edges(&d, 1);
        nodes(&d);
    }
    svg_end_group(s);
}

void panel_graph_legend(svg *s, const picture *f, svg_point at) {
    svg_font font = {.size = SMALL_SIZE, .colour = MUTED, .anchor = SVG_MIDDLE};
    double min, max;
    char low[SVG_NUMBER_MAX], high[SVG_NUMBER_MAX];
    weight_range(f->topology, &min, &max);
    svg_number(low, min);
    svg_number(high, max);
    if (f->points == NULL)
        svg_text(s, at, &font,
                 "pattern of W: receivers down, senders to the right; darker where there are more "
                 "edges");
    else if (max == 0)
        svg_text(s, at, &font, "one node");
    else if (max - min <= SL_STOCHASTIC_TOLERANCE)
        svg_text(s, at, &font, "every edge weighs %s%s%s", high,
                 f->structure.directed ? "; arrows point at the receiver" : "",
                 wraps_somewhere(f) ? "; dashed edges wrap around" : "");
    else
        svg_text(s, at, &font, "line width: weight, %s to %s%s%s", low, high,
                 f->structure.directed ? "; arrows point at the receiver" : "",
                 wraps_somewhere(f) ? "; dashed edges wrap around" : "");
}
