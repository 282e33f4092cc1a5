/* ranges.h - what of a vector is sent when, beside the backward pass that fills its gradient from
 * the end: ranges, in the order in which they leave.
 *
 *   layers       each tensor, the last one first (wait-free backpropagation: Zhang and others 2017)
 *
 *   merged       the same, but a tensor waits for the one before it where a message of its
 *                own costs more (MG-WFBP: Shi, Chu, Li 2019, theorem 1)
 *
 *   partitioned  equal pieces; whenever the link is free, the first of those that are there (P3:
 *                Jayarajan and others 2019; ByteScheduler: Peng and others 2019)
 *
 * All peers must have the same one, so it follows from what is said of model and links, and from no
 * clock. */
#ifndef STARLING_RANGES_H
#define STARLING_RANGES_H

#include "starling/api.h"
#include "starling/error.h"
#include "starling/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each element is in one of the ranges. */
typedef struct sl_ranges {
    size_t count;
    sl_range *items; /* (count) */
} sl_ranges;

/* Seconds. */
typedef struct sl_sending_costs {
    double gradient_s;
    double startup_s; /* of a message, a */
    double element_s; /* of each of its elements, b */
    double bit_s;     /* of each of its bits */
} sl_sending_costs;

/* The share of a gradient's time after which it is final from element `from` of `dimension` on: a
 * third goes forward; backward each element takes as long. */
SL_API double sl_gradient_share(size_t from, size_t dimension);

/* All: SL_ENOMEM. */
SL_API int sl_ranges_layers(sl_ranges *out, const sl_shapes *shapes, sl_error *error);
SL_API int sl_ranges_merged(sl_ranges *out, const sl_shapes *shapes, const sl_sending_costs *costs,
                            sl_error *error);
/* In pieces of `elements`, at least 1; the last one may be shorter. */
SL_API int sl_ranges_partitioned(sl_ranges *out, size_t dimension, size_t elements,
                                 const sl_sending_costs *costs, sl_error *error);
/* Accepts one of zeros. */
SL_API void sl_ranges_close(sl_ranges *ranges);

/* Of a gradient that is final from element `from` on: where the lowest range begins that is there
 * with all behind it; `dimension`: none is. */
SL_API size_t sl_ranges_border(const sl_ranges *ranges, size_t from, size_t dimension);
/* Seconds from a gradient's begin until the last range has left, one after the other, each once it
 * is there. */
SL_API double sl_ranges_seconds(const sl_ranges *ranges, size_t dimension,
                                const sl_sending_costs *costs);
/* The range, by its place in the order, that an element is in. */
SL_API size_t sl_ranges_find(const sl_ranges *ranges, size_t element);

#ifdef __cplusplus
}
#endif
#endif
