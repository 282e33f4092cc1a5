/* rng.h - counter-based random numbers: Philox4x32 with ten rounds, and with seven where
 * compressors round and drop.
 *
 * Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. A draw is a
 * pure function of (seed, rank, round, purpose, index). There is no state, so any process, thread
 * or GPU that needs a number computes the same one. All random numbers in Starling come from here.
 */
#ifndef STARLING_RNG_H
#define STARLING_RNG_H

#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a draw is for. Values decide random numbers: append, never renumber. */
typedef enum sl_purpose {
    SL_PURPOSE_INIT = 0,      /* initial parameters */
    SL_PURPOSE_SHUFFLE = 1,   /* order of a node's samples in an epoch (round = epoch) */
    SL_PURPOSE_PARTITION = 2, /* samples to nodes */
    SL_PURPOSE_DATA = 3,      /* generated data sets (rank = sample) */
    SL_PURPOSE_TOPOLOGY = 4,  /* random graphs */
    SL_PURPOSE_COMPRESS = 5,  /* stochastic compressors */
    SL_PURPOSE_FAULT = 6,     /* the simulator's network */
    SL_PURPOSE_AUGMENT = 7,   /* crops of a batch's images (index = row) */
    SL_PURPOSE_ROTATE = 8,    /* signs of rotations in front of a stochastic compressor */
    SL_PURPOSE_CLIENTS = 9,   /* who trains (rank = 0, round = exchange) */
    SL_PURPOSE_FACTOR = 10,   /* first factors of matrices, the same on all nodes */
    SL_PURPOSE_SKETCH = 11,   /* where elements fall in a sketch (rank = row, round = 0) */
    SL_PURPOSE_PAIR = 12,     /* an ask's priority (round = event) */
    SL_PURPOSE_PARTNER = 13,  /* whom a node asks for an average (round = event) */
    SL_PURPOSE_SPEED = 14     /* how long a gradient of the simulator takes */
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
/* Blocks first, first + 1, ..., first + count - 1, four words each. Equal to single blocks, and
 * faster. */
SL_API void sl_rng_blocks(const sl_rng_key *key, uint32_t first, size_t count, uint32_t *out);

/* The same with seven rounds instead of ten. For stochastic rounding and random dropping, which
 * take random bits for every element of a vector. The paper reports that seven rounds are the
 * fewest that pass all of BigCrush; ten leave a margin. For equal keys the numbers differ from
 * sl_rng_block's. */
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
