/* panel_spectrum.c - the eigenvalues of W (of a schedule: of the product over its period): on a
 * line from -1 to 1 where W is symmetric, in the unit circle where it is not. What lies between
 * them and 1 in modulus is the gap. */
#include <math.h>
#include <stdlib.h>

#include "draw/picture.h"

enum { BINS = 96, STEMS_MAX = 64 };
#define SAME 1e-7    /* eigenvalues that differ by less are one, several times */
#define STEM_MIN 0.3 /* height of a single eigenvalue, where others come more often */

static const svg_font label_font = {.size = SMALL_SIZE, .colour = MUTED, .anchor = SVG_MIDDLE};
static const svg_font value_font = {.size = SMALL_SIZE, .colour = ORANGE, .anchor = SVG_MIDDLE};

/* ---- symmetric: a line ---- */

static double on_axis(box b, double value) {
    return b.x + b.width * (value + 1) / 2;
}

static void axis(svg *s, box b) {
    static const struct {
        double value;
        const char *text;
    } ticks[] = {{-1, "−1"}, {-0.5, "−0.5"}, {0, "0"}, {0.5, "0.5"}, {1, "1"}};
    double y = b.y + b.height;
    svg_line(s, (svg_point){b.x, y}, (svg_point){b.x + b.width, y},
             &(svg_paint){.stroke = MUTED, .width = 1});
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++) {
        double x = on_axis(b, ticks[i].value);
        svg_line(s, (svg_point){x, y}, (svg_point){x, y + 4},
                 &(svg_paint){.stroke = MUTED, .width = 1});
        svg_text(s, (svg_point){x, y + 16}, &label_font, "%s", ticks[i].text);
    }
}

static void shade_gap(svg *s, const picture *f, box b) {
    double rho = fmin(f->spectrum.rho, 1), width = b.width * (1 - rho) / 2;
    svg_rectangle(s, (svg_point){b.x, b.y}, width, b.height, &(svg_paint){.fill = PALE_ORANGE});
    svg_rectangle(s, (svg_point){b.x + b.width - width, b.y}, width, b.height,
                  &(svg_paint){.fill = PALE_ORANGE});
}

static void stem(svg *s, box b, double value, double height, const char *colour) {
    double x = on_axis(b, value), top = b.y + b.height * (1 - height);
    svg_line(s, (svg_point){x, b.y + b.height}, (svg_point){x, top},
             &(svg_paint){.stroke = colour, .width = 1.6});
    svg_circle(s, (svg_point){x, top}, 3, &(svg_paint){.fill = colour});
}

/* One stem for each eigenvalue, higher where it comes more often. values: largest first. */
static void stems(svg *s, const picture *f, box b) {
    uint32_t n = sl_topology_nodes(f->topology), most = 1;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0, end; i < n; i = end) {
            for (end = i + 1; end < n && f->real[i] - f->real[end] < SAME;)
                end++;
            if (pass == 0) {
                most = end - i > most ? end - i : most;
                continue;
            }
            bool extreme = i == 1 || end == n || (i == 0 && end > 1);
            double share = most > 1 ? (double)(end - i - 1) / (most - 1) : 1;
            stem(s, b, f->real[i], 0.72 * (STEM_MIN + (1 - STEM_MIN) * share),
                 i == 0    ? INK
                 : extreme ? ORANGE
                           : BLUE);
        }
}

static void histogram(svg *s, const picture *f, box b) {
    uint32_t n = sl_topology_nodes(f->topology), counts[BINS] = {0}, most = 1;
    for (uint32_t i = 1; i < n; i++) {
        int bin = (int)(BINS * (f->real[i] + 1) / 2);
        uint32_t *count = &counts[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin];
        most = ++*count > most ? *count : most;
    }
    for (int bin = 0; bin < BINS; bin++) {
        double height = 0.66 * b.height * counts[bin] / most, width = b.width / BINS;
        if (counts[bin] > 0)
            svg_rectangle(s, (svg_point){b.x + bin * width, b.y + b.height - height}, width - 0.5,
                          height, &(svg_paint){.fill = PALE_BLUE});
    }
}

static void extremes(svg *s, const picture *f, box b) {
    stem(s, b, f->spectrum.lambda_n, 0.5, ORANGE);
    stem(s, b, f->spectrum.lambda_2, 0.5, ORANGE);
    stem(s, b, 1, 0.5, INK);
}

static double within(double x, double low, double high) {
    return fmax(low, fmin(high, x));
}

static void name_only(svg *s, const picture *f, box b) {
    char value[SVG_NUMBER_MAX];
    svg_number(value, f->spectrum.lambda_2);
    svg_text(s, (svg_point){on_axis(b, f->spectrum.lambda_2), b.y + 13}, &value_font,
             "all others %s", value);
}

