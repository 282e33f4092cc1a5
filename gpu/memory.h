/* memory.h - device memory of this process, up to a limit. */
#ifndef SL_GPU_MEMORY_H
#define SL_GPU_MEMORY_H

#include "starling/vec.h"

/* 0: no limit. */
void memory_bound(size_t bytes);
/* Zeroed device memory. NULL: above the limit, or out of memory. */
void *memory_take(size_t bytes);
void memory_give_back(void *memory); /* or NULL */
/* Such that others may map, or have made. NULL: text says why. */
void *memory_share_open(size_t bytes, int *descriptor, char text[SL_SHARE_WHY_MAX]);
const void *memory_share_map(int descriptor, size_t bytes, char text[SL_SHARE_WHY_MAX]);
void memory_share_close(const void *memory);
/* Is it in one of these? */
bool memory_is_shared(const void *memory);
/* Memory of the calling thread, until it asks for more or ends. NULL as above. */
void *memory_scratch(size_t bytes);
void memory_describe(sl_vec_memory *out);

/* Blocks that are freed together. Zero-initialized. */
enum { MEMORY_LIST_MAX = 16 };
typedef struct memory_list {
    void *blocks[MEMORY_LIST_MAX];
    size_t count;
    bool failed; /* an allocation failed; later ones fail, too */
} memory_list;

void *memory_list_take(memory_list *list, size_t bytes);
void memory_list_give_back(memory_list *list);

#endif
