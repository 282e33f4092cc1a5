/* replay.c - see replay.h.
 *
 * Each stretch of rounds is simulated by a `starling sim` of its own, which ends after a checkpoint
 * where the run did, and goes on from it with --resume. So going on is part of what is repeated,
 * and each stretch has the kernels that its agents had: OpenBLAS chooses its own as it is loaded.
 */
#include "run/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/replay_compare.h"
#include "run/replay_plan.h"
#include "run/run_info.h"
#include "starling/kernels.h"

static const struct timespec look_again = {.tv_nsec = 20000000};

const command_option option_replay = {
    "replay",
    .help = "EXPERIMENT is the folder of a run that has ended: repeats it with its stops and "
            "checkpoints, and says whether the bits are the same",
    .take = take_switch,
    .offset = offsetof(options, replay),
};
const command_option option_end_after = {
    "end-after",        .argument = "R",
    .hidden = true,     .help = "ends after a checkpoint of this round",
    .take = take_whole, .offset = offsetof(options, end_after),
    .max = UINT64_MAX,
};

const command_option option_history = {
    "history",         .argument = "RUN",
    .hidden = true,    .help = "repeats the losses of the run in this folder",
    .take = take_text, .offset = offsetof(options, history),
};

typedef struct replay {
    options *o;
    const char *run; /* the folder */
    trial trial;
    replay_plan plan;
    uint64_t last; /* the round that the run came to */
    char out[SL_PATH_MAX];
} replay;

static void tell(const char *text) {
    complain("%s", text);
}

/* ---- what is repeated ---- */

static int read_run_id(uint64_t *out, const char *folder, sl_error *error) {
    return run_info_read_id(out, NULL, folder, run_info_is_there(folder, -1) ? -1 : 0, error);
}

/* A run that was cut short is repeated as far as it was recorded. */
static int find_last(replay *r, sl_error *error) {
    const sl_experiment *e = r->trial.experiment;
    replay_plan *p = &r->plan;
    replay_stretch *top = &p->stretches[p->count - 1];
    uint64_t recorded = 0;
    if (p->outcome == SL_LOG_FAILED) {
        int result = replay_last_recorded(&recorded, r->run, sl_experiment_ranks(e), error);
        if (result != 0)
            return result;
        if (recorded > top->to)
            top->to = recorded;
        else if (p->count > 1 && top->to == top->from)
            p->count--;
    }
    r->last = p->stretches[p->count - 1].to;
    return r->last > 0 ? 0
                       : sl_fail(error, SL_EFILE,
                                 "%s: the run ended before a round was recorded; there is "
                                 "nothing to repeat",
                                 r->run);
}

static void describe_plan(const replay *r) {
    const replay_plan *p = &r->plan;
    char run[SL_PATH_MAX];
    sl_text_show(run, sizeof run, r->run, strlen(r->run));
    printf("repeats %s: rounds 1 to %" PRIu64, run, r->last);
    for (size_t i = 1; i < p->count; i++)
        printf("%s%" PRIu64, i > 1 ? ", " : ", going on from round ", p->stretches[i].from);
    printf(" (%" PRIu64 " starts, %" PRIu64 " connections broke", p->starts, p->breaks);
    if (p->cuts + p->views > 0)
        printf(", %" PRIu64 " cuts, %" PRIu64 " views begun", p->cuts, p->views);
    printf(")\n");
    fflush(stdout);
}

static int read_plan(replay_plan *out, const replay *r, const char *folder, uint64_t run_id,
                     sl_error *error) {
    const sl_experiment *e = r->trial.experiment;
    return replay_plan_open(out, folder, sl_topology_nodes(e->topology), sl_experiment_ranks(e),
                            run_id, tell, error);
}

