/* tool.c - what the subcommands share; see tool.h. */
#include "cli/tool.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/file_kind.h"
#include "cli/log.h"
#include "cli/text_table.h"

double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int take_link(link_profile *out, const char *text) {
    char *colon, *end = NULL;
    link_profile l = {.bandwidth_mbit = strtod(text, &colon)};
    if (colon != text && *colon == ':')
        l.latency_ms = strtod(colon + 1, &end);
    bool good = end != NULL && end != colon + 1 && *end == '\0' && l.bandwidth_mbit > 0 &&
                l.bandwidth_mbit <= 1e9 && l.latency_ms >= 0 && l.latency_ms <= 1e6;
    if (!good) {
        complain("--link %s: expected MBIT:MS, bandwidth in Mbit/s above 0 and latency in ms, such "
                 "as 100:5",
                 text);
        return TOOL_USAGE;
    }
    *out = l;
    return TOOL_OK;
}

/* ---- options that several commands take ---- */

void options_set_defaults(void *request) {
    options *o = request;
    o->report_fd = -1;
}

void options_take_files(options *o, char *const *files, size_t count) {
    o->files = files;
    o->file_count = count;
    o->file = count > 0 ? files[0] : NULL;
}

static int take_override(void *request, const command_option *row, const char *text) {
    (void)row;
    options *o = request;
    if (o->override_count == OVERRIDES_MAX) {
        complain("--set %s: at most %d keys can be set", text, OVERRIDES_MAX);
        return TOOL_USAGE;
    }
    o->overrides[o->override_count++] = text;
    return TOOL_OK;
}

int options_take_out(void *request, const command_option *row, const char *path) {
    (void)row;
    ((options *)request)->out = path;
    if (strlen(path) < SL_PATH_MAX)
        return TOOL_OK;
    complain("--out: the path has %zu characters, at most %d are allowed", strlen(path),
             SL_PATH_MAX - 1);
    return TOOL_USAGE;
}

const command_option option_set = {
    "set",
    .argument = "KEY=VALUE",
    .repeats = true,
    .help = "sets a key of the experiment, such as optimizer.learning_rate=0.2",
    .take = take_override,
    .offer = OFFER_SETTING,
};
const command_option option_wide = OPTION_WIDE(options);
const command_option option_out = {
    "out",
    .argument = "DIR",
    .otherwise = "runs/NAME-YYYYmmdd-HHMMSS",
    .help = "the run folder",
    .take = options_take_out,
    .offer = OFFER_FOLDER,
};

/* ---- an experiment ---- */
void trial_memory(const trial *t, sl_run_memory *out) {
    sl_experiment_memory(out, t->experiment, &t->plan, t->task.dimension,
                         sl_learner_memory(t->learner));
}

int trial_check_memory(const trial *t, const char *where, bool agents, sl_error *error) {
    sl_run_memory m;
    trial_memory(t, &m);
    const size_t all = agents ? m.agents : m.simulator, process = agents ? m.agent : m.simulator;
    if (m.available > 0 && all > m.available)
        return sl_fail(error, SL_ENOMEM,
                       "%s: %u %s need %.2f GB of memory, and this host has %.2f GB; use fewer "
                       "topology.nodes, a smaller model, or several hosts (starling check says "
                       "what takes how much)",
                       where, t->nodes, agents ? "agents" : "simulated nodes", 1e-9 * (double)all,
                       1e-9 * (double)m.available);
    if (m.limit > 0 && process > m.limit)
        return sl_fail(error, SL_ENOMEM,
                       "%s: %s needs %.2f GB of memory, and the limits on a process (ulimit -v, "
                       "ulimit -d) leave %.2f GB; raise them, or use a smaller model%s",
                       where, agents ? "an agent" : "the simulator", 1e-9 * (double)process,
                       1e-9 * (double)m.limit, agents ? "" : " or fewer topology.nodes");
    return 0;
}

int trial_name_path(const trial *t, char note[SL_PATH_NOTE_MAX], sl_error *error) {
    bool direct;
    if (t->experiment->faults.count > 0)
        return sl_fail(error, SL_EINVAL,
                       "faults: agents meet real ones, and only the simulator plays them; take "
                       "`starling sim`, or leave faults out");
    /* libfabric need not load any other provider; one of them catches signals. */
    const char *provider = t->experiment->transport.provider;
    setenv("FI_PROVIDER", strcmp(provider, "libfabric-tcp") == 0 ? "tcp" : provider, 0);
    return sl_agent_find_path(t->experiment, &direct, note, error);
}

int trial_find_path(const trial *t, const options *o, sl_error *error) {
    char note[SL_PATH_NOTE_MAX];
    const int result = trial_name_path(t, note, error);
    if (result == 0 && note[0] != '\0' && o->report_fd < 0)
        complain("%s", note);
    return result;
}

int trial_check_key(const sl_experiment *e, sl_error *error) {
    sl_credentials *credentials = NULL;
    sl_authority_ends ends;
    if (strstr(e->security.key, "{rank}") != NULL) /* each agent's own */
        return sl_security_look(&e->security, &ends, error);
    int result = sl_security_load(&credentials, &e->security, -1, error);
    sl_credentials_close(&credentials);
    return result;
}

void warn_of_keys(const sl_experiment *e) {
    const char *text = e->warnings;
    for (size_t length; *text != '\0'; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        complain("%.*s", (int)length, text);
    }
}

