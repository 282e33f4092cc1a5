/* seeds.h - with which seeds each variant runs: --seeds "1..5", "1,2,5", "1..3,7", or a list. */
#ifndef SEEDS_H
#define SEEDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/error.h"

enum { SEEDS_MAX = 100 };
/* As large as the key `seed` allows. */
#define SEED_LARGEST ((uint64_t)1 << 53)

typedef struct seeds {
    uint64_t items[SEEDS_MAX]; /* (count) no two are equal */
    size_t count;
} seeds;

/* Of a file's list: [1, 2, 5]. The error begins with `where`. */
int seeds_take(seeds *out, json_t *list, const char *where, sl_error *error);
/* An exit code: TOOL_OK, or TOOL_USAGE with an error line written. */
int seeds_parse(seeds *out, const char *text);

#endif
