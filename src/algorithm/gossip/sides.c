/* sides.c - see sides.h. */
#include "algorithm/gossip/sides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 24 }; /* nodes of a cycle */
static const uint32_t NOBODY = UINT32_MAX;

static uint32_t depth_of(const uint32_t *parent, uint32_t i) {
    uint32_t depth = 0;
    for (; parent[i] != i; i = parent[i])
        depth++;
    return depth;
}

/* a and b are neighbours on one side: the cycle leads up from both to where they meet. */
static int show_cycle(const uint32_t *parent, uint32_t a, uint32_t b, sl_error *error) {
    uint32_t down[SHOWN], count = 0;
    char text[16 * SHOWN] = "";
    size_t used = 0;
    while (depth_of(parent, a) > depth_of(parent, b))
        a = parent[a];
    const uint32_t first = a;
    for (; a != b; a = parent[a], b = parent[b]) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%u-", a);
        if (count < SHOWN / 2)
            down[count++] = b;
        if (used > sizeof text / 2)
            break;
    }
    used += (size_t)snprintf(text + used, sizeof text - used, "%s", a == b ? "" : "...-");
    if (a == b)
        used += (size_t)snprintf(text + used, sizeof text - used, "%u-", a);
    while (count > 0)
        used += (size_t)snprintf(text + used, sizeof text - used, "%u-", down[--count]);
    return sl_fail(error, SL_EINVAL, "a cycle of odd length: %s%u", text, first);
}

int sl_sides(uint8_t *side, const sl_topology *topology, sl_error *error) {
    const uint32_t nodes = sl_topology_nodes(topology);
    uint32_t *parent = malloc((nodes + 1u) * sizeof *parent),
             *queue = malloc((nodes + 1u) * sizeof *queue);
    int result = parent != NULL && queue != NULL
                     ? 0
                     : sl_fail(error, SL_ENOMEM, "out of memory for %u nodes", nodes);
    for (uint32_t i = 0; i < nodes && result == 0; i++)
        parent[i] = NOBODY;
    uint32_t ends = 0;
    if (result == 0) {
        parent[0] = 0;
        side[0] = 0;
        queue[ends++] = 0;
    }
    for (uint32_t at = 0; at < ends && result == 0; at++) {
        const uint32_t i = queue[at];
        const sl_row row = sl_topology_in(topology, 1, i);
        for (uint32_t k = 0; k < row.count && result == 0; k++) {
            const uint32_t j = row.peers[k];
            if (parent[j] == NOBODY) {
                parent[j] = i;
                side[j] = !side[i];
                queue[ends++] = j;
            } else if (side[j] == side[i])
                result = show_cycle(parent, i, j, error);
        }
    }
    free(parent);
    free(queue);
    return result;
}
