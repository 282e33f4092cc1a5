/* tool.c - what the subcommands share; see tool.h. */
#include "cli/tool.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

volatile sig_atomic_t stop_requested;
static void (*stop_hook)(void);

static void on_signal(int number) {
    (void)number;
    stop_requested++;
    if (stop_hook != NULL)
        stop_hook();
}

/* Without SA_RESTART, so that a wait ends. */
void catch_signals(void (*also)(void)) {
    stop_hook = also;
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs("starling: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

enum {
    OPT_SET = 256,
    OPT_OUT,
    OPT_RANK,
    OPT_ROSTER,
    OPT_LISTEN,
    OPT_REPORT_FD,
    OPT_RUN_ID,
    OPT_AGENTS,
    OPT_TARGET_LOSS,
    OPT_LINK,
    OPT_SEEDS,
    OPT_WIDE,
    OPT_HELP
};

static const struct {
    struct option option;
    unsigned group; /* 0: every command takes it */
} known[] = {
    {{"help", no_argument, NULL, OPT_HELP}, 0},
    {{"set", required_argument, NULL, OPT_SET}, OPTION_SET},
    {{"out", required_argument, NULL, OPT_OUT}, OPTION_OUT},
    {{"rank", required_argument, NULL, OPT_RANK}, OPTION_AGENT},
    {{"roster", required_argument, NULL, OPT_ROSTER}, OPTION_AGENT},
    {{"listen", required_argument, NULL, OPT_LISTEN}, OPTION_AGENT},
    {{"run-id", required_argument, NULL, OPT_RUN_ID}, OPTION_AGENT},
    {{"report-fd", required_argument, NULL, OPT_REPORT_FD}, OPTION_AGENT},
    {{"agents", no_argument, NULL, OPT_AGENTS}, OPTION_COMPARE},
    {{"target-loss", required_argument, NULL, OPT_TARGET_LOSS}, OPTION_COMPARE},
    {{"link", required_argument, NULL, OPT_LINK}, OPTION_COMPARE},
    {{"seeds", required_argument, NULL, OPT_SEEDS}, OPTION_COMPARE},
    {{"wide", no_argument, NULL, OPT_WIDE}, OPTION_WIDE},
};
enum { KNOWN = sizeof known / sizeof *known };

int take_whole(uint64_t *out, const char *name, const char *text, uint64_t min, uint64_t max) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < min || value > max) {
        complain("--%s %s: expected a whole number from %llu to %llu", name, text,
                 (unsigned long long)min, (unsigned long long)max);
        return TOOL_USAGE;
    }
    *out = value;
    return TOOL_OK;
}

