/* round_up.h - the smallest multiple of a unit that is not below a number. */
#ifndef SL_ROUND_UP_H
#define SL_ROUND_UP_H

#include <stddef.h>

static inline size_t sl_round_up(size_t n, size_t unit) {
    return (n + unit - 1) / unit * unit;
}

#endif
