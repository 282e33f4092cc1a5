/* arena.c - arena/arena.h in the virtual world: an owner's memory outlives it, and half of all
 * pairs of ranks do not reach each other's mailboxes. */
#include "arena/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "starling/vec.h"
#include "virtual.h"

enum { ARENAS_MAX = 1024 };

struct sl_arena {
    uint8_t *memory;
    size_t bytes;
    uint32_t number, holders;
};

struct sl_arena_map {
    sl_memory_offer offer;
    const uint8_t *memory;
};

struct sl_mailbox {
    sl_mailbox_name name; /* its owner's rank, plus 1 */
};

/* Of all processes so far. */
static struct {
    void *whole;
    uint8_t *memory; /* in it */
} arenas[ARENAS_MAX];
static uint32_t made;

void arenas_clear(void) {
    while (made > 0)
        world_free(arenas[--made].whole);
}

/* It is its owner's, as what that allocates (memory.c). */
static void hold(process *owner, size_t bytes) {
    owner->bytes += bytes;
    if (owner->bytes > owner->bytes_max)
        owner->bytes_max = owner->bytes;
}

int sl_arena_open(sl_arena **out, size_t bytes, sl_error *error) {
    sl_arena *a = calloc(1, sizeof *a);
    if (a == NULL || made == ARENAS_MAX) {
        free(a);
        return sl_fail(error, SL_ENOMEM, "out of memory for an arena");
    }
    uint8_t *whole = world_allocate(bytes + SL_VEC_ALIGNMENT);
    uint8_t *memory = whole + (SL_VEC_ALIGNMENT - (uintptr_t)whole % SL_VEC_ALIGNMENT);
    *a = (sl_arena){memory, bytes, made, 1};
    arenas[made].whole = whole;
    arenas[made++].memory = memory;
    hold(process_current(), bytes);
    *out = a;
    return 0;
}

/* There are no devices. */
bool sl_arena_open_on(sl_arena **out, const sl_share_ops *device, size_t bytes,
                      char why[SL_ARENA_WHY_MAX]) {
    (void)out, (void)device, (void)bytes, (void)why;
    return false;
}

bool sl_arena_map_is_on_device(const sl_arena_map *m) {
    (void)m;
    return false;
}

bool sl_arena_holds(const sl_arena *a, const void *memory) {
    return a != NULL && (uintptr_t)memory - (uintptr_t)a->memory < a->bytes;
}

/* Others may have it still: the memory goes with the world. */
void sl_arena_close(sl_arena **arena) {
    sl_arena *a = *arena;
    *arena = NULL;
    if (a == NULL || --a->holders > 0)
        return;
    process_current()->bytes -= a->bytes;
    free(a);
}

sl_arena *sl_arena_hold(sl_arena *a) {
    a->holders++;
    return a;
}

int sl_arena_descriptor(const sl_arena *a) {
    (void)a;
    return -1;
}

uint8_t *sl_arena_memory(const sl_arena *a) {
    return a->memory;
}

size_t sl_arena_bytes(const sl_arena *a) {
    return a->bytes;
}

bool sl_arena_post(const sl_arena *a, const sl_mailbox_name *name, sl_memory_offer *out,
                   char why[SL_ARENA_WHY_MAX]) {
    *out = (sl_memory_offer){.bytes = a->bytes, .key = {a->number, ~(uint64_t)a->number}};
    snprintf(why, SL_ARENA_WHY_MAX, "it has another host, or a network of its own");
    return (name->key[0] - 1 + process_current()->rank) % 4 < 2;
}

sl_mailbox *sl_mailbox_open(const sl_share_ops *device) {
    (void)device;
    sl_mailbox *m = calloc(1, sizeof *m);
    if (m != NULL)
        m->name.key[0] = process_current()->rank + 1;
    return m;
}

void sl_mailbox_close(sl_mailbox **mailbox) {
    free(*mailbox);
    *mailbox = NULL;
}

sl_mailbox_name sl_mailbox_name_of(const sl_mailbox *m) {
    return m->name;
}

bool sl_arena_map_open(sl_arena_map **out, const sl_mailbox *from, const sl_memory_offer *offer,
                       char why[SL_ARENA_WHY_MAX]) {
    const bool known = from != NULL && offer->key[0] < made && offer->key[1] == ~offer->key[0];
    sl_arena_map *m = known ? calloc(1, sizeof *m) : NULL;
    snprintf(why, SL_ARENA_WHY_MAX, "its memory has not been handed over");
    if (m != NULL)
        *m = (sl_arena_map){*offer, arenas[offer->key[0]].memory};
    *out = m;
    return m != NULL;
}

void sl_arena_map_close(sl_arena_map **map) {
    free(*map);
    *map = NULL;
}

bool sl_arena_map_is_of(const sl_arena_map *m, const sl_memory_offer *offer) {
    return m != NULL && memcmp(m->offer.key, offer->key, sizeof offer->key) == 0;
}

const uint8_t *sl_arena_map_at(const sl_arena_map *m, uint64_t offset, size_t bytes) {
    return offset > m->offer.bytes || bytes > m->offer.bytes - offset ? NULL : m->memory + offset;
}
