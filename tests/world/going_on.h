/* going_on.h - who may go on from the checkpoints that a seed's agents have left, and from which
 * round. */
#ifndef GOING_ON_H
#define GOING_ON_H

#include "starling/starling.h"

typedef struct going_on {
    uint64_t round;          /* the newest that is whole; 0: there is none */
    sl_checkpoint_view view; /* that it was written in: its members go on */
    bool agrees;             /* agents that only see their own files find it, too */
} going_on;

going_on going_on_find(void);
/* Has a rank a file? */
bool going_on_has(uint32_t rank);
/* The disk of a rank is lost. */
void going_on_lose(uint32_t rank);

#endif
