/* panel_curve.c - how far nodes that average numbers are from agreement, round by round: from
 * random numbers, and from the worst ones. */
#include <math.h>
#include <stdlib.h>

#include "draw/picture.h"

enum { DECADES = 6, POINTS_MAX = 300, AXIS_WIDTH = 34, AXIS_HEIGHT = 32 };
#define VANISHED 1e-12 /* what rounding leaves of nothing */

typedef struct plot {
    svg *s;
    box b;
    double rounds; /* at the right edge */
} plot;

static svg_point spot(const plot *p, double round, double error) {
    double down = error > 0 ? -log10(error) / DECADES : INFINITY;
    return (svg_point){p->b.x + p->b.width * round / p->rounds,
                       p->b.y + p->b.height * fmax(0, down)};
}

/* 1, 2 or 5 times a power of ten, at least a round: the smallest of which at most six fit. */
static double tick_step(double whole) {
    static const double factors[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(whole / 6)));
    size_t i = 0;
    while (whole > 6.001 * factors[i] * power && i < 3)
        i++;
    return fmax(1, factors[i] * power);
}

static void axes(const plot *p) {
    svg_font left = {.size = SMALL_SIZE, .colour = MUTED, .anchor = SVG_END},
             below = {.size = SMALL_SIZE, .colour = MUTED, .anchor = SVG_MIDDLE};
    double bottom = p->b.y + p->b.height, right = p->b.x + p->b.width, step = tick_step(p->rounds);
    for (int d = 0; d <= DECADES; d++) {
        double y = p->b.y + p->b.height * d / DECADES;
        svg_line(p->s, (svg_point){p->b.x, y}, (svg_point){right, y},
                 &(svg_paint){.stroke = d == DECADES ? MUTED : FAINT, .width = 1});
        if (d == 0)
            svg_text(p->s, (svg_point){p->b.x - 7, y + 4}, &left, "1");
        else if (d % 2 == 0)
            svg_text(p->s, (svg_point){p->b.x - 7, y + 4}, &left, "10^{−%d}", d);
    }
    for (double r = 0; r <= p->rounds * (1 + 1e-9); r += step) {
        double x = spot(p, r, 1).x;
        svg_line(p->s, (svg_point){x, bottom}, (svg_point){x, bottom + 4},
                 &(svg_paint){.stroke = MUTED, .width = 1});
        if (r < 1e6)
            svg_text(p->s, (svg_point){x, bottom + 16}, &below, "%.0f", r);
        else
            svg_text(p->s, (svg_point){x, bottom + 16}, &below, "%.3g·10^{%d}",
                     r / pow(10, floor(log10(r))), (int)floor(log10(r)));
    }
    svg_text(p->s, (svg_point){(p->b.x + right) / 2, bottom + 31}, &below, "rounds");
}

/* A curve that begins with 1 at round 0 and ends with its last error, or where it leaves the plot.
 */
static void curve(const plot *p, const double *errors, uint32_t count, const svg_paint *paint) {
    svg_point points[POINTS_MAX + 3];
    size_t used = 1;
    uint32_t last = (uint32_t)fmin(count, p->rounds),
             stride = (uint32_t)fmax(1, ceil((double)last / POINTS_MAX));
    double bottom = p->b.y + p->b.height;
    points[0] = spot(p, 0, 1);
    for (uint32_t k = last < stride ? last : stride; k > 0 && used < POINTS_MAX + 3;) {
        svg_point next = spot(p, k, errors[k - 1]), before = points[used - 1];
        if (errors[k - 1] > VANISHED &&
            next.y > bottom) /* cut at the bottom, where the line to it passes */
            next.x = before.x + (next.x - before.x) * (bottom - before.y) / (next.y - before.y);
        next.y = fmin(next.y, bottom);
        points[used++] = next;
        if (next.y >= bottom || k == last)
            break;
        k = last - k < stride ? last : k + stride;
    }
    svg_polyline(p->s, points, used, false, paint);
    for (size_t i = 1; count <= 40 && i < used && paint->dash == NULL; i++)
        svg_circle(p->s, points[i], 2.4, &(svg_paint){.fill = paint->stroke});
}

/* Beyond the rounds that were computed each one multiplies an error by rho: straight on. */
static void straight_on(const plot *p, const picture *f, const double *errors, uint32_t count,
                        const svg_paint *paint) {
    double from = count, error = count > 0 ? errors[count - 1] : 1, rate = log10(f->rho_round);
    if (from >= p->rounds || !(error > CURVE_FLOOR) || !isfinite(rate))
        return;
    double room = rate < 0 ? (-DECADES - log10(error)) / rate : INFINITY,
           to = fmin(p->rounds, from + room);
    svg_point ends[] = {spot(p, from, error), spot(p, to, error * pow(f->rho_round, to - from))};
    svg_polyline(p->s, ends, 2, false, paint);
}

/* To the right of the heading, from right to left. */
static void legend(svg *s, box b, const picture *f, const svg_paint *random,
                   const svg_paint *worst) {
    svg_font font = {.size = SMALL_SIZE, .colour = INK};
    svg_point at = {b.x + b.width - (f->spectrum.symmetric ? 112 : 130), b.y + 10};
    svg_line(s, (svg_point){at.x - 26, at.y - 4}, (svg_point){at.x - 5, at.y - 4}, worst);
    svg_text(s, at, &font,
             f->spectrum.symmetric ? "worst numbers: ρ^{k}" : "worst: ‖W_{k}···W_{1} − J‖");
    at.x -= 145;
    svg_line(s, (svg_point){at.x - 26, at.y - 4}, (svg_point){at.x - 5, at.y - 4}, random);
    svg_text(s, at, &font, "random numbers");
}

void panel_curve(svg *s, const picture *f, box b) {
    svg_paint random = {.stroke = BLUE, .width = 2},
              worst = {.stroke = ORANGE, .width = 1.6, .dash = "5 3"};
    svg_begin_group(s, "agreement");
    svg_text(s, (svg_point){b.x, b.y + 10},
             &(svg_font){.size = HEADING_SIZE, .colour = INK, .bold = true}, "Disagreement");
    plot p = {
        s, {b.x + AXIS_WIDTH, b.y + 26, b.width - AXIS_WIDTH, b.height - 26 - AXIS_HEIGHT}, 4};
    if (isfinite(f->rounds))
        p.rounds = fmax(4, ceil(f->rounds));
    else
        p.rounds = fmax(4, f->random_count);
    axes(&p);
    curve(&p, f->worst, f->worst_count, &worst);
    straight_on(&p, f, f->worst, f->worst_count, &worst);
    curve(&p, f->random, f->random_count, &random);
    straight_on(&p, f, f->random, f->random_count, &random);
    legend(s, b, f, &random, &worst);
    svg_end_group(s);
}
