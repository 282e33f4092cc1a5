/* strike.h - what happens to an agent, or to the connection of two. */
#ifndef STRIKE_H
#define STRIKE_H

#include <stdint.h>

typedef enum strike_kind {
    STRIKE_KILL,
    STRIKE_STOP,
    STRIKE_CUT,
    STRIKE_LEAVE,
    STRIKE_KINDS
} strike_kind;
typedef struct strike {
    strike_kind kind;
    uint32_t a, b;
    uint64_t round; /* as which `a` begins it happens */
    double at_s, seconds;
} strike;

#endif
