/* folder.c - writes the run folder; see starling/folder.h.
 *
 * Metrics are appended line by line. No line crosses a page, so that whatever ends a run leaves
 * whole lines behind. Lines of parameters may be longer than a page: the last may lack its end.
 * Everything else is there whole or not at all, and on the disk when its call returns; a
 * run's final models and its lines are when its summary is.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/json.h"
#include "config/tree.h"
#include "folder/files.h"
#include "folder/history.h"
#include "folder/record_json.h"
#include "folder/tensorboard.h"
#include "starling/folder.h"
#include "starling/text.h"

enum { NAME_MAX_BYTES = 64, CONFIG_BYTES_MAX = 64 << 20, PROBLEM_BYTES_MAX = 1 << 30 };

/* Where a line of parameters.jsonl stands. */
typedef struct line {
    uint64_t round;
    long offset, bytes;
    uint32_t rank;
} line;

struct sl_folder {
    char path[SL_PATH_MAX];
    bool all_nodes;
    sl_kept_models kept;
    uint32_t nodes;
    sl_files files;
    sl_lines *metrics; /* (nodes) */
    sl_lines consensus, parameters;
    sl_tensorboard *tensorboard; /* NULL: none are wanted */
    line *lines;                 /* (line_count) of parameters.jsonl */
    size_t line_count, line_room;
    bool in_order;
    uint64_t best_round; /* 0: none yet */
    sl_evaluation best;
    uint64_t last_round; /* 0: none yet */
    float *last;         /* (last_dimension) that round's model */
    size_t last_dimension;
    bool writes_safetensors;
    char *head; /* (head_bytes) of a safetensors file; NULL: none is written */
    size_t head_bytes;
};

static void path_of(const sl_folder *f, const char *name, char out[SL_PATH_MAX + NAME_MAX_BYTES]) {
    snprintf(out, SL_PATH_MAX + NAME_MAX_BYTES, "%s/%s", f->path, name);
}

static int write_whole(sl_folder *f, const char *name, const void *head, size_t head_bytes,
                       const void *body, size_t body_bytes, sl_sync sync, sl_error *error) {
    char path[SL_PATH_MAX + NAME_MAX_BYTES];
    sl_whole w;
    path_of(f, name, path);
    int result = sl_whole_open(&w, &f->files, path, error);
    if (result == 0)
        result = sl_whole_add(&w, head, head_bytes, error);
    if (result == 0)
        result = sl_whole_add(&w, body, body_bytes, error);
    return result != 0 ? result : sl_whole_commit(&w, sync, error);
}

static int write_text(sl_folder *f, const char *name, const char *text, const char *end,
                      sl_error *error) {
    return write_whole(f, name, text, strlen(text), end, strlen(end), SL_SYNC_NAME, error);
}

/* ---- opening ---- */

/* A quadratic's problem goes into the folder with it. */
static int copy_problem(sl_folder *f, const sl_experiment *experiment, sl_error *error) {
    char *text;
    int result = sl_text_read(&text, experiment->model.path, PROBLEM_BYTES_MAX, error);
    if (result != 0)
        return result;
    result = write_text(f, "problem.json", text, "", error);
    free(text);
    return result;
}

static char *config_text(const sl_experiment *experiment) {
    char *text = sl_experiment_json(experiment);
    if (text == NULL || experiment->model.kind != SL_MODEL_QUADRATIC)
        return text;
    json_t *root = json_loads(text, 0, NULL);
    free(text);
    json_object_set_new(json_object_get(root, "model"), "path", json_string("problem.json"));
    text = sl_json_text(root, JSON_INDENT(2));
    json_decref(root);
    return text;
}

