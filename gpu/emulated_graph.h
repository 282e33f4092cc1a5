/* emulated_graph.h - tasks of a stream that are noted once and given again and again, for
 * emulated.c and the CUDA runtime of tests. */
#ifndef SL_EMULATED_GRAPH_H
#define SL_EMULATED_GRAPH_H

#include "gpu/emulated_stream.h"
#include "starling/vec.h"

sl_vec_graph *graph_open(void);
/* Copies the arguments. */
void graph_add(sl_vec_graph *graph, task_function *function, const void *arguments, size_t bytes);
/* All of them, in their order. */
void graph_give(const sl_vec_graph *graph, stream *to);
void graph_close(sl_vec_graph *graph);

#endif
