/* roster.h - what the agent alone may ask a roster; see starling/roster.h. */
#ifndef SL_ROSTER_H
#define SL_ROSTER_H

#include <sys/socket.h>

#include "starling/roster.h"

/* As sl_roster_resolve; also ends with SL_ESTOPPED once stop_fd is readable. */
int sl_roster_find_addresses(sl_roster *roster, double timeout_s, int stop_fd,
                             const volatile int *stop, sl_error *error);
/* Of a rank, with its port; after it was looked up. */
struct sockaddr_storage sl_roster_address(const sl_roster *roster, uint32_t rank);

#endif
