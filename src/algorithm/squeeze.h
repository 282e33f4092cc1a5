/* squeeze.h - compressed vectors that add up, and what a message could not say: the error, which is
 * kept and added to the next one (algorithm.error_feedback).
 *
 *   node i:    v_i = u_i (+ e_i);  q_i = C(v_i);  (e_i = v_i - q_i)
 *   up:        everybody gets s = (1/n) sum_i q_i
 *   both:      s = (1/n) sum_i q_i (+ E);  Q = C(s);  (E = s - Q);  everybody gets Q
 *
 * u_i is in g when sl_squeeze_load is called; at the end of the exchange s or Q is. One vector,
 * SENT, holds v and then e; another, SERVED, s and then E, if servers compress too; or FRESH holds
 * u, if the compressor reads it beside v.
 */
#ifndef SL_SQUEEZE_H
#define SL_SQUEEZE_H

#include "algorithm/algorithms.h"
#include "algorithm/mix.h"
#include "algorithm/own_keys.h"

enum { SL_SQUEEZE_SENT = 0, SL_SQUEEZE_SERVED = 1, SL_SQUEEZE_FRESH = 1 };

extern const char *const sl_direction_names[];
#define SL_ROW_ERROR_FEEDBACK                                                                      \
    SL_OWN(error_feedback),                                                                        \
        .type = SL_KEY_SWITCH, .fallback = "\"auto\"",                                             \
        .help = "keep what a message lost and add it to the next; auto = where the compressor is " \
                "biased"
#define SL_ROWS_SQUEEZE                                                                            \
    {SL_ROW_ERROR_FEEDBACK}, {                                                                     \
        SL_OWN_CHOICE(directions, sl_direction_names),                                             \
            .fallback = "\"up\"",                                                                  \
            .help = "with a compressor: compress messages to servers (up), or theirs, too (both)"  \
    }
extern const sl_key sl_squeeze_keys[];

bool sl_is_compressed(const sl_algorithm_config *config);
size_t sl_squeeze_vectors(const sl_algorithm_config *config);
/* v <- u (+ e); the sum starts at 0. */
void sl_squeeze_load(sl_state *s, size_t from, size_t count);

/* The stages of an exchange through servers, and without them; `load` ends with sl_squeeze_load.
 * shared: sl_stage.scale, or NULL. */
const float *sl_squeeze_sent(const sl_state *s);
const float *sl_squeeze_fresh(const sl_state *s);
const float *sl_squeeze_served(const sl_state *s);
bool sl_squeeze_is_up(const sl_state *s);
bool sl_squeeze_is_both(const sl_state *s);
/* v loses what is sent; and the sum gets it, where it stays here. */
void sl_squeeze_take(sl_state *s, const sl_part *mine);
void sl_squeeze_take_and_add(sl_state *s, const sl_part *mine);
/* The same, v only with error feedback. */
void sl_squeeze_send(sl_state *s, const sl_part *mine);
void sl_squeeze_send_and_add(sl_state *s, const sl_part *mine);
void sl_squeeze_add(sl_state *s, const sl_mix *mix, size_t from, size_t count);
void sl_squeeze_serve(sl_state *s, const sl_part *mine);
void sl_squeeze_follow(sl_state *s, const sl_mix *mix, size_t from, size_t count);

/* Of every form of C-SGD with compressed gradients. */
#define SL_SQUEEZE_C_SGD                                                                           \
    .compressor = SL_TAKES_ANY, .keys = sl_squeeze_keys, .takes_momentum = true,                   \
    .averages_gradient = true, .keeps_gradient = true, .settle = sl_local_step

#define SL_SQUEEZE_STAGES(load, shared)                                                            \
    {.prepare = load,                                                                              \
     .vector = sl_squeeze_sent,                                                                    \
     .fresh = sl_squeeze_fresh,                                                                    \
     .scale = shared,                                                                              \
     .own = sl_squeeze_send_and_add,                                                               \
     .combine = sl_squeeze_add},                                                                   \
        {.plain = true,                                                                            \
         .gather = true,                                                                           \
         .wanted = sl_squeeze_is_up,                                                               \
         .vector = sl_publish_gradient,                                                            \
         .combine = sl_copy_gradient},                                                             \
    {                                                                                              \
        .gather = true, .wanted = sl_squeeze_is_both, .vector = sl_squeeze_served,                 \
        .own = sl_squeeze_serve, .combine = sl_squeeze_follow                                      \
    }
enum { SL_SQUEEZE_STAGE_COUNT = 3 };

/* Without servers, by a form of all-reduce: g has the node's own message, a part of the mean, and
 * what is not 0 of the sums goes on. With algorithm.all_reduce other than the ring, which stands
 * for everybody to everybody. */
bool sl_sums_sparse(const sl_algorithm_config *config);
bool sl_sends_to_all(const sl_algorithm_config *config);
void sl_squeeze_add_sum(sl_state *s, const sl_mix *mix, size_t from, size_t count);
void sl_squeeze_take_sum(sl_state *s, const sl_mix *mix, size_t from, size_t count);

#define SL_SPARSE_SUM_STAGES(load, take)                                                           \
    {.alone = true,                                                                                \
     .prepare = load,                                                                              \
     .vector = sl_squeeze_sent,                                                                    \
     .fresh = sl_squeeze_fresh,                                                                    \
     .own = take},                                                                                 \
        {.sparse = true, .vector = sl_publish_gradient, .combine = sl_squeeze_add_sum}, {          \
        .sparse = true, .gather = true, .vector = sl_publish_gradient,                             \
        .combine = sl_squeeze_take_sum                                                             \
    }
enum { SL_SPARSE_SUM_STAGE_COUNT = 3 };

#define SL_SQUEEZE_STAGE_TO_ALL(load, shared)                                                      \
    {                                                                                              \
        .ranked = true, .prepare = load, .vector = sl_squeeze_sent, .fresh = sl_squeeze_fresh,     \
        .scale = shared, .own = sl_squeeze_send, .combine = sl_squeeze_add                         \
    }

#endif
