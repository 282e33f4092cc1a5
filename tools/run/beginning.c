/* beginning.c - see beginning.h. */
#include "run/beginning.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool exists(const char *folder, const char *name) {
    char path[SL_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

int beginning_find(beginning *out, const char *folder, const sl_experiment *experiment,
                   uint32_t rank, sl_error *error) {
    char checkpoints[SL_PATH_MAX], metrics[64];
    sl_checkpoint_file *files = NULL;
    size_t count = 0;
    snprintf(metrics, sizeof metrics, "metrics-%u.jsonl", rank);
    *out =
        (beginning){.ended = exists(folder, "summary.json"), .recorded = exists(folder, metrics)};
    sl_checkpoint_folder(experiment, folder, checkpoints);
    const int result = sl_checkpoint_list(&files, &count, checkpoints, error);
    for (size_t i = 0; result == 0 && i < count; i++)
        out->saved = out->saved || files[i].rank == rank;
    free(files);
    return result;
}

/* Whoever joins finds the others where they were when the run began, and none who tells a roster.
 */
int beginning_check_join(const options *o, sl_error *error) {
    const char *roster = o->roster != NULL ? o->roster : getenv("STARLING_ROSTER");
    if (!o->join || o->report_fd >= 0)
        return 0;
    if (o->resume != NULL)
        return sl_fail(error, SL_EINVAL,
                       "--join: takes the model of a running agent; --resume goes on from a "
                       "checkpoint; leave one of them out");
    return roster != NULL ? 0
                          : sl_fail(error, SL_EINVAL,
                                    "--join: needs --roster, with which the others were started");
}
