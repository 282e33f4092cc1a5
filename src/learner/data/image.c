/* image.c - pixels in the layers' order, cropped and mirrored; see image.h. */
#include "learner/data/image.h"

#include <string.h>

#include "starling/rng.h"

sl_crop sl_crop_draw(uint64_t seed, uint32_t rank, uint64_t round, uint32_t row) {
    const sl_rng_key key = {
        .seed = seed, .round = round, .rank = rank, .purpose = SL_PURPOSE_AUGMENT};
    const uint64_t places = 2 * SL_CROP_SHIFT + 1;
    uint32_t words[4];
    sl_rng_block(&key, row, words);
    return (sl_crop){(int32_t)(words[0] * places >> 32) - SL_CROP_SHIFT,
                     (int32_t)(words[1] * places >> 32) - SL_CROP_SHIFT, words[2] >> 31};
}

/* Column `to` of the crop shows this column of the image, which may lie outside. */
static int64_t source_column(sl_shape shape, sl_crop crop, uint32_t to) {
    return (int64_t)crop.right + (crop.mirrored ? shape.width - 1 - to : to);
}

void sl_image_arrange(float *x, const float *planes, sl_shape shape, sl_crop crop) {
    size_t plane = (size_t)shape.height * shape.width;
    for (uint32_t row = 0; row < shape.height; row++) {
        int64_t from_row = (int64_t)crop.down + row;
        bool inside = from_row >= 0 && from_row < shape.height;
        for (uint32_t column = 0; column < shape.width; column++, x += shape.channels) {
            int64_t from = source_column(shape, crop, column);
            bool there = inside && from >= 0 && from < shape.width;
            for (uint32_t c = 0; c < shape.channels; c++)
                x[c] =
                    there ? planes[c * plane + (size_t)from_row * shape.width + (size_t)from] : 0;
        }
    }
}
