/* key.h - one key of the experiment file: its name, what it allows, where its value goes, and what
 * it means. Keys of a part of the experiment are rows at the end of that part's file. */
#ifndef STARLING_KEY_H
#define STARLING_KEY_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sl_key_type {
    SL_KEY_TEXT,            /* char[SL_NAME_MAX] */
    SL_KEY_PATH,            /* char[SL_PATH_MAX] */
    SL_KEY_CHOICE,          /* an enum, one of `choices` */
    SL_KEY_BOOL,            /* bool */
    SL_KEY_SWITCH,          /* sl_switch: true, false or "auto" */
    SL_KEY_SERVER,          /* int64_t: a rank, or SL_SERVER_SHARDED for "sharded" */
    SL_KEY_U32,             /* uint32_t */
    SL_KEY_U64,             /* uint64_t */
    SL_KEY_U64_BY_RANK,     /* uint64_t, or a list by rank, of which it is the largest: sl_counts at
                               count_offset */
    SL_KEY_REAL,            /* double */
    SL_KEY_REAL_OR_SETS,    /* double, or lists of ranks: sl_rank_sets at count_offset */
    SL_KEY_CHOICE_OR_REALS, /* an enum, or a list by rank: sl_reals at count_offset */
    SL_KEY_PARAMETER, /* double; NaN: "auto", what is usual for the algorithm, or choices[0] */
    SL_KEY_COUNT,     /* uint64_t; SL_COUNT_AUTO: "auto", what is usual for the algorithm, or
                         choices[0] */
    SL_KEY_REALS,     /* double[], rising, with a size_t count */
    SL_KEY_FACTORS,   /* double[], in any order, with a size_t count */
    SL_KEY_ROWS,      /* sl_number_rows */
    SL_KEY_U32S,      /* uint32_t[] with a size_t count */
    SL_KEY_U64S       /* uint64_t[], rising, with a size_t count */
} sl_key_type;

/* The struct that has the value. */
typedef enum sl_key_owner {
    SL_KEY_OF_EXPERIMENT, /* sl_experiment */
    SL_KEY_OF_ALGORITHM,  /* sl_algorithm_config; who lists the key reads it */
    SL_KEY_OF_COMPRESSOR  /* sl_compressor_config; the same */
} sl_key_owner;

typedef struct sl_key {
    const char *path; /* "optimizer.momentum" */
    sl_key_type type;
    sl_key_owner owner;
    size_t offset, count_offset; /* of the value in its owner, and of a list's length */
    double min, max;             /* of a number, or of each in a list */
    size_t length_max;           /* of a list */
    bool as_named;               /* PATH: need not be there, and links in it stay */
    const char *const *choices;  /* CHOICE: names in the order of the enum; TEXT: known values, or
                                    NULL. Ends with NULL */
    const char *(*names)(size_t index); /* TEXT: the same from a function, or NULL */
    const char *fallback;               /* JSON text of the default */
    const char *help;
    /* The key has an effect if the key `user` has one of the values `users` (separated by spaces),
     * or none of them if `users` begins with "!". NULL: always. */
    const char *user, *users;
    /* Of an algorithm or compressor: who reads it, in words. NULL: their names are listed. */
    const char *readers;
    /* Counts in hashes only where it is not the default: a run has the hash that it had before
     * there was the key. */
    bool is_later;
} sl_key;

/* ---- rows ---- */

#define SL_KEY_BETWEEN(low, high) .min = (low), .max = (high)
#define SL_KEY_USED_BY(key, values) .user = key, .users = values
#define SL_BELOW_1 0.99999999
#define SL_KEYS_END                                                                                \
    { .path = NULL }

#ifdef __cplusplus
}
#endif
#endif
