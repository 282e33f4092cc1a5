/* replay_compare.c - see replay_compare.h. */
#include "run/replay_compare.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

enum { FILE_PATH_MAX = SL_PATH_MAX + 64, STATE_NUMBERS = 4096 };

/* A line of metrics. */
typedef struct row {
    uint64_t round;
    uint32_t node;
    size_t line;    /* in the order in which they were read */
    json_t *object; /* owned */
} row;

typedef struct rows {
    row *items; /* (count) */
    size_t count, room;
} rows;

/* ---- metrics ---- */

static void close_rows(rows *all) {
    for (size_t i = 0; i < all->count; i++)
        json_decref(all->items[i].object);
    free(all->items);
    *all = (rows){0};
}

/* Takes the object. */
static int add_row(rows *all, json_t *object, sl_error *error) {
    if (all->count == all->room) {
        const size_t room = all->room > 0 ? 2 * all->room : 64;
        row *items = realloc(all->items, room * sizeof *items);
        if (items == NULL) {
            json_decref(object);
            return sl_fail(error, SL_ENOMEM, "out of memory for %zu lines of metrics", room);
        }
        all->items = items;
        all->room = room;
    }
    all->items[all->count] =
        (row){.round = (uint64_t)json_integer_value(json_object_get(object, "round")),
              .node = (uint32_t)json_integer_value(json_object_get(object, "node")),
              .line = all->count,
              .object = object};
    all->count++;
    return 0;
}

/* A file that is not there has no lines. */
static int read_rows(rows *all, const char *path, sl_error *error) {
    const int fd = sl_file_open(path, error);
    if (fd < 0)
        return errno == ENOENT ? 0 : fd;
    FILE *file = fdopen(fd, "r");
    char *text = NULL;
    size_t room = 0;
    uint64_t line = 0;
    int result = 0;
    if (file == NULL) {
        close(fd);
        return sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    }
    for (ssize_t bytes; result == 0 && (bytes = getline(&text, &room, file)) > 0;) {
        json_error_t problem;
        json_t *object = json_loadb(text, (size_t)bytes, JSON_REJECT_DUPLICATES, &problem);
        line++;
        result = object != NULL ? add_row(all, object, error)
                                : sl_fail(error, SL_EFILE, "%s:%" PRIu64 ": column %d: %s", path,
                                          line, problem.column, problem.text);
    }
    free(text);
    fclose(file);
    return result;
}

