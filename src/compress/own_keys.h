/* own_keys.h - what the rows of compressors' keys are made of: a key of one compressor stands at
 * the end of its file as a whole; of a key that several read the definition is here.
 */
#ifndef SL_COMPRESS_OWN_KEYS_H
#define SL_COMPRESS_OWN_KEYS_H

#include "starling/compressor.h"

#define SL_OWN_AT(name, field)                                                                     \
    .path = "algorithm.compressor." name, .owner = SL_KEY_OF_COMPRESSOR,                           \
    .offset = offsetof(sl_compressor_config, field)
#define SL_OWN(field) SL_OWN_AT(#field, field)
#define SL_OWN_REAL(field, low, high) SL_OWN(field), .type = SL_KEY_REAL, SL_KEY_BETWEEN(low, high)
#define SL_OWN_U32(field, low, high) SL_OWN(field), .type = SL_KEY_U32, SL_KEY_BETWEEN(low, high)
#define SL_OWN_CHOICE(field, names) SL_OWN(field), .type = SL_KEY_CHOICE, .choices = names

/* How many entries are sent, `which` ends both meanings. */
#define SL_ROWS_ENTRIES(which)                                                                     \
    {SL_OWN(k), .type = SL_KEY_U64, SL_KEY_BETWEEN(0, 1e12), .fallback = "0",                      \
     .help = "number of entries sent" which ", 0 = use fraction"},                                 \
        {SL_OWN_REAL(fraction, 1e-9, 1), .fallback = "0.01",                                       \
         .help = "fraction of the entries that is sent" which},                                    \
    {                                                                                              \
        SL_OWN_REAL(fraction_min, 0, 1), .is_later = true, .fallback = "0",                        \
                                         .help = "per tensor: each sends from this fraction up "   \
                                                 "to fraction, what is hidden beside the "         \
                                                 "backward pass below; 0 = fraction"               \
    }
#define SL_ROW_LEVELS SL_OWN_U32(levels, 1, 32767), .fallback = "7", .help = "number of levels, s"
#define SL_ROW_BUCKET                                                                              \
    SL_OWN_U32(bucket, 0, 4294967295.0),                                                           \
        .fallback = "0", .help = "elements per scale; 0 = one scale for the whole vector"
#define SL_ROW_NORM                                                                                \
    SL_OWN_CHOICE(norm, sl_norms), .fallback = "\"l2\"", .help = "norm that scales a bucket"
#define SL_ROW_THRESHOLD                                                                           \
    SL_OWN_REAL(threshold, 1e-30, 1e30),                                                           \
        .fallback = "0.1", .help = "tau; an element of at least tau is sent as tau, with its sign"
#define SL_ROW_CLIP_SIGMA                                                                          \
    SL_OWN_REAL(clip_sigma, 0, 1000),                                                              \
        .fallback = "0",                                                                           \
        .help = "c; what is beyond c deviations of its bucket is cut off, as published with 2.5; " \
                "0 = nothing is"
/* A lossless code: of what, and which. */
#define SL_ROW_CODING(text) SL_OWN_CHOICE(coding, sl_codings), .fallback = "\"none\"", .help = text
#define SL_ROW_CODING_OF_INDICES SL_ROW_CODING("lossless code of indices: golomb or elias")
#define SL_ROW_CODING_OF_LEVELS SL_ROW_CODING("of levels: elias or huffman")
#define SL_ROW_SCALED                                                                              \
    SL_OWN_AT("scaled", scaling),                                                                  \
        .type = SL_KEY_SWITCH, .fallback = "\"auto\"",                                             \
        .help = "scale up, to be unbiased; auto = where the algorithm needs it"
#define SL_ROW_CONTRACTIVE                                                                         \
    SL_OWN_AT("contractive", contracting),                                                         \
        .type = SL_KEY_SWITCH, .fallback = "\"auto\"", .readers = "unbiased compressors",          \
        .help = "divide by 1 + omega; auto = where the algorithm needs it"

extern const char *const sl_norms[];   /* in the order of sl_norm */
extern const char *const sl_codings[]; /* in the order of sl_entropy */

#endif
