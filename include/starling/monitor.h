/* monitor.h - what an agent does at this moment, for whoever looks from outside: over HTTP, at a
 * Unix socket in a folder, or at a port.
 *
 * A thread of its own answers, so that an agent whose loop is held up is still seen. Nothing can be
 * changed through it. /metrics is for Prometheus (text 0.0.4; docs/several-machines.md has the
 * names). /livez and /readyz say in their status, 200 or 503, whether the agent's loop goes round,
 * and whether it trains with all its neighbours; with ?verbose, or if not, also why. /status is
 * JSON:
 *
 *     {"rank": 3, "doing": "exchanges", "round": 813, "still_s": 40.9, "nodes": 8,
 *      "view": 2, "members": 7, "rests": false, "lost": [{"rank": 6, "member": false,
 *      "since_s": 41.3}],
 *      "waits_for": "edge 4->3, round 813: part 0 of 1 has not come",
 *      "root": {"rank": 5, "doing": "computes", "round": 812, "still_s": 41.2},
 *      "neighbours": [{"rank": 4, "connected": true,
 *                      "protection": "TLS 1.3, key, AES-256-GCM", "memory": false,
 *                      "awaited": true, "sent_bytes": 81920, "received_bytes": 81984,
 *                      "connections": 1, "waited_s": 0.35, "round_trip_s": 0.0004,
 *                      "said": {"rank": 4, "doing": "exchanges", "round": 812, "still_s": 40.8,
 *                               "ago_s": 0.1, "waits_for": 5, "root": {...}}}, ...]}
 *
 * `members` is how many the view has, from which `lost` have gone, or, where they are still
 * `member`, may come back in time; `rests`: too few are left to go on.
 * `root` is whom it waits for in the end, as neighbours have said; null: nobody, or not known yet.
 * `protection` is null where it is not connected, `round_trip_s` where it is not known; see
 * sl_agent_edge.
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

/* Of which agent; borrowed until close. */
typedef struct sl_monitor_subject {
    sl_agent *agent;
    const sl_experiment *experiment;
    uint64_t run_id; /* 0: none */
    uint32_t rank, nodes;
    bool has_loss; /* its task tells that of a batch, as a session's does not */
} sl_monitor_subject;

/* Answers at the folder's socket, which replaces one that is there. Only who may use the folder can
 * use it. SL_EFILE: the socket cannot be made. */
SL_API int sl_monitor_open(sl_monitor **out, const sl_monitor_subject *subject, const char *folder,
                           sl_error *error);
struct sl_http_route;
/* Where else it answers. */
typedef struct sl_monitor_place {
    const char *at;    /* HOST:PORT, where {rank} stands for the rank; a name is looked up */
    const char *key;   /* begins errors: "monitor.listen" */
    bool is_public;    /* or else on loopback only: */
    const char *allow; /* the setting that lets it be public, as errors name it */
    bool is_any_port;  /* port 0 is a free one */
    /* what else is there, such as a run's page (starling/show.h): (route_count) borrowed */
    const struct sl_http_route *routes;
    size_t route_count;
} sl_monitor_place;
/* SL_EINVAL: the place is none, is taken, or beyond loopback without is_public. */
SL_API int sl_monitor_listen(sl_monitor **out, const sl_monitor_subject *subject,
                             const sl_monitor_place *place, sl_error *error);
/* Could an agent of this rank listen there? Errors as above. Nothing is left behind. */
SL_API int sl_monitor_try(uint32_t rank, uint32_t nodes, const sl_monitor_place *place,
                          sl_error *error);
/* Where the subject's neighbours answer, if they listen as it does: at their hosts of the roster,
 * whose names were looked up. *out (returned: how many) is malloc'ed. */
SL_API size_t sl_monitor_neighbours(sl_asked_port **out, const sl_monitor_subject *subject,
                                    const sl_monitor_place *place, const sl_roster *roster);
/* 0: at none. */
SL_API uint16_t sl_monitor_port(const sl_monitor *monitor);
/* Removes the socket too. */
SL_API void sl_monitor_close(sl_monitor **monitor);

#ifdef __cplusplus
}
#endif
#endif
