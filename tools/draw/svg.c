/* svg.c - a small writer of SVG; see svg.h. */
#include "draw/svg.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct svg {
    FILE *file;
    char *path;
};

enum { TEXT_MAX = 512 };
/* How far raised and lowered text is off the base line, and how small, in sizes of its font. */
#define RAISED 0.4
#define LOWERED 0.2
#define SMALLER 0.72

static void put_escaped(svg *s, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        const char *entity = text[i] == '&'   ? "&amp;"
                             : text[i] == '<' ? "&lt;"
                             : text[i] == '>' ? "&gt;"
                             : text[i] == '"' ? "&quot;"
                                              : NULL;
        if (entity != NULL)
            fputs(entity, s->file);
        else if ((unsigned char)text[i] >= ' ') /* XML has no room for control characters */
            fputc(text[i], s->file);
    }
}

/* Two decimals at most, and no "-0". */
static void put_number(svg *s, double value) {
    char text[64];
    double rounded = round(value * 100) / 100;
    int length = snprintf(text, sizeof text, "%.2f", rounded == 0 ? 0 : rounded);
    while (text[length - 1] == '0')
        length--;
    if (text[length - 1] == '.')
        length--;
    fwrite(text, 1, (size_t)length, s->file);
}

static void put_attribute(svg *s, const char *name, double value) {
    fprintf(s->file, " %s=\"", name);
    put_number(s, value);
    fputc('"', s->file);
}

static void put_point(svg *s, svg_point p) {
    put_number(s, p.x);
    fputc(' ', s->file);
    put_number(s, p.y);
}

static void put_paint(svg *s, const svg_paint *p) {
    fprintf(s->file, " fill=\"%s\"", p->fill ? p->fill : "none");
    if (p->stroke != NULL) {
        fprintf(s->file, " stroke=\"%s\"", p->stroke);
        put_attribute(s, "stroke-width", p->width);
    }
    if (p->opacity > 0 && p->opacity < 1)
        put_attribute(s, "opacity", p->opacity);
    if (p->dash != NULL)
        fprintf(s->file, " stroke-dasharray=\"%s\"", p->dash);
    fputs("/>\n", s->file);
}

int svg_open(svg **out, const char *path, double width, double height, const char *title,
             const char *description, sl_error *error) {
    svg *s = calloc(1, sizeof *s);
    if (s != NULL)
        s->path = strdup(path);
    if (s == NULL || s->path == NULL) {
        free(s);
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    }
    s->file = fopen(path, "w");
    if (s->file == NULL) {
        int why = errno;
        free(s->path);
        free(s);
        return sl_fail(error, SL_EFILE, "%s: cannot be written: %s", path, strerror(why));
    }
    fprintf(s->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g "
            "%g\" role=\"img\" "
            "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" "
            "stroke-linejoin=\"round\">\n<title>",
            width, height, width, height);
    put_escaped(s, title, strlen(title));
    fputs("</title>\n<desc>", s->file);
    put_escaped(s, description, strlen(description));
    fputs("</desc>\n", s->file);
    svg_rectangle(s, (svg_point){0, 0}, width, height, &(svg_paint){.fill = "#ffffff"});
    *out = s;
    return 0;
}

int svg_close(svg **picture, sl_error *error) {
    svg *s = *picture;
    if (s == NULL)
        return 0;
    *picture = NULL;
    fputs("</svg>\n", s->file);
    errno = 0;
    bool written = !ferror(s->file);
    written = fclose(s->file) == 0 && written;
    int result = written ? 0
                         : sl_fail(error, SL_EFILE, "%s: cannot be written: %s", s->path,
                                   errno ? strerror(errno) : "some of it is lost");
    free(s->path);
    free(s);
    return result;
}

void svg_line(svg *s, svg_point a, svg_point b, const svg_paint *paint) {
    fputs("<line", s->file);
    put_attribute(s, "x1", a.x);
    put_attribute(s, "y1", a.y);
    put_attribute(s, "x2", b.x);
    put_attribute(s, "y2", b.y);
    put_paint(s, paint);
}

void svg_circle(svg *s, svg_point centre, double radius, const svg_paint *paint) {
    fputs("<circle", s->file);
    put_attribute(s, "cx", centre.x);
    put_attribute(s, "cy", centre.y);
    put_attribute(s, "r", radius);
    put_paint(s, paint);
}