void tell_wrapped(const char *text, bool wide) {
    if (log_is_json())
        tell_line("%s", text);
    else
        print_wrapped("", text, output_width(wide));
}

void say_weights(const sl_experiment *e) {
    char text[SL_PLAN_TEXT_MAX];
    sl_experiment_say_weights(e, text, sizeof text);
    if (text[0] != '\0')
        tell_wrapped(text, false);
}

int trial_prepare(trial *t, bool quiet, sl_error *error) {
    const sl_experiment *e = t->experiment;
    char note[SL_DEVICE_TEXT_MAX];
    int result = sl_device_find(e->device, note, error);
    if (result == 0 && note[0] != '\0' && !quiet)
        complain("%s", note);
    if (result == 0 && t->learner == NULL) {
        sl_learner_settings settings = sl_experiment_learner(e);
        result = sl_learner_open(&t->learner, &settings, error);
    }
    if (result != 0)
        return result;
    t->task = sl_learner_task(t->learner);
    t->nodes = sl_topology_nodes(e->topology);
    const sl_shapes shapes = sl_task_shapes(&t->task);
    result = sl_algorithm_check_shapes(&e->algorithm, &shapes, error);
    if (result != 0)
        return result;
    result = sl_experiment_plan(&t->plan, e, &t->task, error);
    return result == 0 ? sl_experiment_sending(&t->sending, e, &t->plan, &t->task, error) : result;
}

int trial_open(trial *out, const options *o, sl_error *error) {
    trial t = {0};
    int result = refuse_topology_file(o->file, error);
    if (result == 0)
        result = sl_experiment_load(&t.experiment, o->file, o->overrides, o->override_count, error);
    if (result == 0)
        result = trial_prepare(&t, o->report_fd >= 0, error);
    if (result == 0)
        *out = t;
    else
        trial_close(&t);
    return result;
}

void trial_warn(const trial *t) {
    sl_warnings w;
    warn_of_keys(t->experiment);
    sl_experiment_warnings(&w, t->experiment, &t->plan, &t->task);
    for (size_t i = 0; i < w.count; i++)
        complain("warning: %s", w.texts[i]);
}

void trial_close(trial *t) {
    sl_sending_close(&t->sending);
    sl_learner_close(&t->learner);
    sl_experiment_close(&t->experiment);
}

void complain_of_run(const char *why, sl_folder *folder, int64_t rank, const char *path) {
    char kept[SL_ERROR_TEXT_MAX + 96] = "";
    sl_error error = {0};
    uint64_t round = 0;
    if (folder != NULL && sl_folder_rescue(folder, rank, &round, &error) != 0)
        snprintf(kept, sizeof kept, ", but not the model of round %llu: %s",
                 (unsigned long long)round, error.text);
    else if (round > 0 && rank < 0)
        snprintf(kept, sizeof kept, ", the averaged model of round %llu as model-last.npy",
                 (unsigned long long)round);
    else if (round > 0)
        snprintf(kept, sizeof kept, ", the model of round %llu as model-%lld-last.npy",
                 (unsigned long long)round, (long long)rank);
    complain("%s; what was recorded is in %s%s", why, path, kept);
}

/* As a part of a path. */
static void name_of(const sl_experiment *experiment, char name[SL_NAME_MAX]) {
    sl_text_show(name, SL_NAME_MAX, experiment->name, strlen(experiment->name));
    for (char *c = name; *c != '\0'; c++)
        if (strchr("/\\*?[", *c) != NULL)
            *c = '-';
}

void choose_pattern(const sl_experiment *experiment, const char *suffix, char out[SL_PATH_MAX]) {
    char name[SL_NAME_MAX];
    name_of(experiment, name);
    snprintf(out, SL_PATH_MAX, "runs/%s-*%s*", name, suffix);
}

void choose_folder(const options *o, const sl_experiment *experiment, const char *suffix,
                   char path[SL_PATH_MAX]) {
    if (o->resume != NULL || o->out != NULL) {
        snprintf(path, SL_PATH_MAX, "%s", o->resume != NULL ? o->resume : o->out);
        return;
    }
    char name[SL_NAME_MAX], when[32];
    name_of(experiment, name);
    time_t seconds = time(NULL);
    struct tm local;
    localtime_r(&seconds, &local);
    strftime(when, sizeof when, "%Y%m%d-%H%M%S", &local);
    int length = snprintf(path, SL_PATH_MAX, "runs/%s-%s%s", name, when, suffix);
    /* Two runs within a second. */
    for (int i = 2; access(path, F_OK) == 0; i++)
        snprintf(path + length, SL_PATH_MAX - (size_t)length, "-%d", i);
}

int trial_check_agents(const trial *t, const options *o, const char *where, sl_error *error) {
    const sl_experiment *e = t->experiment;
    int result = trial_check_memory(t, where, true, error);
    if (result == 0 && sl_security_mode_of(&e->security) == SL_SECURITY_CERTIFICATES &&
        e->security.ca[0] == '\0')
        result = sl_fail(error, SL_EINVAL,
                         "security.mode: \"certificates\" needs a roster that names them, which "
                         "`starling agent` takes, or security.ca; leave security out, and this "
                         "command makes a key for its agents");
    if (result == 0)
        result = trial_check_key(e, error);
    return result != 0 ? result : trial_find_path(t, o, error);
}
