/* layers.h - the layers' part of checkvec. */
#ifndef CHECKVEC_LAYERS_H
#define CHECKVEC_LAYERS_H

#include "starling/vec.h"

/* Calls `tell` for each kind of layer on the device's vectors, and for the loss: whether it agrees
 * with plain C on the CPU. */
void check_layers(const sl_vec_ops *vec, const char *label,
                  void (*tell)(void *context, const char *name, bool good), void *context);
/* Prints how long one gradient of each model takes. */
void bench_models(const sl_vec_ops *vec, const char *label);

#endif
