/* conduct.c - one run from its first line to its last; see conduct.h. */
#include "run/conduct.h"

#include <stdio.h>

#include "cli/table.h"

int conduct(const conducted *what, const trial *t, const char *path) {
    board b = {0};
    progress view;
    sl_error error = {0};
    sl_summary summary;
    progress_open(&view, t->task.rounds);
    if (board_open(&b, t, what->driver, path, &view, &error) != 0) {
        complain("%s", error.text);
        return TOOL_USAGE;
    }
    printf("%s on %u %s, %s\n%llu rounds%s; run folder %s\n", t->experiment->name, t->nodes,
           what->peers, sl_learner_describe(t->learner), (unsigned long long)t->task.rounds,
           what->manner, path);
    fflush(stdout);
    int result = what->run(&b, path, &summary, &error);
    if (result == 0)
        table_print(&summary);
    else
        complain_of_run(error.text, b.folder, -1, path);
    board_close(&b);
    return result == 0 ? TOOL_OK : result == SL_ESTOPPED ? TOOL_INTERRUPTED : TOOL_FAILED;
}
