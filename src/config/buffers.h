/* buffers.h - how many receive buffers an agent opens; the memory forecast counts the same. */
#ifndef SL_BUFFERS_H
#define SL_BUFFERS_H

#include "starling/experiment.h"

/* Buffers per neighbour for frames that are not data. */
#define SL_CONTROL_BUFFERS 8u
/* Per neighbour, and for one visitor: sealed payloads that have not left. */
#define SL_SEALED_BUFFERS 4u

/* Number of a rank's neighbours. With servers, it is all others; so it is where a loss may make any
 * of them a neighbour. */
uint32_t sl_receive_degree(const sl_experiment *experiment, uint32_t rank);
/* Buffers per neighbour for data: transport.window_chunks, or fewer to keep the total within 32
 * MiB, but at least two. */
uint32_t sl_receive_window(const sl_experiment *experiment, uint32_t rank);

#endif
