/* shown.c - see shown.h. */
#include "cli/shown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "starling/text.h"

enum { LINE_MAX_BYTES = 1 << 16 };

char *shown_text(const char *text) {
    const size_t bytes = strlen(text), room = 4 * bytes + 4; /* no byte becomes more than four */
    char *out = malloc(room < LINE_MAX_BYTES ? room : LINE_MAX_BYTES);
    return out != NULL
               ? sl_text_show(out, room < LINE_MAX_BYTES ? room : LINE_MAX_BYTES, text, bytes)
               : NULL;
}

char *shown_format(const char *format, va_list arguments) {
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0)
        return NULL;
    char *out = shown_text(text);
    free(text);
    return out;
}
