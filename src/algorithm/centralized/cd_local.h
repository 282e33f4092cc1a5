/* cd_local.h - a node's own side of cd-sgd (cd_sgd.c): in which rounds which gradient leaves, the
 * local model at which gradients are taken, and what waits to be sent. */
#ifndef SL_CD_LOCAL_H
#define SL_CD_LOCAL_H

#include "algorithm/algorithms.h"

enum { SL_CD_MODEL = 0, SL_CD_RESIDUAL = 1, SL_CD_TOTAL = 2, SL_CD_VECTORS };

bool sl_cd_is_warm_up(const sl_state *s);
/* What the round's exchange has: a gradient at all; a compressed one, or a whole one. */
bool sl_cd_has_gradient(const sl_state *s);
bool sl_cd_has_compressed(const sl_state *s);
bool sl_cd_has_whole(const sl_state *s);

void sl_cd_start(sl_state *s, size_t dimension);
const float *sl_cd_point(const sl_state *s);
/* L <- G - gamma_loc g. */
void sl_cd_step(sl_state *s, size_t from, size_t count);
/* What the next exchange sends of g, and the sum that it begins with. */
void sl_cd_keep_gradient(sl_state *s, size_t from, size_t count);

#endif
