/* cmd_sim.c - `starling sim`: the experiment in one process, with the outputs of `starling run`. */
#include <stdio.h>

#include "run/conduct.h"
#include "compare/forecast.h"
#include "run/simulation.h"

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

static int simulate(board *b, const char *path, sl_summary *summary, sl_error *error) {
    (void)path;
    return simulation_run(b, forecast_is_wanted(&b->trial->experiment->network), summary, error);
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
            code = conduct(&(conducted){"sim", "nodes", ", simulated", simulate}, &t, path);
        } else {
            complain("%s", error.text);
            code = TOOL_USAGE;
        }
        trial_close(&t);
    }
    options_close(&o);
    return code;
}
