/* seeds.c - see seeds.h. */
#include "compare/seeds.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"

static bool take_number(uint64_t *out, const char **at) {
    char *end;
    errno = 0;
    if (!isdigit((unsigned char)**at))
        return false;
    *out = strtoull(*at, &end, 10);
    *at = end;
    return errno == 0 && *out <= SEED_LARGEST;
}

static bool add(seeds *s, uint64_t seed) {
    for (size_t i = 0; i < s->count; i++)
        if (s->items[i] == seed)
            return false;
    if (s->count == SEEDS_MAX)
        return false;
    s->items[s->count++] = seed;
    return true;
}

/* One number, or FIRST..LAST, also written with a hyphen. */
static bool take_range(seeds *s, const char **at) {
    uint64_t first, last;
    if (!take_number(&first, at))
        return false;
    last = first;
    if (**at == '-' || strncmp(*at, "..", 2) == 0) {
        *at += **at == '-' ? 1 : 2;
        if (!take_number(&last, at) || last < first)
            return false;
    }
    for (uint64_t seed = first; seed <= last; seed++)
        if (!add(s, seed))
            return false;
    return true;
}

int seeds_take(seeds *out, json_t *list, const char *where, sl_error *error) {
    seeds s = {0};
    bool good = json_is_array(list) && json_array_size(list) > 0;
    for (size_t i = 0; i < json_array_size(list) && good; i++) {
        const json_int_t seed = json_integer_value(json_array_get(list, i));
        good = json_is_integer(json_array_get(list, i)) && seed >= 0 &&
               (uint64_t)seed <= SEED_LARGEST && add(&s, (uint64_t)seed);
    }
    if (!good)
        return sl_fail(
            error, SL_EINVAL,
            "%s: sweep: \"seed\": must be a list of 1 to %d different whole numbers, such "
            "as [1, 2, 5]",
            where, SEEDS_MAX);
    *out = s;
    return 0;
}

int seeds_parse(seeds *out, const char *text) {
    seeds s = {0};
    const char *at = text;
    bool good = take_range(&s, &at);
    while (good && *at == ',') {
        at++;
        good = take_range(&s, &at);
    }
    if (good && *at == '\0') {
        *out = s;
        return TOOL_OK;
    }
    complain("--seeds %s: expected 1 to %d different seeds, such as 1..5 or 1,2,5", text,
             SEEDS_MAX);
    return TOOL_USAGE;
}
