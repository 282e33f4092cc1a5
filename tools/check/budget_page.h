/* budget_page.h - what choco-sgd sends over each edge, where links have a budget. */
#ifndef BUDGET_PAGE_H
#define BUDGET_PAGE_H

#include "check/page.h"
#include "cli/tool.h"

/* Of all edges, as algorithm.budget says; false: there is none. */
bool budget_extent(sl_budget_extent *out, const trial *t);
/* What a node sends of its vector, over the edge that gets most, and how much that is of it. */
double message_bytes(const trial *t, double *share);
/* The shortest and the longest message, and each edge's. Nothing without a budget. */
void page_say_budget(page *p, const trial *t);

#endif