static int open_replay(replay *r, char config[SL_PATH_MAX + 16], sl_error *error) {
    options of_run = *r->o;
    uint64_t run_id = 0;
    if (r->run == NULL || strlen(r->run) >= SL_PATH_MAX || r->o->resume != NULL)
        return sl_fail(error, SL_EINVAL, "--replay: %s",
                       r->o->resume != NULL ? "repeats a run from its beginning; leave --resume out"
                                            : "which RUN? (starling sim RUN --replay)");
    snprintf(config, SL_PATH_MAX + 16, "%s/config.json", r->run);
    of_run.file = config;
    int result = trial_open(&r->trial, &of_run, error);
    if (result == 0)
        result = read_run_id(&run_id, r->run, error);
    if (result == 0)
        result = read_plan(&r->plan, r, r->run, run_id, error);
    if (result == 0)
        result = find_last(r, error);
    if (result == 0)
        choose_folder(r->o, r->trial.experiment, "-replay", r->out);
    return result;
}

/* ---- kernels ---- */

/* The kernels of the stretch, for the process to come. */
static void choose_kernels(const replay_stretch *s) {
    sl_error error;
    setenv("STARLING_KERNELS", s->kernels, 1);
    if (sl_kernels_check(&error) != 0) {
        unsetenv("STARLING_KERNELS");
        complain("warning: the bits may differ: %s", error.text);
    }
    setenv("OPENBLAS_CORETYPE", s->blas, 1);
    if (s->unlike > 0)
        complain("warning: the bits may differ: node %u ran on another kind of processor than node "
                 "0, whose kernels (%s, BLAS %s) all nodes get here",
                 s->unlike, s->kernels, s->blas);
}

/* OpenBLAS takes what it likes. */
static void compare_kernels(const replay *r) {
    replay_plan here;
    uint64_t run_id;
    if (read_run_id(&run_id, r->out, NULL) != 0 || read_plan(&here, r, r->out, run_id, NULL) != 0)
        return;
    for (size_t i = 0; i < r->plan.count && i < here.count; i++) {
        const replay_stretch *a = &r->plan.stretches[i], *b = &here.stretches[i];
        if (strcmp(a->kernels, b->kernels) != 0 || strcmp(a->blas, b->blas) != 0)
            complain("warning: the bits may differ: after round %" PRIu64
                     " the run had kernels %s and BLAS %s, and %s and %s here",
                     a->from, a->kernels, a->blas, b->kernels, b->blas);
    }
    replay_plan_close(&here);
}

/* ---- processes ---- */

enum { SETTINGS_MAX = 16, WORDS_MAX = 2 * (OVERRIDES_MAX + SETTINGS_MAX) + 24 };

typedef struct words {
    const char *items[WORDS_MAX]; /* the last is NULL */
    size_t count;
    char config[SL_PATH_MAX + 16], rounds[40], end_after[24];
    char settings[SETTINGS_MAX][SL_DIFFERENCE_MAX + REPLAY_SETTINGS_MAX];
} words;

static void add(words *w, const char *word) {
    w->items[w->count++] = word;
}

static void set(words *w, const char *key) {
    add(w, "--set");
    add(w, key);
}

/* Those that the run had in the stretch, of which its configuration has the last. */
static void set_settings(words *w, const char *settings) {
    json_t *root = json_loads(settings, 0, NULL), *value;
    const char *key;
    size_t count = 0;
    json_object_foreach(root, key, value) {
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
        if (text != NULL && count < SETTINGS_MAX) {
            snprintf(w->settings[count], sizeof w->settings[count], "%s=%s", key, text);
            set(w, w->settings[count++]);
        }
        free(text);
    }
    json_decref(root);
}

