/* fuzz_topology.c - topology files. What is taken has rows that sum to 1 where they should, and
 * survives being written and read back. */
#include <assert.h>

#include "starling/topology.h"
#include "text.h"

/* Beyond 9 nodes where opening is an optimization, beyond 99 otherwise. */
static bool is_slow(const char *text) {
    bool optimized = strstr(text, "matcha") || strstr(text, "fmmc") || strstr(text, "fdla");
    return has_number_above(text, optimized ? 1 : 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = text_of(data, size);
    sl_topology *topology = NULL, *again = NULL;
    sl_error error;
    if (text != NULL && !is_slow(text) &&
        sl_topology_parse(&topology, text, "input", &error) == 0) {
        sl_stochasticity s = sl_topology_stochasticity(topology);
        assert(s.row || s.column);
        char *json = sl_topology_json(topology);
        assert(json != NULL && sl_topology_parse(&again, json, "again", &error) == 0);
        assert(sl_topology_hash(topology) == sl_topology_hash(again));
        free(json);
    }
    sl_topology_close(&again);
    sl_topology_close(&topology);
    free(text);
    return 0;
}
