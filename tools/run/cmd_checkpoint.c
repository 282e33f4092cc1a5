/* cmd_checkpoint.c - `starling checkpoint`: which checkpoints a run has, and whether each is whole.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/outcome.h"
#include "cli/patience.h"
#include "cli/tool.h"

enum { LACKING_NAMED = 8 };

/* Whose files are to be there: of a run all nodes', of an agent by hand those that its folder is
 * of.
 */
typedef struct owners {
    const char *run; /* the run folder */
    uint32_t nodes;
    bool by_hand; /* it has no run.json, but a run-RANK.json of each agent that it is of */
} owners;

static bool is_file(const char *folder, const char *name) {
    char path[SL_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static bool is_wanted(const owners *o, uint32_t rank) {
    char name[32];
    snprintf(name, sizeof name, "run-%u.json", rank);
    return !o->by_hand || is_file(o->run, name);
}

/* The checkpoints of one round. */
typedef struct cut {
    const sl_checkpoint_file *files; /* (count) by rank */
    size_t count;
    size_t before, all; /* files of the rounds before it, and of all */
} cut;

/* Of nodes at their own times a cut is of several. */
static void tell_rounds(FILE *out, const char *folder, cut c) {
    uint64_t first = UINT64_MAX, last = 0, round;
    for (size_t i = 0; i < c.count; i++)
        if (sl_checkpoint_begins(&round, folder, c.files[i], NULL) == 0) {
            first = round < first ? round : first;
            last = round > last ? round : last;
        }
    if (first > last || last == c.files->round)
        fprintf(out, "round %" PRIu64 ": ", c.files->round);
    else
        fprintf(out, "checkpoint %" PRIu64 ", in rounds %" PRIu64 " to %" PRIu64 ": ",
                c.files->round, first, last);
}

/* One line for the round, and one for each file that cannot be used. Returns whether all nodes of
 * its view have a good file. */
static bool tell_cut(FILE *out, const char *folder, cut c, const owners *o) {
    uint32_t good = 0, named = 0, next = 0, wanted = 0, members = 0;
    sl_checkpoint_view view = {0};
    sl_error error;
    sl_checkpoint_view_at(&view, folder, c.files->round, NULL); /* a file that is bad is told */
    tell_rounds(out, folder, c);
    for (uint32_t rank = 0; rank < o->nodes; rank++) {
        const bool there = next < c.count && c.files[next].rank == rank;
        const bool is_good =
            there && sl_checkpoint_check(folder, c.files[next], NULL, NULL, &error) == 0;
        next += there;
        if (there)
            patience_tell((double)(c.before + next) / (double)c.all);
        const bool needs = is_wanted(o, rank) && sl_checkpoint_view_has(&view, rank);
        good += is_good;
        wanted += is_wanted(o, rank);
        members += sl_checkpoint_view_has(&view, rank);
        if (!is_good && needs && named++ < LACKING_NAMED)
            fprintf(out, "%s rank %u: %s", named == 1 ? "not whole:" : ";", rank,
                    there ? error.text : "missing");
    }
    if (named > LACKING_NAMED)
        fprintf(out, "; %u more", named - LACKING_NAMED);
    if (named == 0 && wanted < o->nodes)
        fprintf(out, "good for %u of %u nodes; the others have folders of their own\n", good,
                o->nodes);
    else
        fprintf(out, "%s%s\n", named == 0 ? "whole, sums right" : "",
                named == 0 && members < o->nodes ? "; of the nodes that trained then" : "");
    return named == 0;
}

/* Once all of it is known: until then there may be a bar. */
static bool print_cut(const char *folder, cut c, const owners *o) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    const bool whole = out != NULL && tell_cut(out, folder, c, o);
    if (out != NULL && fclose(out) == 0) {
        patience_hide();
        fputs(text, stdout);
        fflush(stdout);
    }
    free(text);
    return whole;
}

/* Of the first file that can be read. */
static uint32_t nodes_of(const char *folder, const sl_checkpoint_file *files, size_t count) {
    uint32_t nodes = 0;
    for (size_t i = 0; i < count && nodes == 0; i++)
        if (sl_checkpoint_check(folder, files[i], NULL, &nodes, NULL) != 0)
            nodes = 0;
    return nodes;
}

static int tell_all(const char *run, const char *folder, const sl_checkpoint_file *files,
                    size_t count) {
    owners o = {.run = run, .nodes = nodes_of(folder, files, count)};
    bool any = false;
    for (uint32_t i = 0; i < o.nodes && !o.by_hand && !is_file(run, "run.json"); i++) {
        owners with = {.run = run, .by_hand = true};
        o.by_hand = is_wanted(&with, i);
    }
    if (o.nodes == 0) {
        complain("%s: holds no good checkpoint%s", folder,
                 count == 0 ? "; checkpoint.every makes them" : "");
        return TOOL_USAGE;
    }
    patience *p = patience_begin("checking the checkpoints of %s", run);
    for (size_t i = 0; i < count;) {
        cut c = {.files = files + i, .before = i, .all = count};
        for (; i < count && files[i].round == c.files->round; i++)
            c.count++;
        any = print_cut(folder, c, &o) || any;
    }
    patience_end(p);
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
        outcomes_tell(operands[0]);
    if (result == 0)
        code = tell_all(operands[0], folder, files, file_count);
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
