/* choco.h - what both forms of CHOCO-SGD share: the message, the replicas that it moves, and mixing
 * with them; and when a message is worth sending.
 *
 * With `trigger` c it is SPARQ-SGD: Singh, Data, George, Diggavi, "SPARQ-SGD: Event-Triggered and
 * Compressed Communication in Decentralized Stochastic Optimization", 2019, Algorithm 1: after the
 * local step of round t, q_i = 0, a silent message, if ||x_i - xhat_i||^2 <= c t^p gamma_t^2, p
 * being `trigger_growth`. c = 0: CHOCO-SGD. The mean is kept as exactly.
 */
#ifndef SL_CHOCO_H
#define SL_CHOCO_H

#include "algorithm/algorithms.h"
#include "algorithm/gossip/replicas.h"

/* Is the model far from what others know of it, after the local step of that round? */
bool sl_choco_has_moved(const sl_state *s, uint64_t round, const sl_sgd *step);

extern const sl_key sl_choco_keys[];
void sl_choco_defaults(sl_algorithm_config *config);
/* A later view's first message is the model itself, which sets every replica; all others differ
 * from it. */
bool sl_choco_restates(const sl_state *s);
bool sl_choco_differs(const sl_state *s);
void sl_choco_read_difference(void *state, size_t from, size_t count, float *out);
void sl_choco_take_own(sl_state *s, const sl_part *mine);
void sl_choco_take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count);
void sl_choco_take_model(sl_state *s, size_t from, size_t count);
/* x += gamma_c (sum_{j != i} W_ij xhat_j - given xhat): equal replicas give nothing. */
void sl_choco_mix(sl_state *s, size_t from, size_t count);

#define SL_CHOCO_DIFFERENCE(when, moved, first)                                                    \
    {                                                                                              \
        .wanted = when, .speaks = moved, .prepare = first, .read = sl_choco_read_difference,       \
        .own = sl_choco_take_own, .combine = sl_choco_take_theirs                                  \
    }
#define SL_CHOCO_MODEL(first)                                                                      \
    {                                                                                              \
        .plain = true, .restates = true, .wanted = sl_choco_restates, .prepare = first,            \
        .vector = sl_publish_model, .combine = sl_choco_take_theirs                                \
    }

#define SL_CHOCO_FAMILY                                                                            \
    .name = "choco-sgd", .matrix = SL_MATRIX_SYMMETRIC, .fixed_matrix = true,                      \
    .keeps_replicas = true, .compressor = SL_TAKES_CONTRACTIVE, .step_rule = SL_STEP_CONSENSUS,    \
    .keys = sl_choco_keys, .defaults = sl_choco_defaults, .takes_momentum = true,                  \
    .takes_local_steps = true, .extra_vectors = 1, .stage_count = 2, .local = sl_local_step

#endif
