/* variants.h - what `starling compare` compares: experiments, and runs that there are already. */
#ifndef VARIANTS_H
#define VARIANTS_H

#include <jansson.h>

#include "cli/tool.h"
#include "compare/published.h"
#include "compare/seeds.h"

enum { VARIANT_NAME_MAX = 200 };

typedef struct variant {
    char name[VARIANT_NAME_MAX];                     /* also its run folder's; no two are equal */
    char method[SL_NAME_MAX];                        /* the name without what is swept */
    char where[SL_PATH_MAX + VARIANT_NAME_MAX + 32]; /* for errors */
    sl_experiment *experiment;
    json_t *swept;          /* an object: key, value; owned; NULL: nothing is */
    char skip[SL_NAME_MAX]; /* why it is not run; "": it is */
    char run[SL_PATH_MAX];  /* the folder of a run that is there already; "": it is run */
    published published;
} variant;

typedef struct variants {
    variant *items; /* (count) */
    size_t count, room;
    bool from_list;     /* a file holds several */
    bool has_published; /* a file has such numbers */
    seeds seeds;        /* of the files' "sweep"; count 0: they have none */
} variants;

/* All of the files, and of a file with `variants` or `sweep` each of these; refuses two that are
 * the same experiment. A folder stands for the run in it. To be closed in any case. */
int variants_load(variants *out, const options *o, sl_error *error);
/* One more. *item is taken in any case. */
int variants_add(variants *v, variant *item, sl_error *error);
void variants_close(variants *v);
/* Is there nothing to do for it? */
bool variant_runs(const variant *v);

#endif
