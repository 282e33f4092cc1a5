/* buffers.h - how many receive buffers an agent has: what it opens, and what a forecast counts. */
#ifndef SL_BUFFERS_H
#define SL_BUFFERS_H

#include "starling/experiment.h"

/* Of each neighbour, for frames that are not data. */
#define SL_CONTROL_BUFFERS 8u

/* Neighbours of a rank: with servers any rank may have all others. */
uint32_t sl_receive_degree(const sl_experiment *experiment, uint32_t rank);
/* Buffers of each neighbour for data: transport.window_chunks, or fewer where those of all
 * neighbours together would take more than 32 MiB; at least two. */
uint32_t sl_receive_window(const sl_experiment *experiment, uint32_t rank);

#endif
