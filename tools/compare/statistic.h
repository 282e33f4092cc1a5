/* statistic.h - what several seeds say of a number, and how it is written. */
#ifndef STATISTIC_H
#define STATISTIC_H

#include <stdbool.h>
#include <stddef.h>

/* Over the seeds that have a number. */
typedef struct statistic {
    size_t count;
    double mean;
    double deviation;         /* sample standard deviation; NaN below two */
    double median, low, high; /* low, high: quartiles, between values by straight lines */
} statistic;

/* Of values (count), which are sorted. count 0: all NaN. */
statistic statistic_of(double *values, size_t count);

typedef enum statistic_kind { STATISTIC_MEAN, STATISTIC_MEDIAN } statistic_kind;

/* How a number of a column is written. */
typedef struct number_style {
    double scale; /* written = scale times number */
    int decimals; /* after the point; negative: so many significant digits */
    const char *unit;
} number_style;

enum { STATISTIC_BYTES = 144 };
/* "0.487", of several seeds "0.487 ± 0.043" or "0.487 [0.450, 0.521]", with the same decimals in
 * all numbers; of fewer than `all` seeds with " (2 of 3)". "-" where none has a number. */
void statistic_text(char out[STATISTIC_BYTES], const statistic *s, statistic_kind kind,
                    number_style style, size_t all);

#endif
