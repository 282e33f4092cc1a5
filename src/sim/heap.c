/* heap.c - see heap.h. Of four children: half as many levels as of two, and the children of an
 * entry lie side by side. */
#include "sim/heap.h"

#include <stdlib.h>

enum { CHILDREN = 4 };

static bool is_before(const sl_heap_entry *a, const sl_heap_entry *b) {
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static bool make_room(sl_heap *heap) {
    if (heap->count < heap->room)
        return true;
    const size_t room = 2 * heap->room + 64;
    sl_heap_entry *entries = realloc(heap->entries, room * sizeof *entries);
    if (entries == NULL)
        return false;
    heap->entries = entries;
    heap->room = room;
    return true;
}

bool sl_heap_add(sl_heap *heap, uint64_t at, sl_phase phase, uint32_t rank, uint32_t body) {
    if (!make_room(heap))
        return false;
    const sl_heap_entry entry = {
        at, (uint64_t)phase << 61 | (uint64_t)rank << 39 | heap->sequence++, body};
    size_t place = heap->count++;
    while (place > 0 && is_before(&entry, &heap->entries[(place - 1) / CHILDREN])) {
        heap->entries[place] = heap->entries[(place - 1) / CHILDREN];
        place = (place - 1) / CHILDREN;
    }
    heap->entries[place] = entry;
    return true;
}

/* The earliest child of a place; count: it has none. */
static size_t first_child(const sl_heap *heap, size_t place) {
    const size_t from = CHILDREN * place + 1,
                 end = from + CHILDREN < heap->count ? from + CHILDREN : heap->count;
    size_t best = from < heap->count ? from : heap->count;
    for (size_t i = from + 1; i < end; i++)
        if (is_before(&heap->entries[i], &heap->entries[best]))
            best = i;
    return best;
}

bool sl_heap_take(sl_heap *heap, sl_heap_entry *out) {
    if (heap->count == 0)
        return false;
    *out = heap->entries[0];
    const sl_heap_entry last = heap->entries[--heap->count];
    size_t place = 0, child;
    while ((child = first_child(heap, place)) < heap->count &&
           is_before(&heap->entries[child], &last)) {
        heap->entries[place] = heap->entries[child];
        place = child;
    }
    heap->entries[place] = last;
    return true;
}

void sl_heap_close(sl_heap *heap) {
    free(heap->entries);
    *heap = (sl_heap){0};
}
