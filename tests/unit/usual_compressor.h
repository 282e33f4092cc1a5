/* usual_compressor.h - parameters for any compressor, so that tests need no list of them. */
#ifndef USUAL_COMPRESSOR_H
#define USUAL_COMPRESSOR_H

#include "starling/compressor.h"

static inline sl_compressor_config usual_compressor(sl_compressor_kind kind) {
    return (sl_compressor_config){.kind = kind,
                                  .fraction = 0.2,
                                  .levels = 7,
                                  .bits = 2,
                                  .theta = 1,
                                  .bucket = sl_compressor_reads(kind, "bucket") ? 16 : 0,
                                  .probability = 0.3,
                                  .threshold = 0.3,
                                  .bin = 50,
                                  .multiplier = 1};
}

#endif
