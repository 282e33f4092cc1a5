/* variants_page.h - what several experiments mean that are compared: a line for each. */
#ifndef VARIANTS_PAGE_H
#define VARIANTS_PAGE_H

#include "check/page.h"
#include "compare/variants.h"

int page_say_variants(page *p, const variants *v, sl_error *error);

#endif
