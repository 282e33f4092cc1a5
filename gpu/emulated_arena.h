/* emulated_arena.h - the memory of the emulated device: one range of addresses, in blocks. With
 * `guarded` it is accessible only while an operation runs. Any thread may call. */
#ifndef SL_EMULATED_ARENA_H
#define SL_EMULATED_ARENA_H

#include <stdbool.h>
#include <stddef.h>

static const size_t arena_bytes = (size_t)1 << 34; /* of addresses */

bool arena_open(bool guarded);
void *arena_take(size_t bytes); /* NULL: out of memory */
void arena_give_back(void *memory);
size_t arena_free_bytes(void);
bool arena_holds(const void *memory);
/* An operation that may access the memory begins, or has ended. */
void arena_unlock(void);
void arena_lock(void);

#endif
