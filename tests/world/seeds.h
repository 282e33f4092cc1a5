/* seeds.h - the way of all worlds from the command line through many seeds. */
#ifndef SEEDS_H
#define SEEDS_H

#include <stdbool.h>
#include <stdint.h>

/* [-v] SEED [COUNT]: `run` returns the hash of a seed's events; each 16th seed runs twice. With
 * STARLING_QUICK in the environment at most `quick` of COUNT. Tells what all seeds have counted,
 * and returns the exit code: 2: the arguments are wrong, and it was said. world_fail ends the
 * program.
 */
int seeds_main(int count, char **arguments, uint64_t quick,
               uint64_t (*run)(uint64_t seed, bool verbose));
/* So many more of these, in all seeds. */
void seeds_count(const char *what, uint64_t more);
/* So long did one of these take; the longest is told. */
void seeds_time(const char *what, double seconds);

#endif
