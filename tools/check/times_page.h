/* times_page.h - how long a round takes on the links of network.*, by the models of time_model.h.
 */
#ifndef TIMES_PAGE_H
#define TIMES_PAGE_H

#include "check/page.h"
#include "cli/tool.h"

/* The round, each form of all-reduce, and the links of single pairs. Nothing without links. */
void page_say_times(page *p, const trial *t);
/* Seconds of a round; NaN: no model tells. */
double round_seconds(const trial *t);
/* The same; and where messages go along edges, a gradient, and one message to each neighbour. */
double round_estimate(const trial *t);

#endif
