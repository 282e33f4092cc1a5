/* names.c - see names.h. */
#include "launch/names.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t first_room = 1 << 12;

uint32_t sl_names_add(sl_names *names, const char *text, size_t bytes) {
    const uint64_t used = (uint64_t)names->used + bytes + 1;
    uint64_t room = names->room > 0 ? names->room : first_room;
    while (room < used)
        room *= 2;
    if (room > SL_NAMES_NONE)
        return SL_NAMES_NONE;
    if (room > names->room) {
        char *more = realloc(names->text, room);
        if (more == NULL)
            return SL_NAMES_NONE;
        names->text = more;
        names->room = (uint32_t)room;
    }
    const uint32_t at = names->used;
    memcpy(names->text + at, text, bytes);
    names->text[at + bytes] = '\0';
    names->used = (uint32_t)used;
    return at;
}

void sl_names_close(sl_names *names) {
    free(names->text);
    *names = (sl_names){0};
}

bool sl_equals_open(sl_equals *out, size_t count,
                    bool (*are_equal)(const void *context, uint32_t a, uint32_t b),
                    const void *context) {
    size_t slots = 16;
    while (slots < 2 * count)
        slots *= 2;
    *out = (sl_equals){calloc(slots, sizeof *out->slots), slots - 1, are_equal, context};
    return out->slots != NULL;
}

uint32_t sl_equals_first(sl_equals *e, uint32_t thing, uint64_t hash) {
    size_t at = hash & e->mask;
    for (; e->slots[at] != 0; at = (at + 1) & e->mask)
        if (e->are_equal(e->context, e->slots[at] - 1, thing))
            return e->slots[at] - 1;
    e->slots[at] = thing + 1;
    return thing;
}

void sl_equals_close(sl_equals *e) {
    free(e->slots);
    *e = (sl_equals){0};
}
