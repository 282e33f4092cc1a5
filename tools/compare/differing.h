/* differing.h - in which keys the variants of a comparison differ. */
#ifndef DIFFERING_H
#define DIFFERING_H

#include "compare/comparison.h"

/* A new array of keys such as "optimizer.learning_rate": first what is swept, in the order of the
 * files, then the others that have an effect somewhere and not the same value everywhere. NULL: out
 * of memory. Seeds and names are none. */
json_t *differing_keys(const comparison *c);
/* A new array of the swept ones alone. */
json_t *swept_keys(const comparison *c);
/* A new object of the contender's values of these keys, null where one has no effect there. */
json_t *contender_values(const contender *r, json_t *keys);

#endif
