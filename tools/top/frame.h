/* frame.h - a run as lines of text: who waits for whom, curves, what each node did when, edges,
 * events. Of a document as starling/board.h has it; a panel whose member is missing says so. */
#ifndef FRAME_H
#define FRAME_H

#include <jansson.h>
#include <stdio.h>

#include "cli/tool.h"

typedef struct frame_room {
    size_t width, height; /* columns, lines; SIZE_MAX: no limit */
    bool is_unicode;      /* else marks of ASCII */
    bool is_bold;         /* headings, by codes of a terminal */
} frame_room;

/* At most `height` lines of `width` columns, where there is room for one of each panel. */
void frame_write(FILE *out, const json_t *document, const frame_room *room);

#endif
