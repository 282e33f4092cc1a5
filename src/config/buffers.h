/* buffers.h - how many receive buffers an agent opens; the memory forecast counts the same. */
#ifndef SL_BUFFERS_H
#define SL_BUFFERS_H

#include "starling/experiment.h"

/* Buffers per neighbour for frames that are not data. */
#define SL_CONTROL_BUFFERS 8u
/* Per neighbour, and for one visitor: sealed payloads that have not left. */
#define SL_SEALED_BUFFERS 4u

/* Descriptors that an agent takes for each neighbour, with those of a connection that comes while
 * one before it ends; for files; and for itself. */
enum { SL_DESCRIPTORS_OF_NEIGHBOUR = 3, SL_DESCRIPTORS_OF_FILES = 8, SL_DESCRIPTORS_OWN = 32 };

/* Number of a rank's neighbours. With servers, it is all others; so it is where a loss may make any
 * of them a neighbour. */
uint32_t sl_receive_degree(const sl_experiment *experiment, uint32_t rank);
enum { SL_WINDOW_CHUNKS_MAX = 64 }; /* of transport.window_chunks */
/* Buffers per neighbour for data where vectors are on the host: transport.window_chunks, or fewer
 * to keep the total within 32 MiB, but at least two. Of "auto" what any agent has: few stay in
 * cache. */
uint32_t sl_host_window(const sl_experiment *experiment, uint32_t rank);
/* The same where they are: a device combines more at once, and so more is here. is_distant:
 * neighbours are on other machines: more is under way, the longer the way. */
uint32_t sl_receive_window(const sl_experiment *experiment, uint32_t rank, bool is_distant);

#endif
