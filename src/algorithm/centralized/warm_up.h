/* warm_up.h - the rounds in which one-bit-adam still sends gradients as they are.
 *
 * They are the first W; with `warmup_ratio` r > 0 they end earlier, after the first round t in
 * which the second moment has come to rest:
 *
 *   |u_t|_1 >= r |u_{t-D}|_1,  u_t = v_t/(1 - beta2^t),  D = 1/(1 - beta2)
 *
 * u is v without the bias of its start: v itself grows for D rounds whatever the gradients do, and
 * would pass right after them. Since v is at least 0, |v_t|_1 = beta2 |v_{t-1}|_1 +
 * (1 - beta2) |g|_2^2: one norm a round, of the mean gradient, which all nodes have in equal bits.
 * It is looked at at most 25 times in D rounds, so that few numbers are kept.
 */
#ifndef SL_WARM_UP_H
#define SL_WARM_UP_H

#include "starling/algorithm.h"

/* Of sl_algorithm. W is 1 if it is not given; with a ratio it has no bound then. */
void sl_warm_up_defaults(sl_algorithm_config *config);
size_t sl_warm_up_numbers(const sl_algorithm_config *config);
void sl_warm_up_warn(const sl_algorithm_config *config, char *out, size_t bytes);

bool sl_warm_up_is_on(const sl_state *s);
/* Once in each of its rounds, while g is the whole mean gradient. */
void sl_warm_up_note(sl_state *s);

#endif
