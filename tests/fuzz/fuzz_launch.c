/* fuzz_launch.c - what comes from outside before a run. The first byte says what the rest is: a
 * greeting, an answer with a roster, a roster or a launcher's list of hosts, or the environment of
 * a process, a line for each variable. */
#include <assert.h>

#include "launch/greeting.h"
#include "launch/hostfile.h"
#include "launch/launcher.h"
#include "launch/rendezvous.h"
#include "starling/launch.h"
#include "text.h"

enum { VARIABLES_MAX = 32, TEXT_MAX = 4096, NODES = 4 };

static void greet(const uint8_t *data, size_t size) {
    sl_greeting greeting;
    uint8_t again[SL_GREETING_BYTES_MAX];
    const size_t bytes = sl_greeting_decode(&greeting, data, size);
    if (bytes == 0 || bytes > size)
        return;
    assert(sl_greeting_encode(&greeting, again) == bytes && memcmp(again, data, bytes) == 0);
    assert(strpbrk(greeting.host, " \n") == NULL);
}

static void answer(const uint8_t *data, size_t size) {
    sl_answer a;
    sl_error error;
    sl_roster *roster = NULL;
    const size_t bytes = sl_answer_decode(&a, data, size, TEXT_MAX);
    assert(bytes <= SL_ANSWER_HEADER_BYTES + TEXT_MAX + SL_SUM_BYTES);
    if (bytes == 0 || bytes > size)
        return;
    char *text = text_of(a.text, a.bytes);
    uint64_t run;
    const char *lines = text != NULL ? sl_identity_read(text, &run) : NULL;
    if (lines != NULL && sl_roster_parse(&roster, lines, "roster", &error) == 0)
        assert(sl_roster_count(roster) > 0);
    sl_roster_close(&roster);
    free(text);
}

static void find(const uint8_t *data, size_t size) {
    char *text = text_of(data, size), *save = NULL, *variables[VARIABLES_MAX + 1] = {NULL};
    sl_launch *launch = NULL;
    sl_error error;
    if (text != NULL && strchr(text, '/') == NULL) { /* a roster may be any file */
        size_t count = 0;
        for (char *v = strtok_r(text, "\n", &save); v != NULL && count < VARIABLES_MAX;
             v = strtok_r(NULL, "\n", &save))
            variables[count++] = v;
        const sl_launch_settings settings = {.environment = variables};
        if (sl_launch_find(&launch, &settings, NODES, &error) == 0)
            assert(sl_launch_rank(launch) < NODES && sl_launch_describe(launch)[0] != '\0');
        else
            assert(error.code != 0 && error.text[0] != '\0');
    }
    sl_launch_close(&launch);
    free(text);
}

static void list_hosts(const char *text) {
    sl_hostfile hosts = {0};
    sl_error error;
    uint64_t slots = 0;
    const int result = sl_hostfile_parse(&hosts, text, "input", NODES, &error);
    assert(result <= 1 && (result == 1 || hosts.count == 0));
    for (size_t i = 0; i < hosts.count; i++) {
        assert(sl_hostfile_host(&hosts, i)[0] != '\0' && hosts.hosts[i].line > 0);
        slots += hosts.hosts[i].count;
    }
    assert(slots == hosts.slots);
    sl_hostfile_close(&hosts);
}

static void list(const uint8_t *data, size_t size) {
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
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    if (data[0] == 'g')
        greet(data + 1, size - 1);
    else if (data[0] == 'a')
        answer(data + 1, size - 1);
    else if (data[0] == 'r')
        list(data + 1, size - 1);
    else
        find(data + 1, size - 1);
    return 0;
}
