/* image.h - a sample's pixels as a convolution wants them, and the usual augmentation of small
 * colour images.
 *
 * Samples lie channel after channel; layers take (height, width, channels). Augmentation as He et
 * al. 2015, section 4.2: four zeros on each side, a random crop of the image's size, mirrored half
 * of the time; zeros are those of the normalised image.
 */
#ifndef SL_LEARNER_IMAGE_H
#define SL_LEARNER_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "learner/layers/layer.h"

typedef struct sl_crop {
    int32_t down, right; /* where in the image the crop begins: -SL_CROP_SHIFT to SL_CROP_SHIFT */
    bool mirrored;
} sl_crop;

#define SL_CROP_SHIFT 4

/* For `row` of rank's batch in `round`. */
sl_crop sl_crop_draw(uint64_t seed, uint32_t rank, uint64_t round, uint32_t row);

/* x (height, width, channels) from planes (channels, height, width), cropped. */
void sl_image_arrange(float *x, const float *planes, sl_shape shape, sl_crop crop);

#endif