void svg_rectangle(svg *s, svg_point corner, double width, double height, const svg_paint *paint) {
    fputs("<rect", s->file);
    put_attribute(s, "x", corner.x);
    put_attribute(s, "y", corner.y);
    put_attribute(s, "width", width);
    put_attribute(s, "height", height);
    put_paint(s, paint);
}

void svg_polyline(svg *s, const svg_point *points, size_t count, bool closed,
                  const svg_paint *paint) {
    fputs("<path d=\"", s->file);
    for (size_t i = 0; i < count; i++) {
        fputc(i == 0 ? 'M' : 'L', s->file);
        put_point(s, points[i]);
    }
    fputs(closed ? "Z\"" : "\"", s->file);
    put_paint(s, paint);
}

void svg_curve(svg *s, svg_point a, svg_point control, svg_point b, const svg_paint *paint) {
    fputs("<path d=\"M", s->file);
    put_point(s, a);
    fputc('Q', s->file);
    put_point(s, control);
    fputc(' ', s->file);
    put_point(s, b);
    fputc('"', s->file);
    put_paint(s, paint);
}

/* Pieces "^{..}" and "_{..}" become smaller spans that are shifted, and shifted back by the next
 * piece. */
static void put_pieces(svg *s, const char *text, double size) {
    double shift = 0;
    while (*text != '\0') {
        bool raised = strncmp(text, "^{", 2) == 0, lowered = strncmp(text, "_{", 2) == 0;
        double target = raised ? -RAISED * size : lowered ? LOWERED * size : 0;
        const char *start = raised || lowered ? text + 2 : text, *end = start;
        while (*end != '\0' &&
               (raised || lowered ? *end != '}'
                                  : strncmp(end, "^{", 2) != 0 && strncmp(end, "_{", 2) != 0))
            end++;
        fputs("<tspan", s->file);
        if (target != shift)
            put_attribute(s, "dy", target - shift);
        if (raised || lowered)
            put_attribute(s, "font-size", SMALLER * size);
        fputc('>', s->file);
        put_escaped(s, start, (size_t)(end - start));
        fputs("</tspan>", s->file);
        shift = target;
        text = *end == '}' ? end + 1 : end;
    }
}

void svg_text(svg *s, svg_point at, const svg_font *font, const char *format, ...) {
    static const char *const anchors[] = {
        [SVG_START] = "start", [SVG_MIDDLE] = "middle", [SVG_END] = "end"};
    char text[TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fputs("<text xml:space=\"preserve\"", s->file);
    put_attribute(s, "x", at.x);
    put_attribute(s, "y", at.y);
    put_attribute(s, "font-size", font->size);
    fprintf(s->file, " fill=\"%s\" text-anchor=\"%s\"%s>", font->colour, anchors[font->anchor],
            font->bold ? " font-weight=\"bold\"" : "");
    if (strstr(text, "^{") != NULL || strstr(text, "_{") != NULL)
        put_pieces(s, text, font->size);
    else
        put_escaped(s, text, strlen(text));
    fputs("</text>\n", s->file);
}

void svg_number(char text[SVG_NUMBER_MAX], double value) {
    double size = fabs(value);
    int exponent = size > 0 && isfinite(size) ? (int)floor(log10(size)) : 0;
    const char *sign = value < 0 ? "−" : "";
    if (size < 1e-15)
        snprintf(text, SVG_NUMBER_MAX, "0");
    else if (!isfinite(size))
        snprintf(text, SVG_NUMBER_MAX, "%s", isnan(size) ? "unknown" : "∞");
    else if (exponent >= -2 && exponent < 4)
        snprintf(text, SVG_NUMBER_MAX, "%s%.4g", sign, size);
    else if (exponent >= 4 && exponent < 6)
        snprintf(text, SVG_NUMBER_MAX, "%s%.0f", sign, size);
    else
        snprintf(text, SVG_NUMBER_MAX, "%s%.3g·10^{%s%d}", sign, size / pow(10, exponent),
                 exponent < 0 ? "−" : "", abs(exponent));
}

void svg_begin_group(svg *s, const char *name) {
    fprintf(s->file, "<g id=\"%s\">\n", name);
}

void svg_end_group(svg *s) {
    fputs("</g>\n", s->file);
}
