/* image.h - a sample's pixels in the order of a convolution, and the usual augmentation of small
 * colour images.
 *
 * Samples are stored as (channels, height, width); layers take (height, width, channels).
 * Augmentation follows He et al. 2015, section 4.2: pad the normalised image by four zeros on each
 * side, take a random crop of the original size, and mirror it with probability 1/2.
 */
#ifndef SL_LEARNER_IMAGE_H
#define SL_LEARNER_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "learner/layers/layer.h"

typedef struct sl_crop {
    int32_t down, right; /* start of the crop, from -SL_CROP_SHIFT to SL_CROP_SHIFT */
    bool mirrored;
} sl_crop;

#define SL_CROP_SHIFT 4

/* Draws the crop of `row` of rank's batch in `round`. */
sl_crop sl_crop_draw(uint64_t seed, uint32_t rank, uint64_t round, uint32_t row);

/* Writes x (height, width, channels), the crop of planes (channels, height, width). */
void sl_image_arrange(float *x, const float *planes, sl_shape shape, sl_crop crop);

#endif
