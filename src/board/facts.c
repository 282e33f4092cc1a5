/* facts.c - run.json, or run-RANK.json of agents by hand: who runs there, and how it has ended. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "board/state.h"

enum { HOST_BYTES = 256 };
static const char running[] = "running";

/* Another host's lock may not be seen here, on file systems of networks. */
bool sl_run_is_gone(int fd, const char *host) {
    char own[HOST_BYTES] = "";
    gethostname(own, sizeof own - 1);
    return host != NULL && strcmp(host, own) == 0 && flock(fd, LOCK_SH | LOCK_NB) == 0;
}

const char *sl_run_fact(const sl_run_facts *run, const char *name) {
    return json_string_value(json_object_get(run->about, name));
}

/* NULL: it is not there, or not whole. */
static json_t *read_one(char outcome[SL_OUTCOME_MAX], const char *folder, const char *name) {
    char path[SL_PATH_MAX + SL_TAIL_NAME_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    json_t *about = json_loadfd(fd, JSON_DISABLE_EOF_CHECK, NULL);
    const char *word = json_string_value(json_object_get(about, "outcome"));
    snprintf(outcome, SL_OUTCOME_MAX, "%s", word != NULL ? word : "unknown");
    if (strcmp(outcome, running) == 0 &&
        sl_run_is_gone(fd, json_string_value(json_object_get(about, "host"))))
        snprintf(outcome, SL_OUTCOME_MAX, "killed");
    close(fd);
    return about;
}

/* Of several agents' outcomes the one that matters more is the run's. */
static int weight_of(const char *outcome) {
    return strcmp(outcome, running) == 0 ? 2 : strcmp(outcome, "done") != 0;
}

static void take_agent(sl_run_facts *run, const char *folder, const char *name, uint32_t rank) {
    char outcome[SL_OUTCOME_MAX];
    json_t *about = read_one(outcome, folder, name);
    if (about == NULL)
        return;
    const bool is_first = run->about == NULL;
    run->rank = is_first ? (int64_t)rank : -1;
    if (is_first || weight_of(outcome) > weight_of(run->outcome))
        memcpy(run->outcome, outcome, sizeof outcome);
    if (is_first)
        run->about = about;
    else
        json_decref(about);
}

static int is_agent(const struct dirent *entry) {
    unsigned rank;
    char again[SL_TAIL_NAME_MAX];
    if (sscanf(entry->d_name, "run-%u.json", &rank) != 1)
        return 0;
    snprintf(again, sizeof again, "run-%u.json", rank);
    return strcmp(entry->d_name, again) == 0;
}

static int read_agents(sl_run_facts *run, const char *folder, sl_error *error) {
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, is_agent, versionsort);
    if (count < 0)
        return sl_fail(error, errno == ENOMEM ? SL_ENOMEM : SL_EFILE,
                       "%s: is no folder that can be read: %s", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        take_agent(run, folder, entries[i]->d_name, (uint32_t)atoll(entries[i]->d_name + 4));
        free(entries[i]);
    }
    free(entries);
    return 0;
}

static double seconds_of(const char *text) {
    struct tm utc = {0};
    return text != NULL && strptime(text, "%Y-%m-%dT%H:%M:%SZ", &utc) != NULL ? (double)timegm(&utc)
                                                                              : 0;
}

int sl_run_facts_read(sl_run_facts *run, const char *folder, sl_error *error) {
    sl_run_facts now = {.outcome = "unknown", .rank = -1};
    now.about = read_one(now.outcome, folder, "run.json");
    const int result = now.about == NULL ? read_agents(&now, folder, error) : 0;
    if (result != 0)
        return result;
    now.started_s = seconds_of(sl_run_fact(&now, "started"));
    json_decref(run->about);
    *run = now;
    return 0;
}
