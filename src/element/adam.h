/* adam.h - one element of Adam's direction. */
#ifndef SL_ADAM_H
#define SL_ADAM_H

#include <math.h>

#include "element/shared.h"

/* m <- beta1 m + m_new g;  v <- beta2 v + v_new g^2. Returns
 * m m_scale / (sqrt(v v_scale) + epsilon) + weight_decay x. Where v is 0, so is m: a coordinate
 * without a gradient stays, whatever m a compressor made up for it. s is an sl_adam. */
#define adam_element(s, g, x, m, v)                                                                \
    adam_element_of(g, x, m, v, (s)->beta1, (s)->beta2, (s)->m_new, (s)->v_new, (s)->m_scale,      \
                    (s)->v_scale, (s)->epsilon, (s)->weight_decay)

SL_SHARED float adam_element_of(float g, float x, float *m, float *v, float beta1, float beta2,
                                float m_new, float v_new, float m_scale, float v_scale,
                                float epsilon, float weight_decay) {
    *v = beta2 * *v + v_new * (g * g);
    *m = *v == 0 ? 0 : beta1 * *m + m_new * g;
    return *m * m_scale / (sqrtf(*v * v_scale) + epsilon) + weight_decay * x;
}

#endif
