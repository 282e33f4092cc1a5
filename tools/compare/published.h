/* published.h - numbers that others printed, which a file with `variants` holds to be shown beside
 * its own.
 *
 * The file's "published" lists keys of the experiment: ["topology.nodes",
 * "optimizer.learning_rate"]. A variant's "published" has a row for each choice of their values, in
 * this order, then the accuracy in per cent, and perhaps its deviation over seeds: [4, 0.1, 91.25]
 * or [4, 0.1, 91.25, 0.14]. The row whose values are the experiment's is the one that is shown.
 */
#ifndef PUBLISHED_H
#define PUBLISHED_H

#include <jansson.h>

#include "starling/error.h"

typedef struct published {
    double accuracy, deviation; /* in per cent; NaN: none */
} published;

/* keys, rows: NULL where there are none; experiment: all of its keys and values. The error says
 * which row is wrong, not where it stands. */
int published_find(published *out, json_t *keys, json_t *rows, json_t *experiment, sl_error *error);

#endif
