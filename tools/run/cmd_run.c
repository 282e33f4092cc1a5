/* cmd_run.c - `starling run`: one agent process per node on this machine.
 *
 * The resolved experiment is written to the run folder first and all agents read it from there.
 * They report to this process (report.h), which is the only writer of the run folder, and end with
 * it.
 */
#include <stdio.h>

#include "run/conduct.h"
#include "run/fleet.h"
#include "run/live.h"

static const char help[] =
    "usage: starling run EXPERIMENT [--set KEY=VALUE ...] [--out DIR]\n"
    "\n"
    "Trains with one agent process for each node of the topology, on this machine.\n"
    "Ctrl-C ends all agents; what was recorded so far is kept.\n"
    "\n"
    "  --set KEY=VALUE  overrides a key of the experiment, as in optimizer.learning_rate=0.2\n"
    "  --out DIR        the run folder (default runs/NAME-YYYYmmdd-HHMMSS)\n"
    "  --help           this text\n";

static int run_agents(board *b, const char *path, sl_summary *summary, sl_error *error) {
    return live_run_agents(b, path, false, summary, error);
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
        if (result == 0)
            result = trial_find_path(&t, &o, &error);
        if (result == 0) {
            choose_folder(&o, t.experiment, "", path);
            trial_warn(&t);
            code = conduct(&(conducted){"run", "agents", "", run_agents}, &t, path);
        } else {
            complain("%s", error.text);
            code = TOOL_USAGE;
        }
        trial_close(&t);
    }
    options_close(&o);
    return code;
}
