/* run_page.h - the page of `starling run`, where monitor.listen is set.
 *
 * With {rank} in it, agents listen there themselves, and the page is at another port of the host;
 * else the page is there, and agents listen in the folder only. */
#ifndef RUN_PAGE_H
#define RUN_PAGE_H

#include "cli/tool.h"

/* What monitor.* says of it. */
sl_show_place run_page_place(const sl_experiment *experiment);
/* Is the page there? Else agents are. */
bool run_page_takes(const char *listen);
/* Before the folder is there: it is read once somebody looks. *out is NULL where monitor.listen is
 * not set; SL_EINVAL then if the page is to be opened. */
int run_page_open(sl_show **out, const options *o, const sl_experiment *experiment,
                  const char *folder, sl_error *error);
/* Says where it is, and opens it in the browser where that is asked for. NULL: there is none. */
void run_page_tell(const sl_show *page, const options *o);

#endif
