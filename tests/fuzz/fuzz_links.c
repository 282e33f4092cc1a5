/* fuzz_links.c - links files. What is taken survives being written and read back. */
#include <assert.h>

#include "starling/links.h"
#include "text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = text_of(data, size);
    sl_links *links = NULL, *again = NULL;
    sl_error error;
    if (text != NULL && sl_links_parse(&links, text, "input", &error) == 0) {
        char *json = sl_links_json(links);
        assert(json != NULL && sl_links_parse(&again, json, "again", &error) == 0);
        uint32_t last = sl_links_nodes(links) - 1;
        sl_link a = sl_links_get(links, 0, last), b = sl_links_get(again, last, 0);
        assert(a.bandwidth_mbit == b.bandwidth_mbit && a.latency_ms == b.latency_ms);
        free(json);
    }
    sl_links_close(&again);
    sl_links_close(&links);
    free(text);
    return 0;
}
