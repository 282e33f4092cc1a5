/* names.h - the names of a million hosts: one behind the other in one piece of memory, and found
 * again without looking at each of them. */
#ifndef SL_NAMES_H
#define SL_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sl_names {
    char *text;
    uint32_t used, room; /* bytes */
} sl_names;

#define SL_NAMES_NONE UINT32_MAX

/* Where a copy of the text begins, with a zero behind it; SL_NAMES_NONE: out of memory. */
uint32_t sl_names_add(sl_names *names, const char *text, size_t bytes);
/* Until the next one is added. */
static inline const char *sl_names_at(const sl_names *names, uint32_t at) {
    return names->text + at;
}
void sl_names_close(sl_names *names);

/* Things that have numbers, by what makes them equal. */
typedef struct sl_equals {
    uint32_t *slots; /* (mask + 1) number + 1; 0: free */
    size_t mask;
    bool (*are_equal)(const void *context, uint32_t a, uint32_t b);
    const void *context;
} sl_equals;

/* For `count` things. False: out of memory. */
bool sl_equals_open(sl_equals *out, size_t count,
                    bool (*are_equal)(const void *context, uint32_t a, uint32_t b),
                    const void *context);
/* The first thing that equals this one, whose hash this is; it itself, which is kept: none does. */
uint32_t sl_equals_first(sl_equals *equals, uint32_t thing, uint64_t hash);
void sl_equals_close(sl_equals *equals);

#endif
