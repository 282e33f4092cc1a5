/* weights.h - the weight schemes by name. */
#ifndef STARLING_WEIGHTS_H
#define STARLING_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "metropolis", or its lazy form (I + W)/2: "lazy-metropolis". */
SL_API const char *sl_weighting_name(sl_weighting weighting, bool lazy);
/* A few words or a formula. */
SL_API const char *sl_weighting_meaning(sl_weighting weighting);
SL_API int sl_weighting_parse(sl_weighting *weighting, bool *lazy, const char *name,
                              sl_error *error);

#ifdef __cplusplus
}
#endif
#endif
