/* statistic.c - see statistic.h. */
#include "compare/statistic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *x, const void *y) {
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double quantile(const double *sorted, size_t count, double share) {
    const double at = share * (double)(count - 1);
    const size_t below = (size_t)at;
    return below + 1 == count
               ? sorted[below]
               : sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

statistic statistic_of(double *values, size_t count) {
    if (count == 0)
        return (statistic){0, NAN, NAN, NAN, NAN, NAN};
    qsort(values, count, sizeof *values, by_value);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    const double mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return (statistic){.count = count,
                       .mean = mean,
                       .deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : NAN,
                       .median = quantile(values, count, 0.5),
                       .low = quantile(values, count, 0.25),
                       .high = quantile(values, count, 0.75)};
}

/* ---- writing ---- */

enum { SPREAD_DIGITS = 2, DECIMALS_MAX = 12, NUMBER_BYTES = 32 };
static const double plain_low = 1e-3, plain_high = 1e6; /* beyond: with an exponent */

/* The power of ten of its first digit, once it is rounded to those of a spread. */
static int power_of(double x) {
    char text[NUMBER_BYTES];
    snprintf(text, sizeof text, "%.*e", SPREAD_DIGITS - 1, x);
    const char *power = strchr(text, 'e');
    return power != NULL ? atoi(power + 1) : 0;
}

static int between(int low, int x, int high) {
    return x < low ? low : x > high ? high : x;
}

/* So many that a spread shows its first digits; none that a column does not have otherwise, unless
 * the spread would read 0. */
static int decimals_of(double spread, number_style style) {
    const int wanted = between(0, SPREAD_DIGITS - 1 - power_of(spread), DECIMALS_MAX);
    if (style.decimals < 0)
        return wanted;
    const bool is_seen = spread >= 0.5 * pow(10, -style.decimals);
    return is_seen || wanted < style.decimals ? style.decimals : wanted;
}

static void write_one(char *out, size_t bytes, double x, number_style style) {
    if (style.decimals < 0)
        snprintf(out, bytes, "%.*g", -style.decimals, x);
    else
        snprintf(out, bytes, "%.*f", style.decimals, x);
}

/* Middle and spread, or middle and bounds, as powers of ten where they are tiny or huge. */
static void write_several(char *out, size_t bytes, const double numbers[3], statistic_kind kind,
                          double spread, number_style style) {
    const double size = fabs(numbers[0]);
    const bool is_plain =
        style.decimals >= 0 || size == 0 || (size >= plain_low && size < plain_high);
    const int power = is_plain ? 0 : power_of(numbers[0]);
    const double unit = pow(10, power);
    number_style fixed = style;
    fixed.decimals = decimals_of(spread / unit, style);
    char texts[3][NUMBER_BYTES], exponent[NUMBER_BYTES] = "";
    for (int i = 0; i < 3; i++)
        write_one(texts[i], sizeof texts[i], numbers[i] / unit, fixed);
    if (!is_plain)
        snprintf(exponent, sizeof exponent, "e%+03d", power);
    const char *open = is_plain ? "" : "(", *close = is_plain ? "" : ")";
    if (kind == STATISTIC_MEAN)
        snprintf(out, bytes, "%s%s ± %s%s%s", open, texts[0], texts[1], close, exponent);
    else
        snprintf(out, bytes, "%s%s [%s, %s]%s%s", open, texts[0], texts[1], texts[2], close,
                 exponent);
}

/* All seeds have the same number. */
static void write_equal(char out[STATISTIC_BYTES], double x, statistic_kind kind,
                        number_style style) {
    char text[NUMBER_BYTES];
    write_one(text, sizeof text, x, style);
    if (kind == STATISTIC_MEAN)
        snprintf(out, STATISTIC_BYTES, "%s ± 0", text);
    else
        snprintf(out, STATISTIC_BYTES, "%s [%s, %s]", text, text, text);
}

void statistic_text(char out[STATISTIC_BYTES], const statistic *s, statistic_kind kind,
                    number_style style, size_t all) {
    const double middle = style.scale * (kind == STATISTIC_MEAN ? s->mean : s->median),
                 deviation = style.scale * s->deviation, low = style.scale * s->low,
                 high = style.scale * s->high;
    const double spread = kind == STATISTIC_MEAN ? deviation : high - low;
    if (s->count == 0) {
        snprintf(out, STATISTIC_BYTES, "-");
        return;
    }
    if (isnan(s->deviation))
        write_one(out, STATISTIC_BYTES, middle, style);
    else if (!(spread > 0))
        write_equal(out, middle, kind, style);
    else
        write_several(out, STATISTIC_BYTES,
                      (const double[]){middle, kind == STATISTIC_MEAN ? deviation : low, high},
                      kind, spread, style);
    size_t used = strlen(out);
    used += (size_t)snprintf(out + used, STATISTIC_BYTES - used, "%s", style.unit);
    if (s->count < all)
        snprintf(out + used, STATISTIC_BYTES - used, " (%zu of %zu)", s->count, all);
}
