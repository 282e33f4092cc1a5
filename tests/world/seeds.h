/* seeds.h - the way of both worlds from the command line through many seeds. */
#ifndef SEEDS_H
#define SEEDS_H

#include <stdbool.h>
#include <stdint.h>

/* [-v] SEED [COUNT]: `run` returns the hash of a seed's events; each 16th seed runs twice. With
 * STARLING_QUICK in the environment at most `quick` of COUNT. Fills *seeds, their number, and
 * returns 0, or 2: the arguments are wrong, and it was said. world_fail ends the program. */
int seeds_run(uint64_t *seeds, int count, char **arguments, uint64_t quick,
              uint64_t (*run)(uint64_t seed, bool verbose));

#endif
