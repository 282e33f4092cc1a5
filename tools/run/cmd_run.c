/* cmd_run.c - `starling run`: one agent process per node on this machine; and `starling sim`: the
 * same experiment in this process, with the same outputs.
 *
 * `run` writes the resolved experiment to the run folder first, and all agents read it from there.
 * They report to this process (agent_report.h), the only writer of the run folder, and end with it.
 */
#include <stdio.h>

#include "cli/log.h"
#include "cli/stable_steps.h"
#include "cli/text_table.h"
#include "run/agents.h"
#include "run/fleet.h"
#include "run/forecast.h"
#include "run/history.h"
#include "run/node_table.h"
#include "run/replay.h"
#include "run/resume.h"
#include "run/run_page.h"
#include "run/simulation.h"

/* In what `run` and `sim` differ. */
typedef struct driver {
    const char *name, *peers, *manner;
    /* Refuses what it cannot run. */
    int (*check)(const trial *t, const options *o, sl_error *error);
    /* Runs to the end and finishes the collector, whose folder is at `path`. */
    int (*run)(collector *c, const char *path, sl_summary *summary, sl_error *error);
} driver;

static int check_agents(const trial *t, const options *o, sl_error *error) {
    if (t->nodes > CHILDREN_MAX)
        return sl_fail(error, SL_EINVAL,
                       "%s: the topology has %u nodes; `starling run` starts at most %u processes "
                       "(the simulator takes more: starling sim %s)",
                       o->file, t->nodes, CHILDREN_MAX, o->file);
    return trial_check_agents(t, o, o->file, error);
}

static int check_simulation(const trial *t, const options *o, sl_error *error) {
    return trial_check_memory(t, o->file, false, error);
}

static int run_agents(collector *c, const char *path, sl_summary *summary, sl_error *error) {
    return agents_run(c, path, false, summary, error);
}

static int simulate(collector *c, const char *path, sl_summary *summary, sl_error *error) {
    return simulation_run(c, path, forecast_is_wanted(&c->trial->experiment->network), summary,
                          error);
}

static const driver with_agents = {"run", "agents", "", check_agents, run_agents};
static const driver simulated = {"sim", "nodes", ", simulated", check_simulation, simulate};

static void print_begin(const driver *d, const options *o, const trial *t, const char *path,
                        const collector *c) {
    char text[SL_NAME_MAX + 256];
    snprintf(text, sizeof text, "%s on %u %s, %s", t->experiment->name,
             sl_topology_nodes(t->experiment->topology), d->peers, sl_learner_describe(t->learner));
    tell_wrapped(text, o->wide);
    say_weights(t->experiment);
    tell_line("%llu rounds%s; run folder %s", (unsigned long long)t->task.rounds, d->manner, path);
    if (c->checkpoints->resume && c->from_last != c->checkpoints->round) /* at own times */
        tell_line("goes on from checkpoint %llu, of rounds %llu to %llu",
                  (unsigned long long)c->checkpoints->round, (unsigned long long)c->from_first,
                  (unsigned long long)c->from_last);
    else if (c->checkpoints->resume)
        tell_line("goes on from the checkpoint of round %llu", (unsigned long long)c->from_last);
    uint32_t evaluated = sl_record_evaluated(&t->experiment->record, t->nodes);
    if (evaluated < t->nodes)
        tell_line("evaluates the models of %u of %u nodes (record.evaluate)", evaluated, t->nodes);
    fflush(stdout);
}

static int exit_code(int result) {
    if (result == 0)
        return TOOL_OK;
    return result == SL_ESTOPPED                       ? TOOL_INTERRUPTED
           : result == SL_ESAVED || result == SL_ELEFT ? TOOL_SAVED
                                                       : TOOL_FAILED;
}

/* Prints everything from the first line to the final table, or the cause of failure. Returns an
 * exit code. */
