/* emulated_locked.h - page-locked memory of the emulated device, and what may be copied of it. */
#ifndef SL_EMULATED_LOCKED_H
#define SL_EMULATED_LOCKED_H

#include <stddef.h>

void *locked_allocate(size_t bytes); /* aligned to 64; NULL: out of memory */
void locked_release(void *memory);   /* or NULL */
/* Ends the program unless all these bytes are of one allocation. */
void locked_expect(const void *host, size_t bytes);

#endif