static int parse_target(options *o, const char *text) {
    char *end;
    o->target_loss = strtod(text, &end);
    o->has_target_loss = end != text && *end == '\0' && isfinite(o->target_loss);
    if (o->has_target_loss)
        return TOOL_OK;
    complain("--target-loss %s: expected a number", text);
    return TOOL_USAGE;
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

static int add_link(options *o, const char *text) {
    if (o->link_count == LINKS_MAX) {
        complain("--link %s: at most %d links are compared", text, LINKS_MAX);
        return TOOL_USAGE;
    }
    int code = take_link(&o->links[o->link_count], text);
    o->link_count += code == TOOL_OK;
    return code;
}

static int take_option(options *o, int which) {
    uint64_t number;
    switch (which) {
    case 'h':
    case OPT_HELP:
        o->help = true;
        return TOOL_OK;
    case OPT_SET:
        o->overrides[o->override_count++] = optarg;
        return TOOL_OK;
    case OPT_OUT:
        o->out = optarg;
        if (strlen(optarg) < SL_PATH_MAX)
            return TOOL_OK;
        complain("--out: the path has %zu characters, at most %d are allowed", strlen(optarg),
                 SL_PATH_MAX - 1);
        return TOOL_USAGE;
    case OPT_ROSTER:
        o->roster = optarg;
        return TOOL_OK;
    case OPT_LISTEN:
        o->listen = optarg;
        return TOOL_OK;
    case OPT_RUN_ID:
        return take_whole(&o->run_id, "run-id", optarg, 0, UINT64_MAX);
    case OPT_AGENTS:
        o->agents = true;
        return TOOL_OK;
    case OPT_TARGET_LOSS:
        return parse_target(o, optarg);
    case OPT_LINK:
        return add_link(o, optarg);
    case OPT_SEEDS:
        o->seeds = optarg;
        return TOOL_OK;
    case OPT_WIDE:
        o->wide = true;
        return TOOL_OK;
    case OPT_RANK:
        if (take_whole(&number, "rank", optarg, 0, SL_NODES_MAX - 1) != TOOL_OK)
            return TOOL_USAGE;
        o->rank = (uint32_t)number;
        o->has_rank = true;
        return TOOL_OK;
    case OPT_REPORT_FD:
        if (take_whole(&number, "report-fd", optarg, 0, 1 << 20) != TOOL_OK)
            return TOOL_USAGE;
        o->report_fd = (int)number;
        return TOOL_OK;
    default: /* getopt has written the line */
        return TOOL_USAGE;
    }
}

int options_parse(options *out, int argc, char **argv, unsigned allowed) {
    *out = (options){.report_fd = -1};
    out->overrides = calloc((size_t)argc, sizeof *out->overrides);
    if (out->overrides == NULL) {
        complain("out of memory");
        return TOOL_USAGE;
    }
    struct option accepted[KNOWN + 1] = {0};
    size_t count = 0;
    for (size_t i = 0; i < KNOWN; i++)
        if (known[i].group == 0 || (known[i].group & allowed) != 0)
            accepted[count++] = known[i].option;
    const char *command = argv[0];
    argv[0] = (char *)"starling"; /* what getopt puts before its error lines */
    int which;
    while ((which = getopt_long(argc, argv, "h", accepted, NULL)) != -1)
        if (take_option(out, which) != TOOL_OK)
            return TOOL_USAGE;
    if (out->help)
        return TOOL_OK;
    bool several = (allowed & OPTION_COMPARE) != 0;
    if (several ? argc == optind : argc - optind != 1) {
        complain("%s takes %s one file, %d given (starling %s --help)", command,
                 several ? "at least" : "exactly", argc - optind, command);
        return TOOL_USAGE;
    }
    out->files = argv + optind;
    out->file_count = (size_t)(argc - optind);
    out->file = argv[optind];
    return TOOL_OK;
}

void options_close(options *o) {
    free(o->overrides);
    o->overrides = NULL;
}

int trial_find_path(const trial *t, const options *o, sl_error *error) {
    char note[SL_PATH_NOTE_MAX];
    bool direct;
    int result = sl_agent_find_path(t->experiment, &direct, note, error);
    if (result == 0 && note[0] != '\0' && o->report_fd < 0)
        complain("%s", note);
    return result;
}

/* Each line of the text is a complaint. */
static void complain_lines(const char *text) {
    for (size_t length; *text != '\0'; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        complain("%.*s", (int)length, text);
    }
}

int trial_open(trial *out, const options *o, sl_error *error) {
    trial t = {0};
    int result = sl_experiment_load(&t.experiment, o->file, o->overrides, o->override_count, error);
    if (result != 0)
        return result;
    if (o->report_fd < 0)
        complain_lines(t.experiment->warnings);
    char note[SL_DEVICE_TEXT_MAX];
    result = sl_device_find(t.experiment->device, note, error);
    if (result == 0 && note[0] != '\0' && o->report_fd < 0)
        complain("%s", note);
    if (result == 0) {
        sl_learner_settings settings = sl_experiment_learner(t.experiment);
        result = sl_learner_open(&t.learner, &settings, error);
    }
    if (result == 0) {
        t.task = sl_learner_task(t.learner);
        result = sl_algorithm_plan(&t.plan, &t.experiment->algorithm, t.experiment->topology,
                                   t.experiment->optimizer.momentum > 0, t.task.dimension, error);
    }
    if (result != 0) {
        trial_close(&t);
        return result;
    }
    t.nodes = sl_topology_nodes(t.experiment->topology);
    *out = t;
    return 0;
}

void trial_warn(const trial *t) {
    if (t->plan.warning[0] != '\0')
        complain("warning: %s", t->plan.warning);
}

void trial_close(trial *t) {
    sl_learner_close(&t->learner);
    sl_experiment_close(&t->experiment);
}

void complain_of_run(const char *why, sl_folder *folder, int64_t rank, const char *path) {
    char kept[96] = "";
    sl_error error = {0};
    uint64_t round;
    if (sl_folder_rescue(folder, rank, &round, &error) != 0)
        complain("%s", error.text);
    else if (round > 0 && rank < 0)
        snprintf(kept, sizeof kept, ", the averaged model of round %llu as model-last.npy",
                 (unsigned long long)round);
    else if (round > 0)
        snprintf(kept, sizeof kept, ", the model of round %llu as model-%lld-last.npy",
                 (unsigned long long)round, (long long)rank);
    complain("%s; what was recorded is in %s%s", why, path, kept);
}

void choose_folder(const options *o, const sl_experiment *experiment, const char *suffix,
                   char path[SL_PATH_MAX]) {
    if (o->out != NULL) {
        snprintf(path, SL_PATH_MAX, "%s", o->out);
        return;
    }
    char name[SL_NAME_MAX], when[32];
    snprintf(name, sizeof name, "%s", experiment->name);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '/')
            *c = '-';
    time_t seconds = time(NULL);
    struct tm local;
    localtime_r(&seconds, &local);
    strftime(when, sizeof when, "%Y%m%d-%H%M%S", &local);
    int length = snprintf(path, SL_PATH_MAX, "runs/%s-%s%s", name, when, suffix);
    /* Two runs within a second. */
    for (int i = 2; access(path, F_OK) == 0; i++)
        snprintf(path + length, SL_PATH_MAX - (size_t)length, "-%d", i);
}
