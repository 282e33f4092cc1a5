/* seeds.h - the value of --seeds: "1..5", "1,2,5", "1..3,7". */
#ifndef SEEDS_H
#define SEEDS_H

#include <stddef.h>
#include <stdint.h>

enum { SEEDS_MAX = 100 };
/* As large as the key `seed` allows. */
#define SEED_LARGEST ((uint64_t)1 << 53)

typedef struct seeds {
    uint64_t items[SEEDS_MAX]; /* (count) no two are equal */
    size_t count;
} seeds;

/* An exit code: TOOL_OK, or TOOL_USAGE with an error line written. */
int seeds_parse(seeds *out, const char *text);

#endif
