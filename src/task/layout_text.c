/* layout_text.c - see layout_text.h. */
#include "task/layout_text.h"

#include <stdio.h>
#include <string.h>

#include "starling/text.h"

enum { SHOWN_MAX = 100 };

/* Takes the first line off, without its end. */
static sl_layout_text take_line(sl_layout_text *t) {
    const char *end = t->bytes > 0 ? memchr(t->text, '\n', t->bytes) : NULL;
    sl_layout_text line = {t->text, end != NULL ? (size_t)(end - t->text) : t->bytes};
    const size_t taken = line.bytes + (end != NULL);
    t->text += taken;
    t->bytes -= taken;
    return line;
}

static void show(sl_layout_text line, char out[SHOWN_MAX + 1]) {
    if (line.bytes > 0)
        sl_text_show(out, SHOWN_MAX + 1, line.text, line.bytes);
    else
        snprintf(out, SHOWN_MAX + 1, "missing");
}

bool sl_layout_text_differs(sl_layout_text theirs, sl_layout_text ours, char *out, size_t bytes) {
    for (size_t tensor = 0; theirs.bytes > 0 || ours.bytes > 0; tensor++) {
        const sl_layout_text other = take_line(&theirs), own = take_line(&ours);
        if (other.bytes == own.bytes && memcmp(other.text, own.text, own.bytes) == 0)
            continue;
        char there[SHOWN_MAX + 1], here[SHOWN_MAX + 1];
        show(other, there);
        show(own, here);
        snprintf(out, bytes, "tensor %zu is %s there and %s here", tensor, there, here);
        return true;
    }
    return false;
}
