/* scale.h - the scale of a vector that is one bucket: for nodes that agree on one
 * (compressor.share_scale). */
#ifndef SL_SCALE_H
#define SL_SCALE_H

#include "starling/compressor.h"

/* As terngrad's encoder finds it, of n elements on the host; infinity: they cannot be sent.
 */
float sl_terngrad_scale(const sl_compressor_config *config, const float *v, size_t n);

#endif
