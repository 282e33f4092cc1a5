/* cuts.c - whose a checkpoint is, which there are, and which of them are whole; see
 * starling/checkpoint.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/disk.h"
#include "checkpoint/cut_file.h"

enum { RANKS_NAMED = 8 };

int sl_checkpoint_owner_of(sl_checkpoint_owner *out, const sl_experiment *e, const sl_task *task,
                           uint64_t run_id, sl_error *error) {
    const sl_checkpoint_owner owner = {
        .run = run_id,
        .nodes = sl_topology_nodes(e->topology),
        .dimension = task->dimension,
        .seed = e->seed,
        .topology = sl_topology_hash(e->topology),
        .layout = task->layout_hash,
        .data_set = task->data_hash,
        .algorithm = sl_experiment_lasting_hash(e, SL_SECTION_algorithm),
        .optimizer = sl_experiment_lasting_hash(e, SL_SECTION_optimizer),
        .model = sl_experiment_lasting_hash(e, SL_SECTION_model),
        .data = sl_experiment_lasting_hash(e, SL_SECTION_data),
    };
    if (owner.algorithm == 0 || owner.optimizer == 0 || owner.model == 0 || owner.data == 0)
        return sl_fail(error, SL_ENOMEM, "checkpoint: out of memory");
    *out = owner;
    return 0;
}

void sl_checkpoint_folder(const sl_experiment *e, const char *run, char out[SL_PATH_MAX]) {
    if (e->checkpoint.path[0] != '\0')
        snprintf(out, SL_PATH_MAX, "%s", e->checkpoint.path);
    else
        snprintf(out, SL_PATH_MAX, "%s/checkpoints", run);
}

/* ---- listing ---- */

typedef struct listing {
    sl_checkpoint_file *files;
    size_t count, room;
} listing;

static int take_name(void *context, const char *name) {
    listing *l = context;
    sl_checkpoint_file file;
    if (!sl_cut_name_read(&file, name))
        return 0;
    if (l->count == l->room) {
        const size_t room = l->room > 0 ? 2 * l->room : 64;
        sl_checkpoint_file *files = realloc(l->files, room * sizeof *files);
        if (files == NULL)
            return ENOMEM;
        l->files = files;
        l->room = room;
    }
    l->files[l->count++] = file;
    return 0;
}

