/* family.h - the families of graphs and schedules, and their parameters. */
#ifndef STARLING_FAMILY_H
#define STARLING_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Properties of a family, independent of parameters; static. */
typedef struct sl_family_info {
    const char *name;            /* in a file */
    const char *meaning;         /* half a sentence */
    bool random;                 /* drawn from a seed */
    bool schedule;               /* more than one slot */
    bool directed;               /* some edges have no reverse in their slot */
    bool transitive;             /* vertex-transitive: a symmetry maps any node to any other */
    const char *const *examples; /* small examples, as JSON without "family"; ends with NULL */
    sl_weighting weighting; /* the default; SL_WEIGHTING_EXPLICIT: the family has weights of its own
                               and takes no other */
} sl_family_info;
SL_API const sl_family_info *sl_family_describe(sl_family family);
/* All families with their parameters, one line each; malloc'ed, caller frees. */
SL_API char *sl_families_help(void);

#ifdef __cplusplus
}
#endif
#endif
