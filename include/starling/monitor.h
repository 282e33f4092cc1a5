/* monitor.h - what an agent does at this moment, for whoever looks from outside: JSON over HTTP, at
 * a Unix socket in a folder, or at a port.
 *
 * A thread of its own answers, so that an agent whose loop is held up is still seen. GET /status is
 * all that it knows; nothing can be changed through it:
 *
 *     {"rank": 3, "doing": "exchanges", "round": 813, "still_s": 40.9, "nodes": 8,
 *      "view": 2, "members": 7, "rests": false, "lost": [{"rank": 6, "member": false,
 *      "since_s": 41.3}],
 *      "waits_for": "edge 4->3, round 813: part 0 of 1 has not come",
 *      "root": {"rank": 5, "doing": "computes", "round": 812, "still_s": 41.2},
 *      "neighbours": [{"rank": 4, "connected": true,
 *                      "protection": "TLS 1.3, key, AES-256-GCM", "memory": false,
 *                      "awaited": true,
 *                      "said": {"rank": 4, "doing": "exchanges", "round": 812, "still_s": 40.8,
 *                               "ago_s": 0.1, "waits_for": 5, "root": {...}}}, ...]}
 *
 * `members` is how many the view has, from which `lost` have gone, or, where they are still
 * `member`, may come back in time; `rests`: too few are left to go on.
 * `root` is whom it waits for in the end, as neighbours have said; null: nobody, or not known yet.
 * `protection` is null where it is not connected; see sl_agent_edge.
 * At the folder's socket there is also "reload", how roster and keys were read again the last time:
 * {"count": 2, "well": true, "said": "rank 4 is new; the key is as before"}; null: never.
 *
 *     $ curl --unix-socket RUN/status-5.sock http://agent/status
 */
#ifndef STARLING_MONITOR_H
#define STARLING_MONITOR_H

#include "starling/agent.h"
#include "starling/asking.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_monitor sl_monitor;

/* Answers for the agent (borrowed until close) of this rank at the folder's socket, which replaces
 * one that is there. Only who may use the folder can use it. SL_EFILE: the socket cannot be made.
 */
SL_API int sl_monitor_open(sl_monitor **out, sl_agent *agent, uint32_t rank, uint32_t nodes,
                           const char *folder, sl_error *error);
/* Answers at HOST:PORT, where {rank} stands for the rank; looks up a name. SL_EINVAL: beyond
 * loopback without is_public, or the place is none, or taken; errors begin with
 * monitor.listen. */
SL_API int sl_monitor_listen(sl_monitor **out, sl_agent *agent, uint32_t rank, uint32_t nodes,
                             const char *place, bool is_public, sl_error *error);
/* Removes the socket too. */
SL_API void sl_monitor_close(sl_monitor **monitor);

#ifdef __cplusplus
}
#endif
#endif
