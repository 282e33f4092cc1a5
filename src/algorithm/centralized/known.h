/* known.h - gradients sent as differences from what the servers know of them: EF21 and its family.
 *
 *   q_i = C(g_i - h_i);  h_i <- h_i + q_i;  h <- h + (1/n) sum_i q_i;  then g is h
 *
 * h_i(0) = 0, at its node; h, the mean of the h_i, at the servers. The difference is never stored:
 * the compressor reads it block by block. Wire: one message up, the dense h down.
 */
#ifndef SL_KNOWN_H
#define SL_KNOWN_H

#include "algorithm/algorithms.h"

enum { SL_KNOWN = 0, SL_KNOWN_MEAN = 1, SL_KNOWN_VECTORS = 2 }; /* h_i and h: the first two */

void sl_known_read_news(void *state, size_t from, size_t count, float *out);
/* h_i += q_i, and of the own shard h += q_i/n. Or only the latter. */
void sl_known_take_own(sl_state *s, const sl_part *mine);
void sl_known_take_own_in_mean(sl_state *s, const sl_part *mine);
void sl_known_take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count);
void sl_known_load_mean(sl_state *s, size_t from, size_t count);

/* Of LAG: sum_{k=1..D} xi ||x_{t+1-k} - x_{t-k}||^2, once an exchange. The model before is the
 * third vector, as sl_known_begin leaves it; D numbers of its own, each in the place of its
 * exchange, are added in that order. */
enum { SL_KNOWN_BEFORE = SL_KNOWN_VECTORS, SL_KNOWN_LAZY_VECTORS };
void sl_known_begin(sl_state *s, size_t dimension);
double sl_known_moved(sl_state *s);

enum { SL_KNOWN_STAGE_COUNT = 2 };
#define SL_KNOWN_STAGES(speaks_hook, own_hook)                                                     \
    {.speaks = (speaks_hook),                                                                      \
     .read = sl_known_read_news,                                                                   \
     .own = (own_hook),                                                                            \
     .combine = sl_known_take_theirs},                                                             \
    {                                                                                              \
        .plain = true, .gather = true, .prepare = sl_known_load_mean,                              \
        .vector = sl_publish_gradient, .combine = sl_copy_gradient                                 \
    }

/* What all of the family are. */
#define SL_KNOWN_FAMILY                                                                            \
    .route = SL_ROUTE_SERVER, .takes_momentum = true, .averages_gradient = true,                   \
    .keeps_gradient = true, .stage_count = SL_KNOWN_STAGE_COUNT, .settle = sl_local_step

#endif
