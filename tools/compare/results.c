/* results.c - see results.h. */
#include "compare/results.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/outcome.h"

enum { PATH_BYTES = SL_PATH_MAX + 32 };

static double number_at(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* ---- how it ended ---- */

static ended ended_of(const char *outcome, bool is_held) {
    static const struct {
        const char *word;
        ended ended;
    } words[] = {{OUTCOME_DONE, RUN_DONE},
                 {OUTCOME_DIVERGED, RUN_DIVERGED},
                 {"stopped", RUN_STOPPED},
                 {"saved", RUN_STOPPED}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(outcome, words[i].word) == 0)
            return words[i].ended;
    if (strcmp(outcome, OUTCOME_RUNNING) == 0)
        return is_held ? RUN_UNDER_WAY : RUN_KILLED;
    return RUN_FAILED;
}

ended results_look(const char *folder, char *why, uint64_t *diverged_in) {
    char path[OUTCOME_PATH_MAX];
    outcome_path(path, folder, -1);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return RUN_ABSENT;
    const bool is_held = flock(fd, LOCK_SH | LOCK_NB) != 0;
    json_t *about = json_loadfd(fd, JSON_DISABLE_EOF_CHECK, NULL);
    const char *outcome = json_string_value(json_object_get(about, "outcome")),
               *text = json_string_value(json_object_get(about, "why"));
    const ended result = outcome != NULL ? ended_of(outcome, is_held) : RUN_FAILED;
    if (why != NULL)
        snprintf(why, SL_ERROR_TEXT_MAX, "%s", text != NULL ? text : "");
    if (diverged_in != NULL)
        *diverged_in = (uint64_t)json_integer_value(json_object_get(about, "diverged_in"));
    json_decref(about);
    close(fd);
    return result;
}

/* ---- milestones ---- */

static milestone milestone_of(const json_t *line) {
    return (milestone){.round = (uint64_t)json_integer_value(json_object_get(line, "round")),
                       .loss = number_at(line, "test_loss"),
                       .accuracy = number_at(line, "accuracy"),
                       .distance = number_at(line, "consensus_distance"),
                       .bytes_sent = number_at(line, "bytes_sent"),
                       .virtual_s = number_at(line, "virtual_s")};
}

/* A line that is not whole is the last one of a run that was killed, or is under way. */
static int read_milestones(attempt *out, const char *folder, sl_error *error) {
    char path[PATH_BYTES], *line = NULL;
    size_t room = 0, bytes = 0;
    int result = 0;
    snprintf(path, sizeof path, "%s/consensus.jsonl", folder);
    FILE *file = fopen(path, "re");
    while (file != NULL && result == 0 && getline(&line, &bytes, file) > 0) {
        json_t *object = json_loads(line, 0, NULL);
        if (object != NULL && out->milestone_count == room) {
            room = room > 0 ? 2 * room : 64;
            milestone *grown = realloc(out->milestones, room * sizeof *grown);
            if (grown == NULL)
                result = sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
            else
                out->milestones = grown;
        }
        if (object != NULL && result == 0)
            out->milestones[out->milestone_count++] = milestone_of(object);
        json_decref(object);
    }
    if (file != NULL)
        fclose(file);
    free(line);
    return result;
}

uint64_t results_round(const char *folder) {
    attempt a = {.seed = 0};
    uint64_t round = 0;
    if (read_milestones(&a, folder, NULL) == 0 && a.milestone_count > 0)
        round = a.milestones[a.milestone_count - 1].round;
    results_close(&a);
    return round;
}

/* ---- the summary ---- */

static void take_record(sl_record *out, const json_t *node) {
    const json_t *seconds = json_object_get(node, "seconds");
    *out = (sl_record){.times = {.gradient = number_at(seconds, "gradient"),
                                 .encode = number_at(seconds, "encode"),
                                 .wait = number_at(seconds, "wait"),
                                 .combine = number_at(seconds, "combine")}};
    out->round.round = (uint64_t)json_integer_value(json_object_get(node, "round"));
}

static int read_summary(attempt *out, const char *folder, const task_facts *facts,
                        sl_error *error) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/summary.json", folder);
    json_t *root = json_load_file(path, 0, NULL), *all = json_object_get(root, "per_node");
    const size_t count = json_array_size(all);
    sl_record *records = calloc(count + 1, sizeof *records);
    int result = 0;
    if (count == 0)
        result = sl_fail(error, SL_EFILE, "%s: is no summary of a run", path);
    else if (records == NULL)
        result = sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    for (size_t i = 0; i < count && result == 0; i++) {
        take_record(&records[i], json_array_get(all, i));
        const sl_times *t = &records[i].times;
        out->times.gradient += t->gradient / (double)count;
        out->times.encode += t->encode / (double)count;
        out->times.wait += t->wait / (double)count;
        out->times.combine += t->combine / (double)count;
    }
    if (result == 0)
        out->cost = forecast_measured(records, count, &facts->task);
    out->seconds = number_at(root, "seconds");
    free(records);
    json_decref(root);
    return result;
}

static int read_timeline(attempt *out, const char *folder, sl_error *error) {
    char path[TIMELINE_PATH_MAX];
    timeline_path(path, folder);
    return access(path, F_OK) == 0 ? sl_timeline_read(&out->timeline, path, error) : 0;
}

int results_read(attempt *out, const char *folder, const task_facts *facts, sl_error *error) {
    *out = (attempt){.seed = out->seed};
    out->ended = results_look(folder, out->why, &out->diverged_in);
    if (out->ended == RUN_ABSENT)
        return 0;
    int result = read_milestones(out, folder, error);
    if (out->ended != RUN_DONE)
        return result;
    if (result == 0 && out->milestone_count == 0)
        result =
            sl_fail(error, SL_EFILE, "%s: has no consensus.jsonl, which `compare` reads", folder);
    if (result == 0)
        result = read_summary(out, folder, facts, error);
    return result == 0 ? read_timeline(out, folder, error) : result;
}

void results_close(attempt *a) {
    free(a->milestones);
    for (size_t l = 0; l < LINKS_MAX; l++)
        free(a->seconds_at[l]);
    sl_timeline_close(&a->timeline);
    *a = (attempt){.seed = a->seed};
}
