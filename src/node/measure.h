/* measure.h - what is measured in rounds that are recorded: how far neighbours' vectors are from
 * the own one, and whether the model's numbers are finite.
 *
 * The distance is a sum over parts, in their order, and in each over neighbours, in theirs, however
 * many are combined at once. A device computes one number of each and keeps it. It is waited for
 * once, at the round's end. Where parts come in another order, the host keeps them, too.
 */
#ifndef SL_MEASURE_H
#define SL_MEASURE_H

#include <stdint.h>

#include "starling/vec.h"

typedef struct sl_measure {
    const sl_vec_ops *vec;
    size_t width, parts;
    double distance; /* the host's: sum_j W_ij ||v_j - v_i||^2 so far */
    /* a device's, or where they are kept; else NULL */
    double *sums;    /* on the device: (width, parts), and the square of the model's norm */
    float *work;     /* on the device, for these sums */
    double *found;   /* the same, on the host */
    double *weights; /* (width, parts) of those sums; 0: not measured */
} sl_measure;

/* Of at most `width` neighbours' messages of `dimension` elements in `parts` parts, which come in
 * any order if they are kept. All memory is taken here: a GPU would stop for it in mid-round.
 * SL_ENOMEM. */
int sl_measure_open(sl_measure *measure, const sl_vec_ops *vec, size_t width, size_t parts,
                    size_t dimension, bool keeps);
void sl_measure_close(sl_measure *measure);
void sl_measure_begin(sl_measure *measure);
/* Adds the distance of a neighbour's elements from the own: of `count` elements from part `first`
 * on, with `each` in a part. Neighbours in order. */
void sl_measure_add(sl_measure *measure, size_t neighbour, double weight, size_t first,
                    const float *theirs, const float *own, size_t count, size_t each);
/* What was added since sl_measure_begin. False: the model holds a number that is not finite. */
bool sl_measure_read(sl_measure *measure, const float *model, size_t dimension, double *distance);

#endif
