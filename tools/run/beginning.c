/* beginning.c - see beginning.h. */
#include "run/beginning.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/tool.h"

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
