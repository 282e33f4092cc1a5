/* cmd_average.c - `starling average`: the average of models that a run has left, of which somebody
 * was lost, or that has not come to its end. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/tool.h"

typedef struct average {
    trial trial;
    const char **from; /* (nodes) the folder that a rank's model was found in; NULL: none yet */
    uint32_t ranks;
    double *sum; /* (d) of w_i x_i */
    double weights;
    float *x; /* (d) */
    uint32_t count;
} average;

/* What the last recorded line of push-sum's says; 1 of others. */
static double last_weight(const char *folder, uint32_t rank) {
    char path[SL_PATH_MAX + 64], *line = NULL;
    size_t room = 0;
    double weight = 1;
    snprintf(path, sizeof path, "%s/metrics-%u.jsonl", folder, rank);
    FILE *file = fopen(path, "r");
    while (file != NULL && getline(&line, &room, file) > 0) {
        const char *at = strstr(line, "\"push_sum_weight\":");
        weight = at != NULL ? strtod(strchr(at, ':') + 1, NULL) : weight;
    }
    if (file != NULL)
        fclose(file);
    free(line);
    return weight;
}

static int add(average *a, const char *folder, uint32_t rank, double weight, const char *what,
               sl_error *error) {
    if (a->from[rank] != NULL)
        return sl_fail(error, SL_EINVAL, "rank %u has a model in %s and in %s; leave one out", rank,
                       a->from[rank], folder);
    a->from[rank] = folder;
    for (size_t i = 0; i < a->trial.task.dimension; i++)
        a->sum[i] += weight * a->x[i];
    a->weights += weight;
    a->count++;
    printf("rank %-4u %s of %s\n", rank, what, folder);
    return 0;
}

/* The model that it ended with. */
static int add_final(average *a, const char *folder, uint32_t rank, bool *found, sl_error *error) {
    char path[SL_PATH_MAX + 64];
    size_t count;
    const sl_tensor *tensors = sl_learner_layout(a->trial.learner, &count);
    snprintf(path, sizeof path, "%s/model-%u.npy", folder, rank);
    *found = access(path, F_OK) == 0;
    if (!*found)
        return 0;
    const int result = sl_tensors_load(a->x, tensors, count, path, error);
    return result != 0 ? result
                       : add(a, folder, rank, last_weight(folder, rank), "final model", error);
}

/* Or else its newest good checkpoint. */
static int add_saved(average *a, const char *folder, const char *saved,
                     const sl_checkpoint_file *files, size_t count, uint32_t rank,
                     sl_error *error) {
    double weight;
    char what[48];
    for (size_t i = count; i-- > 0;) {
        if (files[i].rank != rank)
            continue;
        if (sl_checkpoint_model(a->x, a->trial.task.dimension, &weight, saved, files[i], error) ==
            0) {
            snprintf(what, sizeof what, "checkpoint of round %" PRIu64, files[i].round);
            return add(a, folder, rank, weight, what, error);
        }
        complain("warning: left out: %s", error->text);
    }
    return 0;
}

static int add_folder(average *a, const char *folder, sl_error *error) {
    char saved[SL_PATH_MAX];
    sl_checkpoint_file *files = NULL;
    size_t count = 0;
    const uint32_t before = a->count;
    sl_checkpoint_folder(a->trial.experiment, folder, saved);
    int result = sl_checkpoint_list(&files, &count, saved, error);
    for (uint32_t rank = 0; rank < a->ranks && result == 0; rank++) {
        bool found;
        result = add_final(a, folder, rank, &found, error);
        if (result == 0 && !found)
            result = add_saved(a, folder, saved, files, count, rank, error);
    }
    free(files);
    return result != 0 || a->count > before
               ? result
               : sl_fail(error, SL_EFILE, "%s: holds no model-RANK.npy, and no good checkpoint%s",
                         folder,
                         a->trial.experiment->record.models != SL_MODELS_ALL
                             ? "; record.models \"all\" keeps the models of nodes"
                             : "");
}

static int write_model(const average *a, const char *path, sl_error *error) {
    char head[SL_NPY_HEAD_BYTES];
    const size_t d = a->trial.task.dimension;
    FILE *file = fopen(path, "wb");
    sl_npy_head(head, d);
    const bool whole = file != NULL && fwrite(head, sizeof head, 1, file) == 1 &&
                       fwrite(a->x, sizeof *a->x, d, file) == d;
    return (file == NULL || fclose(file) == 0) && whole
               ? 0
               : sl_fail(error, SL_EFILE, "%s: cannot be written: %m", path);
}

static int finish(average *a, const char *path, sl_error *error) {
    for (size_t i = 0; i < a->trial.task.dimension; i++)
        a->x[i] = (float)(a->sum[i] / a->weights);
    const int result = write_model(a, path, error);
    if (result != 0)
        return result;
    const sl_evaluation e = a->trial.task.evaluate(a->trial.task.context, a->x);
    printf("average of %u models: loss %.6g", a->count, e.loss);
    if (!isnan(e.accuracy))
        printf(", accuracy %.2f %%", 100 * e.accuracy);
    printf("; %s\n", path);
    return 0;
}

static int open_average(average *a, options *o, const char *folder, char path[SL_PATH_MAX + 16],
                        sl_error *error) {
    snprintf(path, SL_PATH_MAX + 16, "%s/config.json", folder);
    o->file = path;
    o->report_fd = -1;
    const int result = trial_open(&a->trial, o, error);
    if (result != 0)
        return result;
    a->ranks = a->trial.nodes;
    a->from = calloc(a->ranks, sizeof *a->from);
    a->sum = calloc(a->trial.task.dimension, sizeof *a->sum);
    a->x = calloc(a->trial.task.dimension, sizeof *a->x);
    return a->from != NULL && a->sum != NULL && a->x != NULL
               ? 0
               : sl_fail(error, SL_ENOMEM, "out of memory for an average of %zu numbers",
                         a->trial.task.dimension);
}

static int run(void *request, char *const *operands, size_t count) {
    options *o = request;
    average a = {0};
    char config[SL_PATH_MAX + 16], out[SL_PATH_MAX + 32];
    sl_error error = {0};
    snprintf(out, sizeof out, "%s/model-average.npy", operands[0]);
    int result = open_average(&a, o, operands[0], config, &error);
    for (size_t i = 0; i < count && result == 0; i++)
        result = add_folder(&a, operands[i], &error);
    if (result == 0)
        result = finish(&a, o->out != NULL ? o->out : out, &error);
    if (result != 0)
        complain("%s", error.text);
    free(a.from);
    free(a.sum);
    free(a.x);
    trial_close(&a.trial);
    return result == 0 ? TOOL_OK : TOOL_USAGE;
}

static const command_option option_file = {"out",
                                           .argument = "FILE",
                                           .otherwise = "FOLDER/model-average.npy",
                                           .help = "where the average goes, as a .npy file",
                                           .take = take_text,
                                           .offset = offsetof(options, out),
                                           .offer = OFFER_FILE};
static const command_option *const rows[] = {&option_file, NULL};

const command average_command = {
    .name = "average",
    .summary = "average the models that a run has left",
    .operands = "FOLDER...",
    .operands_min = 1,
    .operands_max = SL_NODES_MAX,
    .offer = OFFER_FOLDER,
    .text = "Averages the models in run folders of one run: each rank's final model, or else that "
            "of its newest good checkpoint; of push-sum with its weights. Says which it took, and "
            "the average's loss and accuracy. For runs that have lost a node, or did not come to "
            "their end; final_average does it within a run.",
    .options = rows,
    REQUEST_OPTIONS,
    .run = run,
};
