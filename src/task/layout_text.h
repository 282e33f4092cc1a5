/* layout_text.h - what a task's vector is made of, in words: a line for each tensor, such as
 * "conv1.weight [64, 3, 3, 3]". */
#ifndef SL_LAYOUT_TEXT_H
#define SL_LAYOUT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A text that need not be ours, nor end with a zero. */
typedef struct sl_layout_text {
    const char *text;
    size_t bytes;
} sl_layout_text;

/* The first line that differs, of both, such as "tensor 3 is w [2, 3] there and w [3, 2] here",
 * printable. False: the texts are equal. */
bool sl_layout_text_differs(sl_layout_text theirs, sl_layout_text ours, char *out, size_t bytes);

#endif
