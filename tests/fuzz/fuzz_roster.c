/* fuzz_roster.c - rosters: host:port of each rank; and the lists of hosts that launchers read. */
#include <assert.h>

#include "launch/hostfile.h"
#include "starling/roster.h"
#include "text.h"

enum { RANKS = 4 };

static void list_hosts(const char *text) {
    sl_hostfile hosts = {0};
    sl_error error;
    uint64_t slots = 0;
    const int result = sl_hostfile_parse(&hosts, text, "input", RANKS, &error);
    assert(result <= 1 && (result == 1 || hosts.count == 0));
    for (size_t i = 0; i < hosts.count; i++) {
        assert(sl_hostfile_host(&hosts, i)[0] != '\0' && hosts.hosts[i].line > 0);
        slots += hosts.hosts[i].count;
    }
    assert(slots == hosts.slots);
    sl_hostfile_close(&hosts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = text_of(data, size);
    sl_roster *roster = NULL;
    sl_error error;
    if (text != NULL && sl_roster_parse(&roster, text, "input", &error) == 0)
        for (uint32_t i = 0; i < sl_roster_count(roster); i++)
            assert(sl_roster_host(roster, i)[0] != '\0' && sl_roster_port(roster, i) != 0);
    sl_roster_close(&roster);
    if (text != NULL)
        list_hosts(text);
    free(text);
    return 0;
}
