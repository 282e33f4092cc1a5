/* health.h - is an agent well? For a supervisor, by the habits of Kubernetes. */
#ifndef SL_HEALTH_H
#define SL_HEALTH_H

#include "starling/monitor.h"

typedef enum sl_health {
    SL_HEALTH_LIVES,   /* its loop goes round: else only a new process helps */
    SL_HEALTH_IS_READY /* and it trains with all its neighbours */
} sl_health;

/* malloc'ed; NULL: out of memory. "ok", or with `verbose`, or if it is not well, a line for each
 * check: "[+]loop ok", "[-]neighbours failed: 1 of 2 is connected; not 5". */
char *sl_health_write(const sl_monitor_subject *of, sl_health which, bool verbose, bool *well);

#endif
