/* usual_compressor.h - parameters for any compressor, and for any algorithm with it, so that tests
 * need no list of them. */
#ifndef USUAL_COMPRESSOR_H
#define USUAL_COMPRESSOR_H

#include <stdio.h>

#include "starling/algorithm.h"
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

static inline sl_algorithm_config usual_algorithm(const char *name, sl_compressor_kind kind) {
    sl_algorithm_config config = {.local_steps = 1,
                                  .period = 2,
                                  .correction_period = 2,
                                  .warmup_rounds = 1,
                                  .threshold = 0.1,
                                  .trigger = 0.5,
                                  .xi = 0.3,
                                  .depth = 3,
                                  .bits = 8,
                                  .clock = 2,
                                  .average_period = 2,
                                  .theta = 1,
                                  .rank = 1,
                                  .compressor = usual_compressor(kind),
                                  .server = kind % 2 ? 0 : SL_SERVER_SHARDED,
                                  .replicas =
                                      kind % 2 ? SL_REPLICAS_PER_NEIGHBOUR : SL_REPLICAS_SUM};
    snprintf(config.name, sizeof config.name, "%s", name);
    return config;
}

#endif
