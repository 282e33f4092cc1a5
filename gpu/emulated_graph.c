/* emulated_graph.c - see emulated_graph.h. */
#include "gpu/emulated_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct note {
    struct note *next;
    task_function *function;
    size_t bytes;
    _Alignas(max_align_t) char arguments[STREAM_BYTES_MAX];
} note;

struct sl_vec_graph {
    note *first, **end;
};

static void *claim(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (memory == NULL) {
        fputs("emulated device: out of memory for a graph\n", stderr);
        abort();
    }
    return memory;
}

sl_vec_graph *graph_open(void) {
    sl_vec_graph *graph = claim(sizeof *graph);
    graph->end = &graph->first;
    return graph;
}

void graph_add(sl_vec_graph *graph, task_function *function, const void *arguments, size_t bytes) {
    note *n = claim(sizeof *n);
    n->function = function;
    n->bytes = bytes;
    memcpy(n->arguments, arguments, bytes);
    *graph->end = n;
    graph->end = &n->next;
}

void graph_give(const sl_vec_graph *graph, stream *to) {
    for (const note *n = graph->first; n != NULL; n = n->next)
        stream_give(to, n->function, n->arguments, n->bytes);
}

void graph_close(sl_vec_graph *graph) {
    while (graph->first != NULL) {
        note *n = graph->first;
        graph->first = n->next;
        free(n);
    }
    free(graph);
}
