/* variants.h - what `starling compare` compares: experiments with the same data, model and rounds.
 */
#ifndef VARIANTS_H
#define VARIANTS_H

#include "cli/tool.h"
#include "compare/published.h"

typedef struct variant {
    char name[SL_NAME_MAX];                     /* also its run folder's; no two are equal */
    char where[SL_PATH_MAX + SL_NAME_MAX + 32]; /* for errors */
    sl_experiment *experiment;
    char skip[SL_NAME_MAX]; /* why it is not run; "": it is */
    published published;
} variant;

typedef struct variants {
    variant *items; /* (count) */
    size_t count, room;
    bool from_list;     /* a file holds several */
    bool has_published; /* a file has such numbers */
} variants;

/* All of the files, and of a file with `variants` each of these; refuses those that cannot be
 * compared. To be closed in any case. */
int variants_load(variants *out, const options *o, sl_error *error);
void variants_close(variants *v);

#endif
