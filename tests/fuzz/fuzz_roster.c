/* fuzz_roster.c - rosters: host:port of each rank. */
#include <assert.h>

#include "starling/roster.h"
#include "text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = text_of(data, size);
    sl_roster *roster = NULL;
    sl_error error;
    if (text != NULL && sl_roster_parse(&roster, text, "input", &error) == 0)
        for (uint32_t i = 0; i < sl_roster_count(roster); i++)
            assert(sl_roster_host(roster, i)[0] != '\0' && sl_roster_port(roster, i) != 0);
    sl_roster_close(&roster);
    free(text);
    return 0;
}
