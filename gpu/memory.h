/* memory.h - what this program takes of the device, and how much it may. */
#ifndef SL_GPU_MEMORY_H
#define SL_GPU_MEMORY_H

#include "starling/vec.h"

/* 0: no bound. */
void memory_bound(size_t bytes);
/* Zeroed memory of the device; NULL: beyond the bound, or not there. */
void *memory_take(size_t bytes);
void memory_give_back(void *memory); /* or NULL */
/* The calling thread's own, until it asks for more or ends; NULL as above. */
void *memory_scratch(size_t bytes);
void memory_describe(sl_vec_memory *out);

/* Blocks that are given back together. Begins as zeros. */
enum { MEMORY_LIST_MAX = 16 };
typedef struct memory_list {
    void *blocks[MEMORY_LIST_MAX];
    size_t count;
    bool failed; /* a block was not there; from then on none is */
} memory_list;

void *memory_list_take(memory_list *list, size_t bytes);
void memory_list_give_back(memory_list *list);

#endif
