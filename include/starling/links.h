/* links.h - how fast each pair of nodes can talk: bandwidth and latency of the links of a cluster.
 *
 * A links file is JSON, with the names and units of the experiment's network.* keys:
 *
 *     { "nodes": 4, "bandwidth_mbit": 10000, "latency_ms": 0.05, "links": [[0, 1, 100, 20], [2, 3,
 *       1000]] }
 *
 * Every pair has the bandwidth and latency of the file's first keys (both 0 unless given) but those
 * listed as [i, j, bandwidth_mbit] or [i, j, bandwidth_mbit, latency_ms]. A link has the same
 * bandwidth and latency in both directions.
 *
 * How they carry a round: all copies that a node sends leave by one port, one after the other, and
 * all that it gets come by one. Where a pair's link is slower than the port, a copy passes that
 * beside the others. So say starling/analysis.h in a formula, and starling/timeline.h event by
 * event.
 */
#ifndef STARLING_LINKS_H
#define STARLING_LINKS_H

#include <stddef.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_LINK_BANDWIDTH_MBIT_MAX 1e9
#define SL_LINK_LATENCY_MS_MAX 1e6

typedef struct sl_link {
    double bandwidth_mbit; /* in 10^6 bit/s, each direction; 0: infinite */
    double latency_ms;     /* from the last bit out to the last bit in */
} sl_link;

typedef struct sl_links sl_links;

/* From JSON text, or from a file. `where` names the source in errors. On failure *out is
 * untouched. */
SL_API int sl_links_parse(sl_links **out, const char *json, const char *where, sl_error *error);
SL_API int sl_links_load(sl_links **out, const char *path, sl_error *error);
/* Equal links between all `nodes`. */
SL_API int sl_links_uniform(sl_links **out, uint32_t nodes, sl_link link, sl_error *error);
SL_API void sl_links_close(sl_links **links);

SL_API uint32_t sl_links_nodes(const sl_links *links);
/* The link of the pair {i, j}, both below sl_links_nodes; {0, 0} if i = j. O(log of the listed
 * links). */
SL_API sl_link sl_links_get(const sl_links *links, uint32_t i, uint32_t j);
/* JSON text; sl_links_parse reads equal links from it. malloc'ed, the caller frees. NULL: out of
 * memory. */
SL_API char *sl_links_json(const sl_links *links);

#ifdef __cplusplus
}
#endif
#endif
