/* cmd_checkpoint.c - `starling checkpoint`: which checkpoints a run has, and whether each is whole.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/tool.h"

enum { LACKING_NAMED = 8 };

/* The checkpoints of one round. */
typedef struct cut {
    const sl_checkpoint_file *files; /* (count) by rank */
    size_t count;
} cut;

/* One line for the round, and one for each file that cannot be used. Returns whether all nodes have
 * a good file. */
static bool tell_cut(const char *folder, cut c, uint32_t nodes) {
    uint32_t good = 0, named = 0, next = 0;
    sl_error error;
    printf("round %" PRIu64 ": ", c.files->round);
    for (uint32_t rank = 0; rank < nodes; rank++) {
        const bool there = next < c.count && c.files[next].rank == rank;
        const bool is_good =
            there && sl_checkpoint_check(folder, c.files[next], NULL, NULL, &error) == 0;
        next += there;
        good += is_good;
        if (!is_good && named++ < LACKING_NAMED)
            printf("%s rank %u: %s", named == 1 ? "not whole:" : ";", rank,
                   there ? error.text : "missing");
    }
    if (named > LACKING_NAMED)
        printf("; %u more", named - LACKING_NAMED);
    printf("%s\n", good == nodes ? "whole, sums right" : "");
    return good == nodes;
}

/* Of the first file that can be read. */
static uint32_t nodes_of(const char *folder, const sl_checkpoint_file *files, size_t count) {
    uint32_t nodes = 0;
    for (size_t i = 0; i < count && nodes == 0; i++)
        if (sl_checkpoint_check(folder, files[i], NULL, &nodes, NULL) != 0)
            nodes = 0;
    return nodes;
}

static int tell_all(const char *folder, const sl_checkpoint_file *files, size_t count) {
    const uint32_t nodes = nodes_of(folder, files, count);
    bool any = false;
    if (nodes == 0) {
        complain("%s: holds no good checkpoint%s", folder,
                 count == 0 ? "; checkpoint.every makes them" : "");
        return TOOL_USAGE;
    }
    for (size_t i = 0; i < count;) {
        cut c = {files + i, 0};
        for (; i < count && files[i].round == c.files->round; i++)
            c.count++;
        any = tell_cut(folder, c, nodes) || any;
    }
    return any ? TOOL_OK : TOOL_FAILED;
}

/* The run's own experiment says where they are. */
static int find_folder(const char *run, char out[SL_PATH_MAX], sl_error *error) {
    char path[SL_PATH_MAX + 16];
    sl_experiment *e;
    snprintf(path, sizeof path, "%s/config.json", run);
    int result = sl_experiment_load(&e, path, NULL, 0, error);
    if (result != 0)
        return result;
    sl_checkpoint_folder(e, run, out);
    sl_experiment_close(&e);
    return 0;
}

static int run(void *request, char *const *operands, size_t count) {
    (void)request;
    (void)count;
    char folder[SL_PATH_MAX];
    sl_error error = {0};
    sl_checkpoint_file *files = NULL;
    size_t file_count = 0;
    int result = find_folder(operands[0], folder, &error);
    if (result == 0)
        result = sl_checkpoint_list(&files, &file_count, folder, &error);
    int code = TOOL_USAGE;
    if (result == 0)
        code = tell_all(folder, files, file_count);
    else
        complain("%s", error.text);
    free(files);
    return code;
}

const command checkpoint_command = {
    .name = "checkpoint",
    .summary = "list the checkpoints of a run, and check them",
    .operands = "RUN",
    .operands_min = 1,
    .operands_max = 1,
    .offer = OFFER_FOLDER,
    .text = "Lists the checkpoints in the run folder RUN, a line for each round: whether it is "
            "whole, or which ranks lack it, or why a file cannot be used. All of each file is read "
            "and held against its checksums. Ends with 1 if no round is whole. `--resume RUN` of "
            "run, agent and sim goes on from the newest whole one.",
    .request_bytes = sizeof(int),
    .run = run,
};
