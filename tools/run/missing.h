/* missing.h - who began a run, did not come to its end, and had not left on request: in a sentence.
 */
#ifndef MISSING_H
#define MISSING_H

#include "cli/tool.h"

enum { MISSING_TEXT_MAX = 512 };

/* Zeroed before the first of them. */
typedef struct missing {
    uint32_t count;
    uint32_t named; /* of those, in `list` */
    char list[MISSING_TEXT_MAX - 128];
    char text[MISSING_TEXT_MAX];
} missing;

/* Who is missing to an agent that has come to its end, as below. */
const char *missing_find(missing *m, const sl_agent *agent, const trial *t);
/* One more, which was lost in `round` of so many; 0: nobody knows. */
void missing_add(missing *m, uint32_t rank, uint64_t round, uint64_t rounds);
/* The sentence, of a run that began with so many agents; NULL: nobody is missing. */
const char *missing_text(missing *m, uint32_t began);

#endif
