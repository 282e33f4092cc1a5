/* fuzz_topology.c - topology files, and files of links, which an input may be, too. What is taken
 * survives being written and read back; a topology has rows that sum to 1 where they should. */
#include <assert.h>

#include "starling/links.h"
#include "starling/topology.h"
#include "text.h"

/* Beyond 9 nodes where opening is an optimization, beyond 99 otherwise. */
static bool is_slow(const char *text) {
    bool optimized = strstr(text, "matcha") || strstr(text, "fmmc") || strstr(text, "fdla");
    return has_number_above(text, optimized ? 1 : 2);
}

static void try_links(const char *text) {
    sl_links *links = NULL, *again = NULL;
    sl_error error;
    if (sl_links_parse(&links, text, "input", &error) == 0) {
        char *json = sl_links_json(links);
        assert(json != NULL && sl_links_parse(&again, json, "again", &error) == 0);
        char *json_again = sl_links_json(again);
        assert(json_again != NULL && strcmp(json, json_again) == 0);
        free(json_again);
        free(json);
    }
    sl_links_close(&again);
    sl_links_close(&links);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = text_of(data, size);
    sl_topology *topology = NULL, *again = NULL;
    sl_error error;
    if (text != NULL)
        try_links(text);
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