static bool exists(const char *folder, const char *name) {
    char path[SL_PATH_MAX + NAME_MAX_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* *joined: the folder holds this configuration already. */
static int compare_config(const char *folder, const char *config, bool *joined, sl_error *error) {
    char path[SL_PATH_MAX + NAME_MAX_BYTES], *there;
    *joined = false;
    if (!exists(folder, "config.json"))
        return 0;
    snprintf(path, sizeof path, "%s/config.json", folder);
    int result = sl_text_read(&there, path, CONFIG_BYTES_MAX, error);
    if (result != 0)
        return result;
    size_t length = strlen(config);
    *joined = strncmp(there, config, length) == 0 && strcmp(there + length, "\n") == 0;
    free(there);
    return *joined ? 0
                   : sl_fail(error, SL_EFILE,
                             "%s: this folder holds a run with another configuration; choose "
                             "another with --out",
                             path);
}

/* What a run, or this rank of one, must not find. */
static int refuse_remains(const char *folder, int64_t rank, sl_error *error) {
    char metrics[NAME_MAX_BYTES], parameters[NAME_MAX_BYTES];
    snprintf(metrics, sizeof metrics, "metrics-%lld.jsonl", (long long)rank);
    snprintf(parameters, sizeof parameters, "parameters-%lld.jsonl", (long long)rank);
    if (exists(folder, rank < 0 ? "config.json" : "summary.json"))
        return sl_fail(error, SL_EFILE,
                       "%s: this folder already holds a %srun; choose another with --out", folder,
                       rank < 0 ? "" : "finished ");
    if (exists(folder, metrics) || exists(folder, parameters))
        return sl_fail(error, SL_EFILE,
                       "%s: agent %lld has already written to this folder; choose another with "
                       "--out",
                       folder, (long long)rank);
    return 0;
}

int sl_folder_check(const char *path, const sl_experiment *experiment, int64_t rank,
                    sl_error *error) {
    char *config = config_text(experiment);
    bool joined;
    if (config == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    int result = refuse_remains(path, rank, error);
    if (result == 0)
        result = compare_config(path, config, &joined, error);
    free(config);
    return result;
}

static int write_config(sl_folder *f, const sl_experiment *experiment, sl_error *error) {
    char *config = config_text(experiment);
    if (config == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", f->path);
    bool joined = false;
    int result = f->all_nodes ? refuse_remains(f->path, -1, error) : 0;
    if (result == 0)
        result = compare_config(f->path, config, &joined, error);
    if (result == 0 && !joined && experiment->model.kind == SL_MODEL_QUADRATIC)
        result = copy_problem(f, experiment, error);
    if (result == 0 && !joined)
        result = write_text(f, "config.json", config, "\n", error);
    free(config);
    return result;
}

static int give(sl_folder **out, sl_folder *f, int result) {
    if (result != 0)
        sl_folder_close(&f, NULL);
    else
        *out = f;
    return result;
}

static int make(sl_folder **out, const char *path, const sl_experiment *experiment, bool all_nodes,
                sl_error *error) {
    int result = sl_folder_make(path, error);
    if (result != 0)
        return result;
    sl_folder *f = calloc(1, sizeof *f);
    if (f != NULL)
        f->metrics = calloc(sl_experiment_ranks(experiment), sizeof *f->metrics);
    if (f == NULL || f->metrics == NULL) {
        free(f);
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    }
    memcpy(f->path, path, strlen(path) + 1);
    sl_files_open(&f->files);
    f->all_nodes = all_nodes;
    f->nodes = sl_experiment_ranks(experiment);
    f->in_order = true;
    f->kept = experiment->record.models;
    f->writes_safetensors = experiment->record.safetensors;
    const bool few = !all_nodes || f->nodes <= SL_FOLDER_METRICS_MAX;
    if (experiment->record.tensorboard)
        result = sl_tensorboard_open(&f->tensorboard, path, few ? f->nodes : 0, error);
    return give(out, f, result);
}

int sl_folder_open(sl_folder **out, const char *path, const sl_experiment *experiment,
                   bool all_nodes, sl_error *error) {
    sl_folder *f;
    int result = make(&f, path, experiment, all_nodes, error);
    return result != 0 ? result : give(out, f, write_config(f, experiment, error));
}

int sl_folder_layout(sl_folder *f, const sl_tensor *tensors, size_t count, sl_error *error) {
    return f->writes_safetensors
               ? sl_safetensors_head(&f->head, &f->head_bytes, tensors, count, error)
               : 0;
}

/* ---- lines ---- */

static int append_text(sl_folder *f, const char *name, sl_lines *lines, char *text,
                       sl_error *error) {
    char path[SL_PATH_MAX + NAME_MAX_BYTES];
    path_of(f, name, path);
    if (text == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    const size_t bytes = strlen(text), padding = sl_lines_padding(lines, bytes + 1);
    char *whole = realloc(text, bytes + padding + 1);
    if (whole == NULL) {
        free(text);
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    }
    memset(whole + bytes, ' ', padding);
    whole[bytes + padding] = '\n';
    int result = sl_lines_append(&f->files, lines, path, whole, bytes + padding + 1, error);
    free(whole);
    return result;
}

/* Appends an object (taken) as one line, and its numbers to an event file. */
static int append_object(sl_folder *f, const char *name, sl_lines *lines, int64_t rank,
                         json_t *object, sl_error *error) {
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12));
    int result = append_text(f, name, lines, text, error);
    if (result == 0)
        result = sl_tensorboard_add(f->tensorboard, &f->files, rank, object, error);
    json_decref(object);
    return result;
}

/* Which file of lines is this rank's? Of many nodes, all have the first. */
static uint32_t metrics_index(const sl_folder *f, uint32_t rank) {
    return f->all_nodes && f->nodes > SL_FOLDER_METRICS_MAX ? 0 : rank;
}

static void metrics_name(const sl_folder *f, uint32_t rank, char name[NAME_MAX_BYTES]) {
    if (f->all_nodes && f->nodes > SL_FOLDER_METRICS_MAX)
        snprintf(name, NAME_MAX_BYTES, "metrics.jsonl");
    else
        snprintf(name, NAME_MAX_BYTES, "metrics-%u.jsonl", rank);
}

int sl_folder_metrics(sl_folder *f, const sl_record *record, sl_error *error) {
    char name[NAME_MAX_BYTES];
    metrics_name(f, record->rank, name);
    return append_object(f, name, &f->metrics[metrics_index(f, record->rank)], record->rank,
                         sl_record_json(record), error);
}

int sl_folder_consensus(sl_folder *f, uint64_t round, const sl_consensus *consensus,
                        sl_error *error) {
    return append_object(f, "consensus.jsonl", &f->consensus, SL_TENSORBOARD_MEAN,
                         sl_consensus_json(round, consensus), error);
}

static int remember_line(sl_folder *f, line l, sl_error *error) {
    if (f->line_count == f->line_room) {
        size_t room = f->line_room ? 2 * f->line_room : 64;
        line *lines = realloc(f->lines, room * sizeof *lines);
        if (lines == NULL)
            return sl_fail(error, SL_ENOMEM, "parameters.jsonl: out of memory");
        f->lines = lines;
        f->line_room = room;
    }
    if (f->line_count > 0) {
        const line *last = &f->lines[f->line_count - 1];
        l.offset = last->offset + last->bytes;
        f->in_order = f->in_order &&
                      (last->round < l.round || (last->round == l.round && last->rank < l.rank));
    }
    f->lines[f->line_count++] = l;
    return 0;
}

static void parameters_path(const sl_folder *f, uint32_t rank,
                            char path[SL_PATH_MAX + NAME_MAX_BYTES]) {
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "parameters-%u.jsonl", rank);
    path_of(f, f->all_nodes ? "parameters.jsonl" : name, path);
}

/* Nine digits bring a float back bit for bit; -0 without a fraction would be read as the integer 0.
 */
static void write_float(FILE *out, const char *before, float x) {
    if (!isfinite(x))
        fprintf(out, "%snull", before);
    else if (x == 0)
        fprintf(out, "%s%s", before, signbit(x) ? "-0.0" : "0");
    else
        fprintf(out, "%s%.9g", before, (double)x);
}

int sl_folder_parameters(sl_folder *f, uint64_t round, uint32_t rank, const float *x,
                         size_t dimension, double push_sum_weight, sl_error *error) {
    char path[SL_PATH_MAX + NAME_MAX_BYTES], *text = NULL;
    size_t bytes = 0;
    parameters_path(f, rank, path);
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    fprintf(out, "{\"round\":%llu,\"node\":%u,\"parameters\":[", (unsigned long long)round, rank);
    for (size_t i = 0; i < dimension; i++)
        write_float(out, i ? "," : "", x[i]);
    fprintf(out, "],\"push_sum_weight\":%.17g}\n", push_sum_weight);
    if (fclose(out) != 0) {
        free(text);
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    }
    int result = sl_lines_append(&f->files, &f->parameters, path, text, bytes, error);
    free(text);
    return result != 0 ? result
                       : remember_line(
                             f, (line){.round = round, .bytes = (long)bytes, .rank = rank}, error);
}

/* ---- going on ---- */

/* The best evaluation among the lines that stay, and when the last of them was written. */
typedef struct history {
    sl_folder *folder;
    bool evaluated; /* the file's evaluations decide about model-best */
    double seconds;
} history;

static bool is_better(const sl_evaluation *a, const sl_evaluation *b) {
    if (isnan(a->accuracy) || a->accuracy == b->accuracy)
        return a->loss < b->loss;
    return a->accuracy > b->accuracy;
}

static double number_of(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int look_at_line(void *context, const char *text, size_t bytes, sl_error *error) {
    history *h = context;
    (void)error; /* what is no JSON says nothing */
    json_t *object = json_loadb(text, bytes, 0, NULL);
    const sl_evaluation e = {number_of(object, "test_loss"), number_of(object, "accuracy")};
    const double seconds = number_of(object, "time");
    if (seconds > h->seconds)
        h->seconds = seconds;
    if (h->evaluated && isfinite(e.loss) &&
        (h->folder->best_round == 0 || is_better(&e, &h->folder->best))) {
        h->folder->best_round = (uint64_t)json_integer_value(json_object_get(object, "round"));
        h->folder->best = e;
    }
    json_decref(object);
    return 0;
}

static int remember_parameters(void *context, const char *text, size_t bytes, sl_error *error) {
    line l = {.bytes = (long)bytes};
    if (sscanf(text, "{\"round\":%llu,\"node\":%u", &(unsigned long long){0}, &l.rank) != 2)
        return 0;
    l.round = strtoull(text + strlen("{\"round\":"), NULL, 10);
    return remember_line(context, l, error);
}

static int cut_lines(sl_folder *f, sl_lines *lines, const char *path, sl_line_ends ends,
                     int (*each)(void *context, const char *line, size_t bytes, sl_error *error),
                     void *context, sl_error *error) {
    int result = sl_history_cut(&f->files, path, ends, each, context, &lines->size, error);
    lines->begun = access(path, F_OK) == 0;
    return result;
}

static int cut_all(sl_folder *f, int64_t rank, const uint64_t *rounds, history *h,
                   sl_error *error) {
    char path[SL_PATH_MAX + NAME_MAX_BYTES], name[NAME_MAX_BYTES];
    const uint32_t first = rank < 0 ? 0 : (uint32_t)rank, end = rank < 0 ? f->nodes : first + 1;
    const sl_line_ends all = {rounds, rank < 0 ? f->nodes : 1};
    uint64_t first_of_all = UINT64_MAX;
    int result = 0;
    sl_tensorboard_resume(f->tensorboard, first, all);
    for (uint32_t i = 0; i < all.count; i++)
        first_of_all = rounds[i] < first_of_all ? rounds[i] : first_of_all;
    for (uint32_t i = first; i < end && result == 0; i++) {
        metrics_name(f, i, name);
        path_of(f, name, path);
        h->evaluated = rank >= 0;
        result = cut_lines(f, &f->metrics[metrics_index(f, i)], path, all, look_at_line, h, error);
        if (metrics_index(f, i) != i)
            break; /* one file for all */
    }
    path_of(f, "consensus.jsonl", path);
    h->evaluated = true;
    if (result == 0 && rank < 0)
        result = cut_lines(f, &f->consensus, path, (sl_line_ends){&first_of_all, 1}, look_at_line,
                           h, error);
    parameters_path(f, first, path);
    return result != 0 ? result
                       : cut_lines(f, &f->parameters, path, all, remember_parameters, f, error);
}

int sl_folder_resume(sl_folder **out, const char *path, const sl_experiment *experiment,
                     int64_t rank, const uint64_t *rounds, double *seconds, sl_error *error) {
    char summary[SL_PATH_MAX + NAME_MAX_BYTES];
    sl_folder *f;
    int result = make(&f, path, experiment, rank < 0, error);
    if (result != 0)
        return result;
    history h = {.folder = f};
    char *config = config_text(experiment);
    result = config == NULL ? sl_fail(error, SL_ENOMEM, "%s: out of memory", path)
                            : write_text(f, "config.json", config, "\n", error);
    free(config);
    if (result == 0)
        result = cut_all(f, rank, rounds, &h, error);
    path_of(f, "summary.json", summary);
    if (result == 0 && unlink(summary) != 0 && errno != ENOENT)
        result = sl_files_fail(summary, error);
    *seconds = h.seconds;
    return give(out, f, result);
}

/* ---- models and summary ---- */

static void model_name(char name[NAME_MAX_BYTES], int64_t rank, const char *which,
                       const char *ending) {
    if (rank < 0)
        snprintf(name, NAME_MAX_BYTES, "model%s%s", which, ending);
    else
        snprintf(name, NAME_MAX_BYTES, "model-%lld%s%s", (long long)rank, which, ending);
}

/* Of a whole run's folder, one of its many nodes. An agent's own is the result that it has. */
static bool is_one_of_many(const sl_folder *f, int64_t rank) {
    return f->all_nodes && rank >= 0;
}

static bool is_kept(const sl_folder *f, int64_t rank) {
    return f->kept == SL_MODELS_ALL || (f->kept == SL_MODELS_MEAN && !is_one_of_many(f, rank));
}

/* One that is not kept is passed over. */
static int write_model(sl_folder *f, int64_t rank, const char *which, const float *x,
                       size_t dimension, sl_sync sync, sl_error *error) {
    char name[NAME_MAX_BYTES], head[SL_NPY_HEAD_BYTES];
    const size_t bytes = dimension * sizeof *x;
    if (!is_kept(f, rank))
        return 0;
    sl_npy_head(head, dimension);
    model_name(name, rank, which, ".npy");
    int result = write_whole(f, name, head, sizeof head, x, bytes, sync, error);
    if (result != 0 || f->head == NULL || is_one_of_many(f, rank))
        return result;
    model_name(name, rank, which, ".safetensors");
    return write_whole(f, name, f->head, f->head_bytes, x, bytes, sync, error);
}

/* One sync for all of a run's final models comes with the summary: ten thousand single ones would
 * take longer than the run. */
int sl_folder_model(sl_folder *f, int64_t rank, const char *which, const float *x, size_t dimension,
                    sl_error *error) {
    return write_model(f, rank, which, x, dimension,
                       is_one_of_many(f, rank) ? SL_SYNC_LATER : SL_SYNC_NAME, error);
}

int sl_folder_best(sl_folder *f, int64_t rank, uint64_t round, const sl_evaluation *evaluation,
                   const float *x, size_t dimension, sl_error *error) {
    if (!isfinite(evaluation->loss) || (f->best_round > 0 && !is_better(evaluation, &f->best)))
        return 0;
    int result = write_model(f, rank, "-best", x, dimension, SL_SYNC_CONTENT, error);
    if (result != 0)
        return result;
    f->best_round = round;
    f->best = *evaluation;
    return 0;
}

int sl_folder_remember(sl_folder *f, uint64_t round, const sl_evaluation *evaluation,
                       const float *x, size_t dimension, sl_error *error) {
    if (!isfinite(evaluation->loss) || f->kept == SL_MODELS_NONE)
        return 0;
    if (f->last == NULL && (f->last = malloc(dimension * sizeof *f->last)) == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a copy of %zu parameters", dimension);
    memcpy(f->last, x, dimension * sizeof *x);
    f->last_dimension = dimension;
    f->last_round = round;
    return 0;
}

int sl_folder_rescue(sl_folder *f, int64_t rank, uint64_t *round, sl_error *error) {
    *round = f->last_round;
    return *round > 0 ? sl_folder_model(f, rank, "-last", f->last, f->last_dimension, error) : 0;
}

static int sync_all(sl_folder *f, sl_error *error) {
    int folder = sl_files_descriptor(&f->files, f->path, O_RDONLY | O_DIRECTORY);
    bool good = folder >= 0 && syncfs(folder) == 0;
    int reason = errno;
    if (folder >= 0)
        close(folder);
    errno = reason;
    return good ? 0 : sl_files_fail(f->path, error);
}

/* The summary comes last: where it stands, everything else is on the disk. */
int sl_folder_summary(sl_folder *f, const sl_summary *s, sl_error *error) {
    int result = sync_all(f, error);
    if (result != 0)
        return result;
    json_t *root = sl_summary_json(s, f->best_round, &f->best);
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    json_decref(root);
    if (text == NULL)
        return sl_fail(error, SL_ENOMEM, "summary.json: out of memory");
    result = write_text(f, "summary.json", text, "\n", error);
    free(text);
    return result;
}

/* ---- closing ---- */

static int by_round_then_rank(const void *x, const void *y) {
    const line *a = x, *b = y;
    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Copies the lines in order into a new file: a file may be larger than the memory. */
static int sort_lines(sl_folder *f, sl_error *error) {
    char path[SL_PATH_MAX + NAME_MAX_BYTES];
    sl_whole w;
    parameters_path(f, f->lines[0].rank, path);
    int from = sl_files_descriptor(&f->files, path, O_RDONLY);
    if (from < 0)
        return sl_fail(error, SL_EFILE, "%s: cannot be read: %s", path, strerror(errno));
    int result = sl_whole_open(&w, &f->files, path, error);
    qsort(f->lines, f->line_count, sizeof *f->lines, by_round_then_rank);
    for (size_t i = 0; i < f->line_count && result == 0; i++)
        result = sl_whole_copy(&w, from, f->lines[i].offset, (size_t)f->lines[i].bytes, error);
    if (result == 0)
        result = sl_whole_commit(&w, SL_SYNC_NAME, error);
    close(from);
    return result;
}

static void close_files(sl_folder *f) {
    for (uint32_t i = 0; i < f->nodes; i++)
        sl_lines_close(&f->files, &f->metrics[i]);
    sl_lines_close(&f->files, &f->consensus);
    sl_lines_close(&f->files, &f->parameters);
    sl_tensorboard_close(&f->tensorboard, &f->files);
    sl_files_close(&f->files);
}

int sl_folder_close(sl_folder **folder, sl_error *error) {
    sl_folder *f = *folder;
    if (f == NULL)
        return 0;
    *folder = NULL;
    int result = f->in_order ? 0 : sort_lines(f, error);
    close_files(f);
    free(f->metrics);
    free(f->lines);
    free(f->last);
    free(f->head);
    free(f);
    return result;
}