/* lambda_n left and lambda_2 right of each other, inside the panel. */
static void name_extremes(svg *s, const picture *f, box b) {
    char second[SVG_NUMBER_MAX], last[SVG_NUMBER_MAX];
    svg_number(second, f->spectrum.lambda_2);
    svg_number(last, f->spectrum.lambda_n);
    double half = 38, y = b.y + 13,
           right =
               within(on_axis(b, f->spectrum.lambda_2), b.x + 3 * half + 8, b.x + b.width - half);
    double left = within(on_axis(b, f->spectrum.lambda_n), b.x + half, right - 2 * half - 8);
    svg_text(s, (svg_point){right, y}, &value_font, "λ_{2} %s", second);
    svg_text(s, (svg_point){left, y}, &value_font, "λ_{n} %s", last);
}

static void panel_line(svg *s, const picture *f, box b) {
    uint32_t n = sl_topology_nodes(f->topology);
    shade_gap(s, f, b);
    if (f->real == NULL) {
        double left = on_axis(b, f->spectrum.lambda_n);
        svg_rectangle(s, (svg_point){left, b.y + 0.7 * b.height},
                      on_axis(b, f->spectrum.lambda_2) - left, 0.3 * b.height,
                      &(svg_paint){.fill = PALE_BLUE});
    } else if (n > STEMS_MAX) {
        histogram(s, f, b);
    } else {
        stems(s, f, b);
    }
    if (f->real == NULL || n > STEMS_MAX)
        extremes(s, f, b);
    axis(s, b);
    if (n > 1 && f->spectrum.lambda_2 - f->spectrum.lambda_n < SAME)
        name_only(s, f, b);
    else if (n > 1)
        name_extremes(s, f, b);
}

/* ---- not symmetric: the unit circle ---- */

static void circle_points(svg *s, const picture *f, svg_point centre, double radius) {
    uint32_t n = sl_topology_nodes(f->topology);
    double rho = f->spectrum.rho, size = n > 200 ? 1.5 : 3;
    for (uint32_t i = n; i-- > 0;) { /* the largest on top */
        bool second = i > 0 && hypot(f->real[i], f->imaginary[i]) > rho - SAME;
        svg_point p = {centre.x + radius * f->real[i], centre.y - radius * f->imaginary[i]};
        svg_circle(s, p, size, &(svg_paint){.fill = i == 0 ? INK : second ? ORANGE : BLUE});
    }
}

static void circle_text(svg *s, const picture *f, svg_point at) {
    const sl_spectrum *p = &f->spectrum;
    svg_font font = {.size = TEXT_SIZE, .colour = INK},
             faint = {.size = TEXT_SIZE, .colour = MUTED};
    bool schedule = sl_topology_period(f->topology) > 1;
    char value[SVG_NUMBER_MAX];
    svg_number(value,
               f->exact_after > 0 ? 0 : p->rho); /* where it is exact, all others vanish; what is
                                                    computed is the root of a rounding error */
    svg_text(s, at, &font, "|λ_{2}| = %s%s", value, p->multiplicity > 1 ? ", several times" : "");
    svg_number(value, p->singular_2);
    svg_text(s, (svg_point){at.x, at.y + 22}, &font, "‖%s − J‖ = %s", schedule ? "product" : "W",
             value);
    svg_text(s, (svg_point){at.x, at.y + 44}, &faint, "%s",
             schedule ? "of the product over one period:" : "W is not symmetric: its");
    svg_text(s, (svg_point){at.x, at.y + 60}, &faint, "%s",
             schedule ? "in modulus, and the worst that is left" : "eigenvalues may be complex");
}

static void panel_circle(svg *s, const picture *f, box b) {
    double radius = (b.height + 14) / 2;
    svg_point centre = {b.x + radius + 8, b.y + radius};
    svg_circle(s, centre, radius, &(svg_paint){.fill = PALE_ORANGE, .stroke = MUTED, .width = 1});
    svg_circle(s, centre, radius * fmin(f->spectrum.rho, 1),
               &(svg_paint){.fill = "#ffffff", .stroke = ORANGE, .width = 1, .dash = "3 2"});
    svg_line(s, (svg_point){centre.x - radius, centre.y}, (svg_point){centre.x + radius, centre.y},
             &(svg_paint){.stroke = FAINT, .width = 1});
    svg_line(s, (svg_point){centre.x, centre.y - radius}, (svg_point){centre.x, centre.y + radius},
             &(svg_paint){.stroke = FAINT, .width = 1});
    if (f->real != NULL)
        circle_points(s, f, centre, radius);
    circle_text(s, f, (svg_point){centre.x + radius + 28, b.y + 28});
}

void panel_spectrum(svg *s, const picture *f, box b) {
    svg_begin_group(s, "spectrum");
    svg_text(s, (svg_point){b.x, b.y + 10},
             &(svg_font){.size = HEADING_SIZE, .colour = INK, .bold = true}, "Eigenvalues%s",
             sl_topology_period(f->topology) > 1 ? " of a period" : "");
    box inner = {b.x, b.y + 24, b.width, b.height - 24 - 20};
    if (f->spectrum.symmetric)
        panel_line(s, f, inner);
    else
        panel_circle(s, f, inner);
    svg_end_group(s);
}
