/* marks.h - numbers as one line of marks. */
#ifndef MARKS_H
#define MARKS_H

#include <jansson.h>
#include <stdio.h>

#include "top/frame.h"

/* Of a curve: what is drawn where. */
typedef struct scale {
    double low, high; /* low > high: nothing is known */
    double least;     /* above 0 */
    bool is_log;
} scale;

/* Of one or two lists of numbers, where null is unknown, so that both are drawn alike. Spans of
 * more than two decades are logarithmic. */
scale scale_of(const json_t *one, const json_t *other);
/* A mark for each of `columns` columns: the mean of the numbers that fall into it; else a blank. */
void put_curve(FILE *out, const json_t *numbers, const scale *s, size_t columns, bool is_unicode);

/* What one node did in `columns` equal parts of the time from 0 to `until_s`: the mark of what took
 * most of the interval that was recorded there. */
void put_strip(FILE *out, const json_t *strip, double until_s, size_t columns);
#define STRIP_MARKS "# computes, + encodes, - exchanges, . waits, x down"

#endif
