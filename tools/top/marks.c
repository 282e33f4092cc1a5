/* marks.c - see marks.h. */
#include "top/marks.h"

#include <math.h>

/* ---- curves ---- */

static double at(const json_t *numbers, size_t i) {
    const json_t *number = json_array_get(numbers, i);
    return json_is_number(number) ? json_number_value(number) : NAN;
}

static void widen(scale *s, const json_t *numbers) {
    for (size_t i = 0; i < json_array_size(numbers); i++) {
        const double x = at(numbers, i);
        s->low = fmin(s->low, x); /* of a number and NaN: the number */
        s->high = fmax(s->high, x);
        s->least = x > 0 ? fmin(s->least, x) : s->least;
    }
}

scale scale_of(const json_t *one, const json_t *other) {
    scale s = {INFINITY, -INFINITY, INFINITY, false};
    widen(&s, one);
    widen(&s, other);
    s.is_log = s.low >= 0 && s.high > 100 * s.least;
    return s;
}

static double share_of(const scale *s, double x) {
    if (s->high <= s->low)
        return 0.5;
    return s->is_log ? log(fmax(x, s->least) / s->least) / log(s->high / s->least)
                     : (x - s->low) / (s->high - s->low);
}

static void put_level(FILE *out, double share, bool is_unicode) {
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char plain[] = "_.-~=+*#";
    enum { LEVELS = sizeof blocks / sizeof *blocks };
    const int level = (int)fmin(LEVELS - 1, fmax(0, floor(share * LEVELS)));
    if (is_unicode)
        fputs(blocks[level], out);
    else
        fputc(plain[level], out);
}

void put_curve(FILE *out, const json_t *numbers, const scale *s, size_t columns, bool is_unicode) {
    const size_t count = json_array_size(numbers);
    const size_t used = count < columns ? count : columns;
    for (size_t k = 0; k < used; k++) {
        double sum = 0;
        size_t found = 0;
        for (size_t i = k * count / used; i < (k + 1) * count / used; i++) {
            const double x = at(numbers, i);
            sum += isnan(x) ? 0 : x;
            found += !isnan(x);
        }
        if (found > 0)
            put_level(out, share_of(s, sum / (double)found), is_unicode);
        else
            fputc(' ', out);
    }
}

/* ---- strips ---- */

static const struct {
    const char *name;
    char mark;
} phases[] = {{"compute", '#'}, {"encode", '+'}, {"exchange", '-'}, {"wait", '.'}};

static char mark_of(const json_t *strip, size_t i) {
    double most = 0;
    char mark = ' ';
    for (size_t k = 0; k < sizeof phases / sizeof *phases; k++) {
        const double seconds = at(json_object_get(strip, phases[k].name), i);
        if (seconds > most) {
            most = seconds;
            mark = phases[k].mark;
        }
    }
    return mark;
}

static bool is_down(const json_t *strip, double time_s) {
    const json_t *downs = json_object_get(strip, "down");
    for (size_t i = 0; i < json_array_size(downs); i++) {
        const json_t *down = json_array_get(downs, i);
        if (time_s >= at(down, 0) && !(time_s > at(down, 1)))
            return true;
    }
    return false;
}

void put_strip(FILE *out, const json_t *strip, double until_s, size_t columns) {
    const json_t *until = json_object_get(strip, "until");
    size_t i = 0;
    for (size_t k = 0; k < columns; k++) {
        const double time_s = until_s * ((double)k + 0.5) / (double)columns;
        while (i < json_array_size(until) && at(until, i) < time_s)
            i++;
        fputc(is_down(strip, time_s)       ? 'x'
              : i < json_array_size(until) ? mark_of(strip, i)
                                           : ' ',
              out);
    }
}
