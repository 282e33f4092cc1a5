/* measure.h - what is measured in rounds that are recorded: how far neighbours' vectors are from
 * the own one, and whether the model's numbers are finite.
 *
 * The distance is a sum over parts, in their order, and in each over neighbours, in theirs, in
 * whatever order and however many at once they are combined: one number of each is kept. A device
 * is waited for once, at the round's end.
 */
#ifndef SL_MEASURE_H
#define SL_MEASURE_H

#include <stdint.h>

#include "starling/vec.h"

typedef struct sl_measure {
    const sl_vec_ops *vec;
    size_t width, parts;
    double *weights; /* (width, parts) W_ij; 0: not measured */
    double *found;   /* (width, parts) ||v_j - v_i||^2, and the square of the model's norm */
    double *sums;    /* the same, on a device; else NULL, like the next one */
    float *work;     /* for these sums */
} sl_measure;

/* Of at most `width` neighbours' messages of `dimension` elements in `parts` parts. All memory is
 * taken here: a GPU would stop for it in mid-round. SL_ENOMEM. */
int sl_measure_open(sl_measure *measure, const sl_vec_ops *vec, size_t width, size_t parts,
                    size_t dimension);
void sl_measure_close(sl_measure *measure);
void sl_measure_begin(sl_measure *measure);
/* Adds the distance of a neighbour's elements from the own: of `count` elements from part `first`
 * on, with `each` in a part. Neighbours in order. */
void sl_measure_add(sl_measure *measure, size_t neighbour, double weight, size_t first,
                    const float *theirs, const float *own, size_t count, size_t each);
/* What was added since sl_measure_begin. False: the model holds a number that is not finite. */
bool sl_measure_read(sl_measure *measure, const float *model, size_t dimension, double *distance);

#endif
