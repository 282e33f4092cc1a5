/* cmd_sim.c - `starling sim`: the experiment in one process, with the outputs of `starling run`. */
#include <stdio.h>

#include "forecast.h"
#include "simulation.h"
#include "table.h"

static const char help[] =
    "usage: starling sim EXPERIMENT [--set KEY=VALUE ...] [--out DIR]\n"
    "\n"
    "Runs the experiment in one process without a network. Models, losses and files are\n"
    "those of `starling run`, bit for bit; times are the simulator's own. With network.* in the\n"
    "experiment it says how long the run would take on such nodes and links.\n"
    "\n"
    "  --set KEY=VALUE  overrides a key of the experiment, as in optimizer.learning_rate=0.2\n"
    "  --out DIR        the run folder (default runs/NAME-YYYYmmdd-HHMMSS)\n"
    "  --help           this text\n";

static int run_in(const trial *t, const char *path) {
    board b = {0};
    progress view;
    sl_error error = {0};
    sl_summary summary;
    progress_open(&view, t->task.rounds);
    if (board_open(&b, t, "sim", path, &view, &error) != 0) {
        complain("%s", error.text);
        return TOOL_USAGE;
    }
    printf("%s on %u nodes, %s\n%llu rounds, simulated; run folder %s\n", t->experiment->name,
           t->nodes, sl_learner_describe(t->learner), (unsigned long long)t->task.rounds, path);
    int result =
        simulation_run(&b, forecast_is_wanted(&t->experiment->network), &summary, &error);
    if (result == 0)
        table_print(&summary);
    else
        complain_of_run(error.text, b.folder, -1, path);
    board_close(&b);
    return result == 0 ? TOOL_OK : result == SL_ESTOPPED ? TOOL_INTERRUPTED : TOOL_FAILED;
}

int cmd_sim(int argc, char **argv) {
    options o;
    int code = options_parse(&o, argc, argv, OPTION_SET | OPTION_OUT);
    if (code == TOOL_OK && o.help) {
        fputs(help, stdout);
    } else if (code == TOOL_OK) {
        catch_signals(NULL);
        trial t = {0};
        sl_error error = {0};
        char path[SL_PATH_MAX];
        if (trial_open(&t, &o, &error) == 0) {
            choose_folder(&o, t.experiment, "", path);
            trial_warn(&t);
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
