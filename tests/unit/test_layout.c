/* test_layout.c - where nodes stand in a picture, and the writer of pictures. */
#include "draw/layout.h"
#include "draw/stress.h"
#include "draw/svg.h"
#include "topologies.h"

static layout place(layout_point *points, const sl_topology *t) {
    layout l = layout_choose(t);
    ck_assert_msg(layout_place(points, &l, t, &error) == 0, "%s", error.text);
    return l;
}

static double distance(layout_point a, layout_point b) {
    return hypot(a.x - b.x, a.y - b.y);
}

/* All that a layout promises: inside the square, two sides of it touched, no two nodes on the same
 * spot, the same again. */
static void expect_sound(const char *json, layout_kind kind) {
    static layout_point points[LAYOUT_NODES_MAX], again[LAYOUT_NODES_MAX];
    sl_topology *t = parse(json);
    uint32_t n = sl_topology_nodes(t);
    layout l = place(points, t);
    ck_assert_msg(l.kind == kind, "%s: layout %d, not %d", json, l.kind, kind);
    double left = 1, right = 0, top = 1, bottom = 0, nearest = INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        left = fmin(left, points[i].x);
        right = fmax(right, points[i].x);
        top = fmin(top, points[i].y);
        bottom = fmax(bottom, points[i].y);
        for (uint32_t j = 0; j < i; j++)
            nearest = fmin(nearest, distance(points[i], points[j]));
    }
    ck_assert_msg(left > -1e-9 && right < 1 + 1e-9 && top > -1e-9 && bottom < 1 + 1e-9,
                  "%s: %g..%g, %g..%g", json, left, right, top, bottom);
    ck_assert_msg(fabs(fmax(right - left, bottom - top) - 1) < 1e-9, "%s: %g wide, %g high", json,
                  right - left, bottom - top);
    ck_assert_msg(nearest > 0.12 / n, "%s: two nodes are %g apart", json, nearest);
    place(again, t);
    ck_assert_msg(memcmp(points, again, n * sizeof *points) == 0,
                  "%s: another layout at the second time", json);
    sl_topology_close(&t);
}

START_TEST(every_layout_is_sound) {
    expect_sound("{'nodes': 2, 'family': 'ring'}", LAYOUT_CIRCLE);
    expect_sound("{'nodes': 300, 'family': 'ring'}", LAYOUT_CIRCLE);
    expect_sound("{'nodes': 9, 'family': 'path'}", LAYOUT_ARC);
    expect_sound("{'nodes': 17, 'family': 'star'}", LAYOUT_HUB);
    expect_sound("{'nodes': 12, 'family': 'complete'}", LAYOUT_CIRCLE);
    expect_sound("{'nodes': 11, 'family': 'complete-bipartite', 'part': 4}", LAYOUT_COLUMNS);
    expect_sound("{'nodes': 24, 'family': 'torus', 'sides': [4, 6]}", LAYOUT_LATTICE);
    expect_sound("{'nodes': 24, 'family': 'torus', 'sides': [24]}", LAYOUT_CIRCLE);
    expect_sound("{'nodes': 24, 'family': 'grid', 'sides': [1, 24]}", LAYOUT_ARC);
    expect_sound("{'nodes': 60, 'family': 'grid', 'sides': [3, 4, 5]}", LAYOUT_LATTICE);
    expect_sound("{'nodes': 8, 'family': 'hypercube'}", LAYOUT_LATTICE);
    expect_sound("{'nodes': 256, 'family': 'hypercube'}", LAYOUT_LATTICE);
    expect_sound("{'nodes': 15, 'family': 'k-ary-tree'}", LAYOUT_TREE);
    expect_sound("{'nodes': 364, 'family': 'k-ary-tree', 'arity': 3}", LAYOUT_TREE);
    expect_sound("{'nodes': 7, 'edges': [[0,1],[0,2],[2,3],[2,4],[4,5],[4,6]]}", LAYOUT_TREE);
    expect_sound("{'nodes': 20, 'family': 'barbell'}", LAYOUT_STRESS);
    expect_sound("{'nodes': 100, 'family': 'random-regular', 'degree': 4}", LAYOUT_STRESS);
    expect_sound("{'nodes': 480, 'family': 'random-regular', 'degree': 3}", LAYOUT_STRESS);
    expect_sound("{'nodes': 12, 'family': 'one-peer-exponential'}", LAYOUT_CIRCLE);
    expect_sound("{'nodes': 16, 'family': 'one-peer-hypercube'}", LAYOUT_LATTICE);
}

