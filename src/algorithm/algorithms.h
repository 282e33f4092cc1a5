/* algorithms.h - what the list in algorithm.c gathers; one declaration per paper. */
#ifndef SL_ALGORITHMS_H
#define SL_ALGORITHMS_H

#include "starling/algorithm.h"

extern const sl_algorithm sl_d_psgd_adapt_then_combine;
extern const sl_algorithm sl_d_psgd_combine_while_adapt;

#endif
