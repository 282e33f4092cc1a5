/* own_keys.h - what the rows of algorithms' keys are made of.
 *
 * A row stands at the end of the algorithm's file. A key of one algorithm is defined there as a
 * whole; of a key that several read the definition is here, and each row says what it means to its
 * algorithm.
 */
#ifndef SL_OWN_KEYS_H
#define SL_OWN_KEYS_H

#include "starling/algorithm.h"

#define SL_OWN(field)                                                                              \
    .path = "algorithm." #field, .owner = SL_KEY_OF_ALGORITHM,                                     \
    .offset = offsetof(sl_algorithm_config, field)
/* With a list in another field. */
#define SL_OWN_LIST(field, list) SL_OWN(field), .count_offset = offsetof(sl_algorithm_config, list)

#define SL_OWN_REAL(field, low, high) SL_OWN(field), .type = SL_KEY_REAL, SL_KEY_BETWEEN(low, high)
/* "auto" is what is usual for the algorithm, which its defaults() knows. */
#define SL_OWN_PARAMETER(field, low, high)                                                         \
    SL_OWN(field), .type = SL_KEY_PARAMETER, SL_KEY_BETWEEN(low, high), .fallback = "\"auto\""
#define SL_OWN_COUNT(field, low, high)                                                             \
    SL_OWN(field), .type = SL_KEY_COUNT, SL_KEY_BETWEEN(low, high), .fallback = "\"auto\""
#define SL_OWN_U64(field, low, high) SL_OWN(field), .type = SL_KEY_U64, SL_KEY_BETWEEN(low, high)
#define SL_OWN_U32(field, low, high) SL_OWN(field), .type = SL_KEY_U32, SL_KEY_BETWEEN(low, high)
#define SL_OWN_BOOL(field) SL_OWN(field), .type = SL_KEY_BOOL
#define SL_OWN_CHOICE(field, names) SL_OWN(field), .type = SL_KEY_CHOICE, .choices = names

/* ---- keys of several ---- */

#define SL_ROW_CONSENSUS_STEP SL_OWN_REAL(consensus_step, 0, 1), .fallback = "0"
#define SL_ROW_PERIOD SL_OWN_U64(period, 0, 1e9), .fallback = "0"
#define SL_ROW_ALPHA SL_OWN_PARAMETER(alpha, 0, 1)
#define SL_ROW_BETA SL_OWN_PARAMETER(beta, 0, SL_BELOW_1)
#define SL_ROW_TRIGGER SL_OWN_PARAMETER(trigger, 0, 1e30)
#define SL_ROW_WARMUP_ROUNDS SL_OWN_COUNT(warmup_rounds, 0, 1e12)
#define SL_ROW_BITS SL_OWN_COUNT(bits, 1, 24)
#define SL_ROW_THETA                                                                               \
    SL_OWN_REAL(theta, 1e-30, 1e30),                                                               \
        .fallback = "2", .help = "more than any element of two neighbours' models is ever apart"
#define SL_ROW_XI SL_OWN_PARAMETER(xi, 0, 1e30)
#define SL_ROW_DEPTH                                                                               \
    SL_OWN_U32(depth, 1, SL_DEPTH_MAX), .fallback = "10",                                          \
                                        .help = "steps of the model that are remembered"
extern const char *const sl_clips[];
#define SL_ROW_CLIP                                                                                \
    SL_OWN(clip), .type = SL_KEY_PARAMETER, SL_KEY_BETWEEN(0, 1e30), .choices = sl_clips,          \
                  .fallback = "\"second-largest\""
#define SL_ROWS_CLIPPED                                                                            \
    {SL_ROW_CLIP, .help = "distance from which on a neighbour's pull is clipped, second-largest "  \
                          "= that of the neighbours"},                                             \
    {                                                                                              \
        SL_OWN_U32(trim, 0, SL_NODES_MAX),                                                         \
            .fallback = "1", .help = "trimmed-mean: values that are cut off at each end"           \
    }
extern const char *const sl_unbounded[];
#define SL_ROW_STALENESS                                                                           \
    SL_OWN(staleness), .type = SL_KEY_COUNT, SL_KEY_BETWEEN(0, 1e6), .is_later = true,             \
                       .choices = sl_unbounded, .fallback = "0"
#define SL_ROW_RANK                                                                                \
    SL_OWN_U32(rank, 1, 1e6), .fallback = "2", .help = "columns of a matrix's two factors"
#define SL_ROW_START                                                                               \
    SL_OWN(start), .type = SL_KEY_ROWS, SL_KEY_BETWEEN(-1e30, 1e30),                               \
                   .length_max = SL_ROWS_NUMBERS_MAX, .fallback = "[]"
#define SL_ROW_OUTER_RATE                                                                          \
    SL_OWN_PARAMETER(outer.learning_rate, 0, 10),                                                  \
        .help = "share of what the inner steps moved that the common model follows, auto = 0.7"
#define SL_ROW_OUTER_MOMENTUM SL_OWN_PARAMETER(outer.momentum, 0, SL_BELOW_1)
#define SL_ROW_BETA1                                                                               \
    SL_OWN_REAL(beta1, 0, SL_BELOW_1), .fallback = "0.9",                                          \
                                       .help = "factor of the first moment from round to round"
#define SL_ROW_BETA2                                                                               \
    SL_OWN_REAL(beta2, 0, SL_BELOW_1), .fallback = "0.999",                                        \
                                       .help = "factor of the second moment from round to round"
#define SL_ROW_EPSILON SL_OWN_REAL(epsilon, 1e-30, 1), .fallback = "1e-8"

/* Those of local SGD, whatever its period does. */
extern const char *const sl_buffer_rules[];
extern const char *const sl_period_schedules[];
#define SL_ROW_BUFFERS                                                                             \
    SL_OWN_CHOICE(buffers, sl_buffer_rules),                                                       \
        .fallback = "\"local\"",                                                                   \
        .help = "when models are averaged, buffers of optimizer.momentum stay (local), are "       \
                "averaged too, or begin at 0 again (reset)"
#define SL_ROW_LOCAL_PERIOD SL_ROW_PERIOD, .help = "rounds from one exchange to the next, 0 = 10"
#define SL_ROWS_LOCAL                                                                              \
    {SL_ROW_LOCAL_PERIOD}, {SL_ROW_BUFFERS}, {                                                     \
        SL_OWN_U64(switch_round, 0, 1e12),                                                         \
            .fallback = "0",                                                                       \
            .help = "up to this round all gradients are averaged, the period counts from it"       \
    }
#define SL_ROW_PERIOD_SCHEDULE                                                                     \
    SL_OWN_CHOICE(period_schedule, sl_period_schedules),                                           \
        .fallback = "\"constant\"",                                                                \
        .help = "the period stays, falls with the root of the loss (halving: and is halved where " \
                "that does not; rate: times that of the learning rate), or grows up to period"
extern const sl_key sl_local_keys[];

#endif
