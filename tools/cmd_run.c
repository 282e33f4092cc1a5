/* cmd_run.c - `starling run`: one agent process per node on this machine.
 *
 * The resolved experiment is written to the run folder first and all agents read it from there.
 * They report to this process (report.h), which is the only writer of the run folder, and end with
 * it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board.h"
#include "fleet.h"

static const char help[] =
    "usage: starling run EXPERIMENT [--set KEY=VALUE ...] [--out DIR]\n"
    "\n"
    "Trains with one agent process for each node of the topology, on this machine.\n"
    "Ctrl-C ends all agents; what was recorded so far is kept.\n"
    "\n"
    "  --set KEY=VALUE  overrides a key of the experiment, as in optimizer.learning_rate=0.2\n"
    "  --out DIR        the run folder (default runs/NAME-YYYYmmdd-HHMMSS)\n"
    "  --help           this text\n";

typedef struct live_run {
    board board;
    progress progress;
    fleet fleet;
    const trial *trial;
    uint64_t rounds[FLEET_MAX]; /* under way, by rank */
    sl_error error;
} live_run;

static void on_round(void *context, uint32_t rank, uint64_t round) {
    live_run *r = context;
    r->rounds[rank] = round;
    uint64_t least = round;
    for (uint32_t i = 0; i < r->trial->nodes; i++)
        if (r->rounds[i] < least)
            least = r->rounds[i];
    if (least > 0)
        progress_round(&r->progress, least - 1);
}

/* Straight to its place on the board: `on_ready` has waited until the board has done with what was
 * there. */
static float *on_model(void *context, uint32_t rank) {
    live_run *r = context;
    return board_model(&r->board, rank);
}

static int on_report(void *context, uint32_t rank, const report *told) {
    live_run *r = context;
    const float *x = on_model(r, rank);
    if (told->type == REPORT_PARAMETERS)
        return sl_folder_parameters(r->board.folder, told->round, rank, x, r->trial->task.dimension,
                                    told->weight, &r->error);
    sl_record record = told->record;
    record.rank = rank;
    return board_record(&r->board, &record, x, &r->error);
}

static bool on_ready(void *context, uint32_t rank) {
    live_run *r = context;
    /* Nobody waits for a round that cannot be completed; agents must get rid of their reports to
     * end. */
    if (r->fleet.failed || r->fleet.interrupted)
        r->board.incomplete = true;
    return r->board.incomplete || !r->board.waiting[rank];
}

static void on_failed(void *context, uint32_t rank, const char *text) {
    live_run *r = context;
    progress_clear(&r->progress);
    complain("agent %u: %s", rank, text);
}

static void on_tick(void *context) {
    live_run *r = context;
    progress_tick(&r->progress);
}

static int run_fleet(live_run *r, const char *path, sl_error *error) {
    char config[SL_PATH_MAX + 16];
    snprintf(config, sizeof config, "%s/config.json", path);
    const fleet_handlers handlers = {r,        on_round,  on_model, on_report,
                                     on_ready, on_failed, on_tick};
    const trial *t = r->trial;
    int result =
        fleet_open(&r->fleet, t->nodes, config, t->experiment, t->task.dimension, &handlers, error);
    if (result != 0)
        return result;
    result = fleet_run(&r->fleet, error);
    if (result != 0 && r->error.code != 0)
        *error = r->error;
    progress_clear(&r->progress);
    fleet_close(&r->fleet);
    return result == 0 ? board_finish(&r->board, error) : result;
}

static int run_in(const trial *t, const char *path) {
    live_run *r = calloc(1, sizeof *r);
    sl_error error = {0};
    int result = r != NULL ? 0 : sl_fail(&error, SL_ENOMEM, "out of memory");
    if (result == 0) {
        r->trial = t;
        progress_open(&r->progress, t->task.rounds);
        result = board_open(&r->board, t, "run", path, &r->progress, &error);
    }
    bool started = result == 0;
    if (started) {
        printf("%s on %u agents, %s\n%llu rounds; run folder %s\n", t->experiment->name, t->nodes,
               sl_learner_describe(t->learner), (unsigned long long)t->task.rounds, path);
        fflush(stdout);
        trial_warn(t);
        result = run_fleet(r, path, &error);
        if (result != 0)
            board_keep(&r->board);
        board_close(&r->board);
    }
    free(r);
    if (result == 0)
        return TOOL_OK;
    complain(started ? "%s; what was recorded is in %s" : "%s", error.text, path);
    return result == SL_ESTOPPED ? TOOL_INTERRUPTED : started ? TOOL_FAILED : TOOL_USAGE;
}

static int check_nodes(const options *o, const trial *t, sl_error *error) {
    if (t->nodes <= FLEET_MAX)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "%s: the topology has %u nodes; `starling run` starts at most %u processes (the "
                   "simulator takes more: "
                   "starling sim %s)",
                   o->file, t->nodes, FLEET_MAX, o->file);
}

int cmd_run(int argc, char **argv) {
    options o;
    int code = options_parse(&o, argc, argv, OPTION_SET | OPTION_OUT);
    if (code == TOOL_OK && o.help) {
        fputs(help, stdout);
    } else if (code == TOOL_OK) {
        trial t = {0};
        sl_error error = {0};
        char path[SL_PATH_MAX];
        catch_signals(NULL);
        int result = trial_open(&t, &o, &error);
        if (result == 0)
            result = check_nodes(&o, &t, &error);
        if (result == 0) {
            choose_folder(&o, t.experiment, "", path);
            code = run_in(&t, path);
        } else {
            complain("%s", error.text);
            code = TOOL_USAGE;
        }
        trial_close(&t);
    }
    options_close(&o);
    return code;
}
