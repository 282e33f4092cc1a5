/* layout_text.c - see layout_text.h. */
#include "task/layout_text.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 100 };

static int length_of(const char *line) {
    const size_t length = strcspn(line, "\n");
    return length < SHOWN_MAX ? (int)length : SHOWN_MAX;
}

static const char *next(const char *line) {
    line += strcspn(line, "\n");
    return *line == '\n' ? line + 1 : line;
}

static const char *shown(const char *line) {
    return *line != '\0' ? line : "missing";
}

bool sl_layout_text_differs(const char *theirs, const char *ours, char *out, size_t bytes) {
    for (size_t tensor = 0; *theirs != '\0' || *ours != '\0'; tensor++) {
        const char *other = next(theirs), *own = next(ours);
        if (other - theirs != own - ours || memcmp(theirs, ours, (size_t)(own - ours)) != 0) {
            theirs = shown(theirs);
            ours = shown(ours);
            snprintf(out, bytes, "tensor %zu is %.*s there and %.*s here", tensor,
                     length_of(theirs), theirs, length_of(ours), ours);
            return true;
        }
        theirs = other;
        ours = own;
    }
    return false;
}
