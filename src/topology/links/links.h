/* links.h - what the topology file needs of links beside the public reading: from and to a JSON
 * value, a copy to keep, and how long a message takes. */
#ifndef SL_TOPOLOGY_LINKS_H
#define SL_TOPOLOGY_LINKS_H

#include <jansson.h>
#include <stdbool.h>

#include "starling/links.h"

int sl_links_read(sl_links **out, json_t *root, sl_error *error);
json_t *sl_links_value(const sl_links *links);
sl_links *sl_links_copy(const sl_links *links); /* NULL without memory */
/* Of node i's port, in 10^6 bit/s: of the file's first key, or of its fastest listed link, if that
 * is faster; 0: infinite. */
double sl_links_port(const sl_links *links, uint32_t i);
bool sl_links_alike(const sl_links *links); /* none is listed */
/* Of one message of so many bytes from i to j: latency and travel. */
double sl_links_seconds(const sl_links *links, uint32_t i, uint32_t j, double bytes);

#endif
