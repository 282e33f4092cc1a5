/* family.h - the families of graphs and schedules: what each is and which parameters it takes. */
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

/* What is known of a family without its parameters; static. */
typedef struct sl_family_info {
    const char *name;            /* in a file */
    const char *meaning;         /* half a sentence */
    bool random;                 /* drawn from a seed */
    bool schedule;               /* more than one slot */
    bool directed;               /* some edge has no reverse in its slot */
    bool transitive;             /* all nodes are alike: some symmetry takes each to each other */
    const char *const *examples; /* small ones, as JSON without "family"; the last is NULL */
    sl_weighting weighting; /* where none is asked for; SL_WEIGHTING_EXPLICIT: the family brings its
                               own, and takes no other */
} sl_family_info;
SL_API const sl_family_info *sl_family_describe(sl_family family);
/* All families with their parameters, one line each; malloc'ed, caller frees. */
SL_API char *sl_families_help(void);

#ifdef __cplusplus
}
#endif
#endif
