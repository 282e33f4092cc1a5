/* threshold.h - what the compressors with a threshold tau promise, and what tau may be. */
#ifndef SL_THRESHOLD_H
#define SL_THRESHOLD_H

#include "starling/compressor.h"

/* Nothing: what lies below tau is lost whole, and what lies far above it nearly so. */
sl_quality sl_threshold_quality(const sl_compressor_config *config, size_t dimension);
/* A normal float32 above 0. */
int sl_threshold_check(const sl_compressor_config *config, size_t dimension, sl_error *error);

#endif
