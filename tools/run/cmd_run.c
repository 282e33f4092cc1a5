/* cmd_run.c - `starling run`: one agent process per node on this machine; and `starling sim`: the
 * same experiment in this process, with the same outputs.
 *
 * `run` writes the resolved experiment to the run folder first, and all agents read it from there.
 * They report to this process (agent_report.h), the only writer of the run folder, and end with it.
 */
#include <stdio.h>

#include "cli/text_table.h"
#include "run/agents.h"
#include "run/fleet.h"
#include "run/forecast.h"
#include "run/node_table.h"
#include "run/simulation.h"

static const char run_help[] =
    "usage: starling run EXPERIMENT [--set KEY=VALUE ...] [--wide] [--out DIR]\n"
    "\n"
    "Trains with one agent process for each node of the topology, on this machine.\n"
    "Ctrl-C ends all agents; what was recorded so far is kept.\n"
    "\n"
    "  --set KEY=VALUE  overrides a key of the experiment, as in optimizer.learning_rate=0.2\n"
    "  --wide           tables with all columns, however wide the terminal\n"
    "  --out DIR        the run folder (default runs/NAME-YYYYmmdd-HHMMSS)\n"
    "  --help           this text\n";

static const char sim_help[] =
    "usage: starling sim EXPERIMENT [--set KEY=VALUE ...] [--wide] [--out DIR]\n"
    "\n"
    "Runs the experiment in one process without a network. Models, losses and files are\n"
    "those of `starling run`, bit for bit; times are the simulator's own. With network.* in the\n"
    "experiment it says how long the run would take on such nodes and links.\n"
    "\n"
    "  --set KEY=VALUE  overrides a key of the experiment, as in optimizer.learning_rate=0.2\n"
    "  --wide           tables with all columns, however wide the terminal\n"
    "  --out DIR        the run folder (default runs/NAME-YYYYmmdd-HHMMSS)\n"
    "  --help           this text\n";

/* In what `run` and `sim` differ. */
typedef struct driver {
    const char *name, *peers, *manner, *help;
    /* Refuses what it cannot run; NULL: nothing. */
    int (*check)(const trial *t, const options *o, sl_error *error);
    /* Runs to the end and finishes the collector, whose folder is at `path`. */
    int (*run)(collector *c, const char *path, sl_summary *summary, sl_error *error);
} driver;

static int check_agents(const trial *t, const options *o, sl_error *error) {
    if (t->nodes > FLEET_MAX)
        return sl_fail(error, SL_EINVAL,
                       "%s: the topology has %u nodes; `starling run` starts at most %u processes "
                       "(the simulator takes more: starling sim %s)",
                       o->file, t->nodes, FLEET_MAX, o->file);
    return trial_find_path(t, o, error);
}

static int run_agents(collector *c, const char *path, sl_summary *summary, sl_error *error) {
    return agents_run(c, path, false, summary, error);
}

static int simulate(collector *c, const char *path, sl_summary *summary, sl_error *error) {
    (void)path;
    return simulation_run(c, forecast_is_wanted(&c->trial->experiment->network), summary, error);
}

static const driver with_agents = {"run", "agents", "", run_help, check_agents, run_agents};
static const driver simulated = {"sim", "nodes", ", simulated", sim_help, NULL, simulate};

static void print_begin(const driver *d, const options *o, const trial *t, const char *path) {
    char text[SL_NAME_MAX + 256];
    snprintf(text, sizeof text, "%s on %u %s, %s", t->experiment->name, t->nodes, d->peers,
             sl_learner_describe(t->learner));
    print_wrapped("", text, output_width(o->wide));
    printf("%llu rounds%s; run folder %s\n", (unsigned long long)t->task.rounds, d->manner, path);
    uint32_t evaluated = sl_record_evaluated(&t->experiment->record, t->nodes);
    if (evaluated < t->nodes)
        printf("evaluates the models of %u of %u nodes (record.evaluate)\n", evaluated, t->nodes);
    fflush(stdout);
}

/* From the first line to the final table, or to what went wrong: an exit code. */
static int run_to_end(const driver *d, const options *o, const trial *t, const char *path) {
    collector c = {0};
    live_view view;
    sl_error error = {0};
    sl_summary summary;
    live_view_open(&view, t->task.rounds, o->wide);
    if (collector_open(&c, t, d->name, path, &view, &error) != 0) {
        complain("%s", error.text);
        return TOOL_USAGE;
    }
    print_begin(d, o, t, path);
    int result = d->run(&c, path, &summary, &error);
    if (result == 0)
        node_table_print(&summary, o->wide);
    else
        complain_of_run(error.text, c.folder, -1, path);
    collector_close(&c);
    return result == 0 ? TOOL_OK : result == SL_ESTOPPED ? TOOL_INTERRUPTED : TOOL_FAILED;
}

static int run_experiment(const driver *d, const options *o) {
    trial t = {0};
    sl_error error = {0};
    char path[SL_PATH_MAX];
    int code = TOOL_USAGE;
    catch_signals(NULL);
    int result = trial_open(&t, o, &error);
    if (result == 0 && d->check != NULL)
        result = d->check(&t, o, &error);
    if (result == 0) {
        choose_folder(o, t.experiment, "", path);
        trial_warn(&t);
        code = run_to_end(d, o, &t, path);
    } else {
        complain("%s", error.text);
    }
    trial_close(&t);
    return code;
}

static int command(const driver *d, int argc, char **argv) {
    options o;
    int code = options_parse(&o, argc, argv, OPTION_SET | OPTION_OUT | OPTION_WIDE);
    if (code == TOOL_OK && o.help)
        fputs(d->help, stdout);
    else if (code == TOOL_OK)
        code = run_experiment(d, &o);
    options_close(&o);
    return code;
}

int cmd_run(int argc, char **argv) {
    return command(&with_agents, argc, argv);
}

int cmd_sim(int argc, char **argv) {
    return command(&simulated, argc, argv);
}
