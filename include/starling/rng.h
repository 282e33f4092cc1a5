/* rng.h - counter-based random numbers: Philox4x32, of ten rounds, and of seven where compressors
 * round and drop.
 *
 * Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. A draw is a
 * pure function of (seed, rank, round, purpose, index); there is no state to carry, so that any
 * process, thread or GPU that needs the same number computes the same number. Everything random in
 * Starling comes from here.
 */
#ifndef STARLING_RNG_H
#define STARLING_RNG_H

#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a draw is for. Values are part of the reproducibility contract: append, never renumber. */
typedef enum sl_purpose {
    SL_PURPOSE_INIT = 0,      /* initial parameters */
    SL_PURPOSE_SHUFFLE = 1,   /* order of a node's samples in an epoch (round = epoch) */
    SL_PURPOSE_PARTITION = 2, /* samples to nodes */
    SL_PURPOSE_DATA = 3,      /* generated data sets (rank = sample) */
    SL_PURPOSE_TOPOLOGY = 4,  /* random graphs */
    SL_PURPOSE_COMPRESS = 5,  /* stochastic compressors */
    SL_PURPOSE_FAULT = 6,     /* the simulator's network */
    SL_PURPOSE_AUGMENT = 7    /* crops of a batch's images (index = row) */
} sl_purpose;

/* The key of one independent stream. */
typedef struct sl_rng_key {
    uint64_t seed;
    uint64_t round; /* < 2^48 */
    uint32_t rank;
    uint32_t purpose; /* an sl_purpose, < 2^16 */
} sl_rng_key;

/* Four independent uniform 32-bit words: block `index` of the stream. */
SL_API void sl_rng_block(const sl_rng_key *key, uint32_t index, uint32_t out[4]);
/* Blocks first, first + 1, ..., first + count - 1: four words each, the same as one by one, but
 * several at a time. */
SL_API void sl_rng_blocks(const sl_rng_key *key, uint32_t first, size_t count, uint32_t *out);

/* The same of seven rounds instead of ten, for the random bits that stochastic rounding and random
 * dropping take for every element of a vector. Seven are the fewest with which the paper reports
 * that Philox4x32 passes all of BigCrush; the other three are a margin, which all that is drawn
 * less often keeps. Not the numbers of sl_rng_block, for the same key. */
SL_API void sl_rng_quick_block(const sl_rng_key *key, uint32_t index, uint32_t out[4]);
SL_API void sl_rng_quick_blocks(const sl_rng_key *key, uint32_t first, size_t count, uint32_t *out);

/* A cursor over a stream; sequential draws of words 0, 1, 2, ... */
typedef struct sl_rng {
    sl_rng_key key;
    uint64_t next; /* word index, < 2^34 */
    uint32_t words[4];
} sl_rng;

SL_API sl_rng sl_rng_open(uint64_t seed, uint32_t rank, uint64_t round, sl_purpose purpose);
SL_API uint32_t sl_rng_u32(sl_rng *rng);
SL_API uint64_t sl_rng_u64(sl_rng *rng);
SL_API uint32_t sl_rng_below(sl_rng *rng, uint32_t n); /* uniform in [0, n), unbiased; n > 0 */
SL_API double sl_rng_uniform(sl_rng *rng);             /* [0, 1), 53 bits */
SL_API double sl_rng_normal(sl_rng *rng); /* N(0, 1), Box-Muller: two uniforms a draw */
SL_API void sl_rng_shuffle(sl_rng *rng, uint32_t *items,
                           uint32_t count); /* Fisher-Yates, in place */

#ifdef __cplusplus
}
#endif
#endif
