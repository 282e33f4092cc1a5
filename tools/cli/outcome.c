/* outcome.c - see outcome.h. */
#include "cli/outcome.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void outcome_path(char out[OUTCOME_PATH_MAX], const char *folder, int64_t rank) {
    if (rank < 0)
        snprintf(out, OUTCOME_PATH_MAX, "%s/run.json", folder);
    else
        snprintf(out, OUTCOME_PATH_MAX, "%s/run-%lld.json", folder, (long long)rank);
}

static int is_outcome(const struct dirent *entry) {
    unsigned rank;
    char again[32];
    if (sscanf(entry->d_name, "run-%u.json", &rank) != 1)
        return strcmp(entry->d_name, "run.json") == 0;
    snprintf(again, sizeof again, "run-%u.json", rank);
    return strcmp(entry->d_name, again) == 0;
}

static void tell(const char *name, int fd, const json_t *about) {
    const char *word = json_string_value(json_object_get(about, "outcome"));
    const char *why = json_string_value(json_object_get(about, "why"));
    char who[32] = "the run";
    unsigned rank;
    if (sscanf(name, "run-%u.json", &rank) == 1)
        snprintf(who, sizeof who, "agent %u", rank);
    if (word != NULL && strcmp(word, OUTCOME_CRASHED) == 0)
        tell_line("%s crashed: %s", who, why != NULL ? why : "");
    else if (word != NULL && strcmp(word, OUTCOME_RUNNING) == 0 &&
             sl_run_is_gone(fd, json_string_value(json_object_get(about, "host"))))
        tell_line("%s ended without a word: its process is gone (killed, or with its host), and "
                  "%s still says \"running\"",
                  who, name);
}

static void look_at(const char *folder, const char *name) {
    char path[OUTCOME_PATH_MAX + sizeof((struct dirent *)0)->d_name];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    json_t *about = fd >= 0 ? json_loadfd(fd, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    if (about != NULL)
        tell(name, fd, about);
    json_decref(about);
    if (fd >= 0)
        close(fd);
}

void outcomes_tell(const char *folder) {
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, is_outcome, versionsort);
    for (int i = 0; i < count; i++) {
        look_at(folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}
