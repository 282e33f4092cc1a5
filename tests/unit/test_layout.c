/* test_layout.c - where nodes stand in a picture, and the writer of pictures. */
#include "draw/svg.h"
#include "starling/layout.h"
#include "topologies.h"
#include "topology/layout/stress.h"

static sl_layout place(sl_point *points, const sl_topology *t) {
    sl_layout l = sl_layout_choose(t);
    EXPECT_WELL(sl_layout_place(points, &l, t, &error));
    return l;
}

static double distance(sl_point a, sl_point b) {
    return hypot(a.x - b.x, a.y - b.y);
}

START_TEST(one_node_stands_in_the_middle) {
    sl_point point;
    sl_topology *t = parse("{'nodes': 1, 'family': 'star'}");
    place(&point, t);
    ck_assert(point.x == 0.5 && point.y == 0.5);
}

/* A cycle under other names stands like a ring: neighbours are next to each other. */
START_TEST(a_listed_cycle_is_a_circle) {
    sl_point points[6];
    sl_topology *t = parse("{'nodes': 6, 'edges': [[0,3],[3,1],[1,5],[5,2],[2,4],[4,0]]}");
    static const uint32_t cycle[] = {0, 3, 1, 5, 2, 4};
    ck_assert(place(points, t).kind == SL_LAYOUT_CYCLE);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol(distance(points[cycle[i]], points[cycle[(i + 1) % 6]]),
                                distance(points[0], points[3]), 1e-9);
}

/* A path's distances fit on a line: stress vanishes there. A grid's nearly fit: opposite corners
 * come out farthest. */
START_TEST(stress_recovers_what_fits_the_plane) {
    enum { N = 12 };
    uint16_t hops[N * N];
    sl_point points[N];
    for (int i = 0; i < N * N; i++)
        hops[i] = (uint16_t)abs(i / N - i % N);
    EXPECT_WELL(sl_stress_place(points, hops, N, &error));
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            ck_assert_double_eq_tol(distance(points[i], points[j]), abs(i - j), 0.02);
    ck_assert_double_lt(fabs(points[0].y - points[N - 1].y), 0.05); /* and it lies flat */
}

START_TEST(too_many_nodes_are_refused) {
    static sl_point points[1];
    sl_topology *t = parse("{'nodes': 501, 'family': 'ring'}");
    sl_layout l = sl_layout_choose(t);
    EXPECT_ERROR(sl_layout_place(points, &l, t, &error), SL_EINVAL, "501");
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
    EXPECT_WELL(svg_open(&s, path, 100, 50, "a < b & \"c\"", "", &error));
    svg_line(s, (svg_point){1.0 / 3, -0.001}, (svg_point){100, 2.5},
             &(svg_paint){.stroke = "#000000", .width = 1});
    svg_text(s, (svg_point){0, 0}, &(svg_font){.size = 10, .colour = "#000000"}, "x_{2} > 10^{%d}",
             3);
    EXPECT_WELL(svg_close(&s, &error));
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
    EXPECT_ERROR(svg_open(&s, "/nowhere/x.svg", 10, 10, "", "", &error), SL_EFILE,
                 "/nowhere/x.svg");
    if (access("/dev/full", W_OK) != 0)
        return;
    EXPECT_WELL(svg_open(&s, "/dev/full", 10, 10, "", "", &error));
    ck_assert_int_eq(svg_close(&s, &error), SL_EFILE);
    ck_assert_int_eq(access("/dev/full", F_OK), 0);
}