static int by_round(const void *x, const void *y) {
    const row *a = x, *b = y;
    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

static int by_round_and_line(const void *x, const void *y) {
    const row *a = x, *b = y;
    const int order = by_round(a, b);
    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

/* Of all nodes, by round, then node. */
static int read_metrics(rows *out, const char *folder, uint32_t nodes, sl_error *error) {
    char path[FILE_PATH_MAX];
    rows all = {0};
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    int result = read_rows(&all, path, error);
    for (uint32_t i = 0; i < nodes && result == 0; i++) {
        snprintf(path, sizeof path, "%s/metrics-%u.jsonl", folder, i);
        result = read_rows(&all, path, error);
    }
    if (result != 0) {
        close_rows(&all);
        return result;
    }
    if (all.count > 0)
        qsort(all.items, all.count, sizeof *all.items, by_round_and_line);
    *out = all;
    return 0;
}

int replay_last_recorded(uint64_t *out, const char *folder, uint32_t ranks, sl_error *error) {
    rows all;
    int result = read_metrics(&all, folder, ranks, error);
    if (result != 0)
        return result;
    *out = all.count > 0 ? all.items[all.count - 1].round : 0;
    close_rows(&all);
    return 0;
}

/* Times and traffic are each run's own: payloads on a GPU have longer headers, and of nodes at
 * their own times nothing says what had begun to leave when an average was cut. */
static bool is_compared(const replay_difference *d, const char *key) {
    return (strncmp(key, "messages_", 9) != 0 || !d->apart) && strcmp(key, "seconds") != 0 &&
           strcmp(key, "time") != 0 && strcmp(key, "bytes_sent") != 0 &&
           strcmp(key, "bytes_received") != 0;
}

static bool name_number(replay_difference *d, const row *first, const json_t *again) {
    const char *key;
    json_t *value;
    json_object_foreach(first->object, key, value) {
        json_t *other = json_object_get(again, key);
        if (!is_compared(d, key) || json_equal(value, other))
            continue;
        char *a = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
        char *b =
            other != NULL ? json_dumps(other, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12)) : NULL;
        snprintf(d->text, sizeof d->text,
                 "node %u, round %" PRIu64 ": %.40s is %.40s, and %.40s here", first->node,
                 first->round, key, a != NULL ? a : "?", b != NULL ? b : "missing");
        free(a);
        free(b);
        return true;
    }
    return false;
}

static void name_end(replay_difference *d, const row *first) {
    char log[32] = "";
    if (d->apart)
        snprintf(log, sizeof log, ": acts-%u.jsonl ends before it", first->node);
    snprintf(d->text, sizeof d->text, "node %u does not come to round %" PRIu64 " here%s",
             first->node, first->round, log);
}

/* Who joins again, after the others have gone on, may have lines of before: of two of a round the
 * later one counts, and one after `whole` need not be there again. */
static void compare_rows(replay_difference *d, const rows *first, const rows *again,
                         const replay_extent *e) {
    for (size_t i = 0; i < first->count && first->items[i].round <= e->last; i++) {
        const row *mine = &first->items[i];
        const row *other = again->count == 0 ? NULL
                                             : bsearch(mine, again->items, again->count,
                                                       sizeof *again->items, by_round);
        if ((other == NULL && mine->round > e->whole) ||
            (i + 1 < first->count && by_round(mine, mine + 1) == 0))
            continue;
        if (other == NULL)
            name_end(d, mine);
        if (other == NULL || name_number(d, mine, other->object))
            return;
        d->lines++;
    }
}

static int compare_metrics(replay_difference *d, uint32_t nodes, const char *first,
                           const char *again, const replay_extent *e, sl_error *error) {
    rows mine = {0}, other = {0};
    int result = read_metrics(&mine, first, nodes, error);
    if (result == 0)
        result = read_metrics(&other, again, nodes, error);
    if (result == 0)
        compare_rows(d, &mine, &other, e);
    close_rows(&mine);
    close_rows(&other);
    return result;
}

/* ---- models ---- */

static int load(float *x, const trial *t, const char *folder, uint32_t rank, sl_error *error) {
    char path[FILE_PATH_MAX];
    size_t count;
    const sl_tensor *tensors = sl_learner_layout(t->learner, &count);
    snprintf(path, sizeof path, "%s/model-%u.npy", folder, rank);
    return sl_tensors_load(x, tensors, count, path, error);
}

static bool is_there(const char *folder, uint32_t rank) {
    char path[FILE_PATH_MAX];
    snprintf(path, sizeof path, "%s/model-%u.npy", folder, rank);
    return access(path, F_OK) == 0;
}

static void name_element(replay_difference *d, uint32_t rank, const float *x, const float *y,
                         size_t dimension) {
    size_t i = 0;
    while (i + 1 < dimension && memcmp(&x[i], &y[i], sizeof x[i]) == 0)
        i++;
    snprintf(d->text, sizeof d->text, "model-%u.npy: element %zu of %zu is %.9g, and %.9g here",
             rank, i, dimension, (double)x[i], (double)y[i]);
}

static int compare_models(replay_difference *d, const trial *t, const char *first,
                          const char *again, sl_error *error) {
    const size_t dimension = t->task.dimension, bytes = dimension * sizeof(float);
    float *x = malloc(bytes), *y = malloc(bytes);
    int result =
        x != NULL && y != NULL ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for two models");
    const uint32_t ranks = sl_experiment_ranks(t->experiment);
    for (uint32_t rank = 0; rank < ranks && result == 0 && d->text[0] == '\0'; rank++) {
        if (!is_there(first, rank))
            continue;
        result = load(x, t, first, rank, error);
        if (result == 0)
            result = load(y, t, again, rank, error);
        if (result == 0 && memcmp(x, y, bytes) != 0)
            name_element(d, rank, x, y, dimension);
        d->models += result == 0;
    }
    free(x);
    free(y);
    return result;
}

/* ---- checkpoints ---- */

/* At the first byte of its vectors; NULL: there is no good file. */
static FILE *open_state(const char *folder, sl_checkpoint_file name) {
    char path[SL_PATH_MAX + 64];
    unsigned char head[8];
    uint64_t length = 0;
    if (sl_checkpoint_check(folder, name, NULL, NULL, NULL) != 0)
        return NULL;
    snprintf(path, sizeof path, "%s/round-%" PRIu64 "-rank-%u.safetensors", folder, name.round,
             name.rank);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return NULL;
    if (fread(head, 1, sizeof head, file) == sizeof head)
        for (int i = 0; i < 8; i++)
            length |= (uint64_t)head[i] << 8 * i;
    fseeko(file, (off_t)length, SEEK_CUR);
    return file;
}

/* Both are read to their ends, unless a number differs. */
static void compare_state(replay_difference *d, FILE *first, FILE *again, sl_checkpoint_file name) {
    float x[STATE_NUMBERS], y[STATE_NUMBERS];
    size_t at = 0, got, other;
    do {
        got = fread(x, sizeof *x, STATE_NUMBERS, first);
        other = fread(y, sizeof *y, STATE_NUMBERS, again);
        const size_t common = got < other ? got : other;
        if (got != other || memcmp(x, y, common * sizeof *x) != 0) {
            size_t i = 0;
            while (i + 1 < common && memcmp(&x[i], &y[i], sizeof *x) == 0)
                i++;
            snprintf(d->text, sizeof d->text,
                     "checkpoint of round %" PRIu64 ", rank %u: number %zu is %.9g, and %.9g here",
                     name.round, name.rank, at + i, (double)x[i], (double)y[i]);
            return;
        }
        at += got;
    } while (got == STATE_NUMBERS);
    d->states++;
}

/* Those of the last round, where there are some: of a run that was asked to end. */
static void compare_states(replay_difference *d, const trial *t, const char *first,
                           const char *again, uint64_t last) {
    char of_run[SL_PATH_MAX], here[SL_PATH_MAX + 16];
    sl_checkpoint_folder(t->experiment, first, of_run);
    snprintf(here, sizeof here, "%s/checkpoints", again);
    for (uint32_t rank = 0; rank < t->nodes && d->text[0] == '\0'; rank++) {
        const sl_checkpoint_file name = {last, rank};
        FILE *x = open_state(of_run, name), *y = open_state(here, name);
        if (x != NULL && y != NULL)
            compare_state(d, x, y, name);
        if (x != NULL)
            fclose(x);
        if (y != NULL)
            fclose(y);
    }
}

int replay_compare(replay_difference *out, const trial *t, const char *first, const char *again,
                   const replay_extent *e, sl_error *error) {
    replay_difference d = {.apart = sl_experiment_is_asynchronous(t->experiment)};
    int result = compare_metrics(&d, sl_experiment_ranks(t->experiment), first, again, e, error);
    if (result == 0 && e->models && d.text[0] == '\0')
        result = compare_models(&d, t, first, again, error);
    if (result == 0 && d.text[0] == '\0')
        compare_states(&d, t, first, again, e->last);
    if (result == 0)
        *out = d;
    return result;
}