START_TEST(one_node_stands_in_the_middle) {
    layout_point point;
    sl_topology *t = parse("{'nodes': 1, 'family': 'star'}");
    place(&point, t);
    ck_assert(point.x == 0.5 && point.y == 0.5);
    sl_topology_close(&t);
}

/* A cycle under other names stands like a ring: neighbours are next to each other. */
START_TEST(a_listed_cycle_is_a_circle) {
    layout_point points[6];
    sl_topology *t = parse("{'nodes': 6, 'edges': [[0,3],[3,1],[1,5],[5,2],[2,4],[4,0]]}");
    static const uint32_t cycle[] = {0, 3, 1, 5, 2, 4};
    ck_assert(place(points, t).kind == LAYOUT_CYCLE);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol(distance(points[cycle[i]], points[cycle[(i + 1) % 6]]),
                                distance(points[0], points[3]), 1e-9);
    sl_topology_close(&t);
}

/* A path's distances fit on a line: stress vanishes there. A grid's nearly fit: opposite corners
 * come out farthest. */
START_TEST(stress_recovers_what_fits_the_plane) {
    enum { N = 12 };
    uint16_t hops[N * N];
    layout_point points[N];
    for (int i = 0; i < N * N; i++)
        hops[i] = (uint16_t)abs(i / N - i % N);
    ck_assert_int_eq(stress_place(points, hops, N, &error), 0);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            ck_assert_double_eq_tol(distance(points[i], points[j]), abs(i - j), 0.02);
    ck_assert_double_lt(fabs(points[0].y - points[N - 1].y), 0.05); /* and it lies flat */
}

START_TEST(too_many_nodes_are_refused) {
    static layout_point points[1];
    sl_topology *t = parse("{'nodes': 501, 'family': 'ring'}");
    layout l = layout_choose(t);
    ck_assert_int_eq(layout_place(points, &l, t, &error), SL_EINVAL);
    ck_assert_ptr_nonnull(strstr(error.text, "501"));
    sl_topology_close(&t);
}

/* ---- svg ---- */

static void read_back(char *text, size_t room, const char *path) {
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t length = fread(text, 1, room - 1, file);
    text[length] = '\0';
    fclose(file);
    unlink(path);
}

START_TEST(text_is_escaped_and_numbers_are_short) {
    char path[] = "/tmp/starling-svg-XXXXXX", text[4096];
    close(mkstemp(path));
    svg *s = NULL;
    ck_assert_int_eq(svg_open(&s, path, 100, 50, "a < b & \"c\"", "", &error), 0);
    svg_line(s, (svg_point){1.0 / 3, -0.001}, (svg_point){100, 2.5},
             &(svg_paint){.stroke = "#000000", .width = 1});
    svg_text(s, (svg_point){0, 0}, &(svg_font){.size = 10, .colour = "#000000"}, "x_{2} > 10^{%d}",
             3);
    ck_assert_int_eq(svg_close(&s, &error), 0);
    ck_assert_ptr_null(s);
    read_back(text, sizeof text, path);
    ck_assert_ptr_nonnull(strstr(text, "a &lt; b &amp; &quot;c&quot;"));
    ck_assert_ptr_nonnull(strstr(text, "x1=\"0.33\" y1=\"0\" x2=\"100\" y2=\"2.5\""));
    ck_assert_ptr_nonnull(
        strstr(text, ">x</tspan><tspan dy=\"2\" font-size=\"7.2\">2</tspan><tspan dy=\"-2\"> &gt; "
                     "10</tspan><tspan dy=\"-4\""));
}

START_TEST(what_cannot_be_written_is_told) {
    svg *s = NULL;
    ck_assert_int_eq(svg_open(&s, "/nowhere/x.svg", 10, 10, "", "", &error), SL_EFILE);
    ck_assert_ptr_nonnull(strstr(error.text, "/nowhere/x.svg"));
    if (access("/dev/full", W_OK) != 0)
        return;
    ck_assert_int_eq(svg_open(&s, "/dev/full", 10, 10, "", "", &error), 0);
    ck_assert_int_eq(svg_close(&s, &error), SL_EFILE);
    ck_assert_int_eq(access("/dev/full", F_OK), 0);
}

int main(void) {
    return run_tests("layout");
}
