/* page.h - what an agent does at this moment, as JSON; see starling/monitor.h. */
#ifndef SL_PAGE_H
#define SL_PAGE_H

#include "starling/agent.h"

/* malloc'ed; NULL: out of memory. in_folder: for those who may use the run's folder, how roster and
 * keys were read again, too. */
char *sl_page_write(sl_agent *agent, uint32_t rank, uint32_t nodes, bool in_folder);

#endif
