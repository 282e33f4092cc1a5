/* layout.h - what a session's vector is made of, and how to say it. */
#ifndef SL_SESSION_LAYOUT_H
#define SL_SESSION_LAYOUT_H

#include <stddef.h>

#include "starling/session.h"

typedef struct sl_layout {
    size_t dimension;
    size_t *ends; /* (count) where each tensor ends; NULL: one tensor without a name */
    size_t *rows; /* (count) of each as a matrix: its first axis, if it has two or more */
    size_t count;
    char *text; /* a line for each tensor, "conv1.weight [64, 3, 3, 3]"; "": nothing is known */
} sl_layout;

/* SL_EINVAL: the tensors do not make up the dimension, or a name holds a line break. */
int sl_layout_open(sl_layout *out, const sl_session_options *options, uint64_t dimension,
                   sl_error *error);
void sl_layout_close(sl_layout *layout);
/* Equal for equal layouts; never 0. */
uint64_t sl_layout_hash(const sl_layout *layout);
/* "conv1.weight [64, 3, 3, 3]"; "" where nothing is known. */
void sl_layout_name_tensor(const sl_layout *layout, size_t tensor, char *out, size_t bytes);
/* "element 5 of conv1.weight [64, 3, 3, 3]", or "element 5". */
void sl_layout_name_element(const sl_layout *layout, size_t element, char *out, size_t bytes);

#endif