/* The command of stretch i. */
static void fill_words(words *w, const replay *r, size_t i) {
    const options *o = r->o;
    const replay_plan *p = &r->plan;
    const replay_stretch *s = &p->stretches[i];
    const uint64_t before = i > 0 ? s[-1].rounds : r->trial.task.rounds;
    snprintf(w->config, sizeof w->config, "%s/config.json", i > 0 ? r->out : r->run);
    snprintf(w->rounds, sizeof w->rounds, "rounds=%" PRIu64, s->rounds);
    snprintf(w->end_after, sizeof w->end_after, "%" PRIu64, s->to);
    add(w, "starling");
    add(w, "sim");
    add(w, w->config);
    for (size_t k = 0; k < o->override_count; k++)
        set(w, o->overrides[k]);
    set_settings(w, s->settings);
    set(w, "checkpoint.path=\"\"");
    if (!s->simulated) {
        add(w, "--history");
        add(w, r->run);
    }
    if (s->rounds != before) {
        set(w, w->rounds);
        set(w, "epochs=0");
    }
    add(w, i > 0 ? "--resume" : "--out");
    add(w, r->out);
    if (s->to < s->rounds) {
        add(w, "--end-after");
        add(w, w->end_after);
    }
    if (o->wide)
        add(w, "--wide");
}

/* Until it has ended. A request to stop is passed on. */
static int wait_for(pid_t child) {
    int status, told = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (stop_requested > told) {
            told = stop_requested;
            kill(child, SIGTERM);
        }
        nanosleep(&look_again, NULL);
    }
    return status;
}

static int run_words(words *w, int *status, sl_error *error) {
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) /* it ended before the line above */
            _exit(TOOL_FAILED);
        execv("/proc/self/exe", (char *const *)w->items);
        _exit(127);
    }
    if (child < 0)
        return sl_fail(error, SL_ENOMEM, "no process: %s", strerror(errno));
    *status = wait_for(child);
    return 0;
}

/* TOOL_OK, or the exit code with which all ends. */
static int run_stretch(const replay *r, size_t i) {
    const replay_stretch *s = &r->plan.stretches[i];
    words w = {0};
    sl_error error;
    int status = 0;
    fill_words(&w, r, i);
    choose_kernels(s);
    fflush(stdout);
    if (run_words(&w, &status, &error) != 0) {
        complain("%s", error.text);
        return TOOL_FAILED;
    }
    if (WIFSIGNALED(status)) {
        complain("the simulation was ended by signal %d (%s); it had kernels %s and BLAS %s, as "
                 "the run had",
                 WTERMSIG(status), strsignal(WTERMSIG(status)), s->kernels, s->blas);
        return TOOL_FAILED;
    }
    const int code = WEXITSTATUS(status);
    return s->to < s->rounds && code == TOOL_SAVED ? TOOL_OK : code;
}

/* ---- all of it ---- */

static int tell_difference(const replay *r) {
    replay_difference d;
    sl_error error;
    const replay_plan *p = &r->plan;
    const replay_extent extent = {.last = r->last,
                                  .whole = p->views > 0 && p->count > 1 ? p->stretches[1].from - 1
                                                                        : r->last,
                                  .models = p->outcome == SL_LOG_DONE};
    compare_kernels(r);
    if (replay_compare(&d, &r->trial, r->run, r->out, &extent, &error) != 0) {
        complain("%s", error.text);
        return TOOL_FAILED;
    }
    if (d.text[0] != '\0') {
        complain("the bits differ from those of %s: %s", r->run, d.text);
        return TOOL_FAILED;
    }
    if (d.lines + d.models + d.states == 0) {
        complain("%s: holds nothing up to round %" PRIu64 " to compare with", r->run, r->last);
        return TOOL_FAILED;
    }
    tell_line("same bits as %s: %zu lines of metrics, %zu final models, %zu checkpoints", r->run,
              d.lines, d.models, d.states);
    return TOOL_OK;
}

int replay_run(options *o) {
    replay r = {.o = o, .run = o->file};
    char config[SL_PATH_MAX + 16];
    sl_error error = {0};
    int code = TOOL_OK;
    catch_signals(NULL);
    if (open_replay(&r, config, &error) != 0) {
        complain("%s", error.text);
        code = TOOL_USAGE;
    } else {
        describe_plan(&r);
        for (size_t i = 0; i < r.plan.count && code == TOOL_OK; i++)
            code = run_stretch(&r, i);
        code = code == TOOL_OK ? tell_difference(&r) : code;
    }
    replay_plan_close(&r.plan);
    trial_close(&r.trial);
    return code;
}
