/* page.h - what an agent does at this moment, as JSON; see starling/monitor.h. */
#ifndef SL_PAGE_H
#define SL_PAGE_H

#include "starling/monitor.h"

/* malloc'ed; NULL: out of memory. in_folder: for those who may use the run's folder, how roster and
 * keys were read again, too. */
char *sl_page_write(const sl_monitor_subject *subject, bool in_folder);

#endif
