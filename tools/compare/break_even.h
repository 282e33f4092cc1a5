/* break_even.h - from which bandwidth on one run takes less time than another. */
#ifndef BREAK_EVEN_H
#define BREAK_EVEN_H

#include "run/forecast.h"

/* Between two timelines, each with its node's computing: the bandwidth at which `a` begins to take
 * less time than `b`. */
typedef enum pay_kind {
    PAYS_ALWAYS,
    PAYS_NEVER,
    PAYS_BELOW,
    PAYS_ABOVE,
    PAYS_MIXED /* of several runs: they differ */
} pay_kind;
typedef struct break_even {
    pay_kind kind;
    double bandwidth_mbit; /* below, above */
} break_even;
int break_even_find(break_even *out, const sl_timeline *a, const sl_platform *at_a,
                    const sl_timeline *b, const sl_platform *at_b, sl_error *error);

#endif