static int by_round(const void *x, const void *y) {
    const sl_checkpoint_file *a = x, *b = y;
    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

int sl_checkpoint_list(sl_checkpoint_file **out, size_t *count, const char *folder,
                       sl_error *error) {
    listing l = {0};
    int why = sl_disk_list(folder, take_name, &l);
    if (why != 0 && why != ENOENT) {
        free(l.files);
        return sl_fail(error, why == ENOMEM ? SL_ENOMEM : SL_EFILE, "%s: %s", folder,
                       strerror(why));
    }
    if (l.count > 0)
        qsort(l.files, l.count, sizeof *l.files, by_round);
    *out = l.files;
    *count = l.count;
    return 0;
}

size_t sl_cut_newer(uint64_t *out, size_t room, const char *folder, uint32_t from, uint32_t to,
                    uint64_t round) {
    sl_checkpoint_file *files = NULL;
    size_t count = 0, found = 0;
    if (sl_checkpoint_list(&files, &count, folder, NULL) != 0)
        return 0;
    for (size_t i = 0; i < count && found < room; i++) {
        const sl_checkpoint_file *f = &files[i];
        const bool is_own = f->rank >= from && f->rank < to;
        if (is_own && f->round > round && (found == 0 || out[found - 1] != f->round))
            out[found++] = f->round;
    }
    free(files);
    return found;
}

/* ---- the newest whole cut ---- */

/* Do all ranks [from, to) of the view have a file among these of one round (count), by rank? If
 * not, which have none. */
static int check_there(const sl_checkpoint_file *files, size_t count,
                       const sl_checkpoint_view *view, uint32_t from, uint32_t to,
                       sl_error *error) {
    char ranks[160] = "";
    uint32_t lack = 0;
    for (uint32_t rank = from; rank < to; rank++) {
        while (count > 0 && files->rank < rank) {
            files++;
            count--;
        }
        if ((count > 0 && files->rank == rank) || !sl_checkpoint_view_has(view, rank))
            continue;
        const size_t used = strlen(ranks);
        if (lack < RANKS_NAMED)
            snprintf(ranks + used, sizeof ranks - used, "%s %" PRIu32, lack > 0 ? "," : "", rank);
        else if (lack == RANKS_NAMED)
            snprintf(ranks + used, sizeof ranks - used, " and more");
        lack++;
    }
    if (lack == 0)
        return 0;
    return sl_fail(error, SL_EFILE, "rank%s%s ha%s none", lack > 1 ? "s" : "", ranks,
                   lack > 1 ? "ve" : "s");
}

int sl_checkpoint_view_at(sl_checkpoint_view *out, const char *folder, uint64_t round,
                          sl_error *error) {
    sl_checkpoint_file *files = NULL;
    size_t count = 0;
    *out = (sl_checkpoint_view){0};
    int result = sl_checkpoint_list(&files, &count, folder, error);
    for (size_t i = 0; i < count && result == 0; i++) {
        sl_checkpoint_view view = {0};
        if (files[i].round == round)
            result = sl_checkpoint_view_of(&view, folder, files[i], error);
        if (view.number > out->number)
            *out = view;
    }
    free(files);
    return result;
}

/* Why not all ranks [from, to) have a good file among these of one round (count), by rank; 0: they
 * have. */
static int check_cut(const sl_checkpoint_file *files, size_t count, const char *folder,
                     const sl_checkpoint_owner *owner, uint32_t from, uint32_t to,
                     sl_error *error) {
    sl_checkpoint_view view;
    int result = sl_checkpoint_view_at(&view, folder, files->round, error);
    if (result == 0)
        result = check_there(files, count, &view, from, to, error);
    for (size_t i = 0; i < count && result == 0; i++)
        if (files[i].rank >= from && files[i].rank < to &&
            sl_checkpoint_view_has(&view, files[i].rank))
            result = sl_checkpoint_check(folder, files[i], owner, NULL, error);
    return result;
}

/* Adds to `lacks`, cut off where it is full. */
static void add_lack(char *lacks, size_t room, uint64_t round, const sl_error *why) {
    const size_t used = strlen(lacks);
    snprintf(lacks + used, room - used, "%sround %" PRIu64 ": %.300s", used > 0 ? "; " : "", round,
             why->text);
}

/* A process that still writes there would lose its files, and its lines, to one that goes on. */
static int check_free(const char *folder, uint32_t from, uint32_t to, sl_error *error) {
    char path[SL_CUT_PATH_MAX];
    int handle;
    snprintf(path, sizeof path, "%s/lock", folder);
    int why = sl_disk_lock(&handle, path, from, to - from);
    if (why == 0)
        sl_disk_close(handle);
    return why != EAGAIN
               ? 0
               : sl_fail(error, SL_EFILE, "%s: another process writes to it; end it first", folder);
}

int sl_checkpoint_newest(uint64_t *round, const char *folder, const sl_checkpoint_owner *owner,
                         uint32_t from, uint32_t to, uint64_t most,
                         void (*notice)(void *context, const char *text), void *context,
                         sl_error *error) {
    sl_checkpoint_file *files;
    size_t count;
    int in_use = check_free(folder, from, to, error);
    if (in_use != 0)
        return in_use;
    char lacks[SL_ERROR_TEXT_MAX - 128] = "", text[SL_ERROR_TEXT_MAX];
    int result = sl_checkpoint_list(&files, &count, folder, error);
    if (result != 0)
        return result;
    uint64_t found = 0;
    while (count > 0 && found == 0 && result == 0) {
        size_t first = count - 1;
        while (first > 0 && files[first - 1].round == files[count - 1].round)
            first--;
        sl_error why;
        const int checked =
            files[first].round > most
                ? sl_fail(&why, SL_EFILE, "lines of metrics are missing from round %" PRIu64 " on",
                          most)
                : check_cut(files + first, count - first, folder, owner, from, to, &why);
        if (checked == 0)
            found = files[first].round;
        else if (checked == SL_ENOMEM) /* nothing is wrong with the files */
            result = sl_fail(error, SL_ENOMEM, "%s", why.text);
        else
            add_lack(lacks, sizeof lacks, files[first].round, &why);
        count = first;
    }
    free(files);
    if (result != 0)
        return result;
    if (found == 0)
        return sl_fail(error, SL_EFILE, "%s: holds no whole checkpoint%s%s", folder,
                       lacks[0] != '\0' ? ": " : "; checkpoint.every makes them", lacks);
    snprintf(text, sizeof text, "going on from round %" PRIu64 "; newer ones are not whole: %.800s",
             found, lacks);
    if (lacks[0] != '\0' && notice != NULL)
        notice(context, text);
    *round = found;
    return 0;
}