static int run_to_end(const driver *d, const options *o, const trial *t, const char *path,
                      const sl_checkpoints *checkpoints) {
    collector c = {0};
    live_view view;
    sl_error error = {0};
    sl_summary summary;
    live_view_open(&view, t->task.rounds, o->wide);
    sl_show *page = NULL;
    if ((d == &with_agents && run_page_open(&page, o, t->experiment, path, &error) != 0) ||
        collector_open(&c, t, d->name, path, checkpoints, &view, &error) != 0) {
        complain("%s", error.text);
        sl_show_close(&page);
        return TOOL_USAGE;
    }
    print_begin(d, o, t, path, &c);
    run_page_tell(page, o);
    int result = d->run(&c, path, &summary, &error);
    c.saved = result == SL_ESAVED;
    if (result != 0)
        collector_explain(&c, &error);
    int code = exit_code(result);
    if (result == 0)
        code = node_table_end(&summary, o->wide);
    else if (result == SL_ESAVED && o->end_after == 0)
        complain("%s; go on with: starling %s --resume %s", error.text, d->name, path);
    else if (result != SL_ESAVED)
        complain_of_run(error.text, c.folder, -1, path);
    if (result == SL_EDIVERGED)
        stable_steps_advise(t);
    collector_close(&c);
    sl_show_finish(page);
    sl_show_close(&page);
    return code;
}

/* Of those who begin: all, or the members as the checkpoint was written. */
static int open_history(sl_history **out, const trial *t, const options *o, const sl_checkpoints *c,
                        sl_error *error) {
    sl_checkpoint_view founders = {0};
    const uint64_t from = c->resume ? c->round : 0;
    const int result = from > 0 ? sl_checkpoint_view_at(&founders, c->folder, from, error) : 0;
    return result == 0 ? history_open(out, o->history, t->nodes, &founders, from, error) : result;
}

static int run_experiment(const driver *d, options *o) {
    trial t = {0};
    sl_error error = {0};
    resumption r;
    sl_history *history = NULL;
    char path[SL_PATH_MAX], config[SL_PATH_MAX + 16];
    int code = TOOL_USAGE;
    catch_signals(NULL);
    int result = resume_choose_file(o, d->name, config, &error);
    if (result == 0)
        result = trial_open(&t, o, &error);
    if (d == &simulated && result == 0)
        t.nodes = o->history != NULL ? sl_experiment_ranks(t.experiment)
                                     : sl_experiment_simulated(t.experiment);
    if (result == 0)
        result = resume_compare(&t, o, &error);
    if (result == 0)
        result = d->check(&t, o, &error);
    if (result == 0) {
        choose_folder(o, t.experiment, "", path);
        log_of(path, NOBODY);
        result = resume_prepare(&r, &t, o, path, 0, &error);
    }
    if (result == 0 && o->history != NULL)
        result = open_history(&history, &t, o, &r.checkpoints, &error);
    if (result == 0) {
        r.checkpoints.history = history;
        trial_warn(&t);
        code = run_to_end(d, o, &t, path, &r.checkpoints);
    } else {
        complain("%s", error.text);
    }
    history_close(history, t.nodes);
    trial_close(&t);
    return code;
}

static int run(void *request, char *const *operands, size_t count) {
    options_take_files(request, operands, count);
    return run_experiment(&with_agents, request);
}

static int sim(void *request, char *const *operands, size_t count) {
    options *o = request;
    options_take_files(o, operands, count);
    return o->replay ? replay_run(o) : run_experiment(&simulated, o);
}

static const command_option option_open = {
    "open", .help = "open its page in the browser (monitor.listen)", .take = take_switch,
    .offset = offsetof(options, open_page)};
static const command_option *const option_rows[] = {
    &option_set, &option_wide, &option_out, &option_resume, &option_open, &option_log, NULL};
static const command_option *const sim_rows[] = {
    &option_set,    &option_wide,      &option_out,     &option_resume,
    &option_replay, &option_end_after, &option_history, NULL};

const command run_command = {
    .name = "run",
    .summary = "train with one agent process per node on this machine",
    OPERAND_FILE_OR_RUN,
    .text = "Trains with one agent process for each node of the topology, on this machine. "
            "Ctrl-C ends all agents; what was recorded so far is kept. The exit code is 3 if all "
            "rounds are done, but agents were lost that did not come back and had not left on "
            "request.",
    .options = option_rows,
    REQUEST_OPTIONS,
    .run = run,
};

const command sim_command = {
    .name = "sim",
    .summary = "simulate the same run in one process, with the same numbers",
    OPERAND_FILE_OR_RUN,
    .text = "Runs the experiment in one process without a network. Models, losses and files are "
            "those of `starling run`, bit for bit; times are the simulator's own. With network.* "
            "in the experiment it says how long the run would take on such nodes and links. With "
            "--replay it repeats the run in a folder from its logs of events, and ends with 1 if "
            "the bits differ.",
    .options = sim_rows,
    REQUEST_OPTIONS,
    .run = sim,
};
