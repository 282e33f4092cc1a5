/* svg.h - a small writer of SVG 1.1: shapes, text, nothing that needs a style sheet, a script or a
 * font of its own.
 *
 * Lengths are in user units (CSS pixels), y grows downwards. Numbers are written with at most two
 * decimals, so that the same picture is the same bytes everywhere. Errors of the stream are left
 * for svg_close to tell.
 */
#ifndef SVG_H
#define SVG_H

#include <stdbool.h>
#include <stdio.h>

#include "starling/error.h"

typedef struct svg svg;

typedef struct svg_point {
    double x, y;
} svg_point;

/* How a shape is painted; colours as in CSS, NULL: none. */
typedef struct svg_paint {
    const char *fill, *stroke;
    double width;     /* of the stroke */
    double opacity;   /* 0 counts as 1 */
    const char *dash; /* stroke-dasharray */
} svg_paint;

enum { SVG_NUMBER_MAX = 48 };

typedef enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END } svg_anchor;

typedef struct svg_font {
    double size;
    const char *colour;
    svg_anchor anchor;
    bool bold;
} svg_font;

/* A white picture, with a title and a description for those who do not see it. */
int svg_open(svg **out, const char *path, double width, double height, const char *title,
             const char *description, sl_error *error);
/* Sets *picture to NULL; SL_EFILE if not everything could be written. */
int svg_close(svg **picture, sl_error *error);

void svg_line(svg *s, svg_point a, svg_point b, const svg_paint *paint);
void svg_circle(svg *s, svg_point centre, double radius, const svg_paint *paint);
void svg_rectangle(svg *s, svg_point corner, double width, double height, const svg_paint *paint);
void svg_polyline(svg *s, const svg_point *points, size_t count, bool closed,
                  const svg_paint *paint);
/* A quadratic Bezier curve. */
void svg_curve(svg *s, svg_point a, svg_point control, svg_point b, const svg_paint *paint);
/* Text on the base line `at`; "^{..}" and "_{..}" are raised and lowered. */
void svg_text(svg *s, svg_point at, const svg_font *font, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The value in at most four digits, as svg_text takes it: 0.2, 1.32 x 10^{-11}. */
void svg_number(char text[SVG_NUMBER_MAX], double value);
/* Everything until svg_end_group belongs together; `name` is for those who open the file. */
void svg_begin_group(svg *s, const char *name);
void svg_end_group(svg *s);

#endif
