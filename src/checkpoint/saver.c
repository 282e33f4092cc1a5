/* saver.c - see saver.h. */
#include "checkpoint/saver.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/disk.h"
#include "checkpoint/cut_file.h"

static const double tell_every_s = 5; /* what the driver waits for */

struct sl_saver {
    sl_saver_settings settings;
    char folder[SL_PATH_MAX];
    int lock;             /* -1: none */
    sl_image image;       /* the thread's while `busy`, else the driver's */
    uint64_t *kept;       /* (ranks, keep) rounds of the files that are there, oldest first */
    uint64_t *kept_count; /* (ranks) */
    pthread_t thread;
    bool running;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool busy, quit; /* under mutex, like the next two */
    bool told;       /* of the failure under way */
    sl_error last;   /* of the last write; code 0: it is there */
};

/* ---- the files ---- */

static void remove_file(const sl_saver *s, uint64_t round, uint32_t rank) {
    char path[SL_CUT_PATH_MAX];
    sl_cut_path(path, s->folder, (sl_checkpoint_file){round, rank});
    sl_disk_remove(path);
}

/* A file is there: the oldest of its rank goes where there are too many. */
static void keep_file(sl_saver *s, uint64_t round, uint32_t rank) {
    const uint64_t keep = s->settings.keep;
    const uint32_t place = rank - s->settings.from;
    uint64_t *rounds = s->kept + place * keep, *count = &s->kept_count[place];
    if (*count > 0 && rounds[*count - 1] == round)
        return; /* written again */
    if (*count == keep) {
        remove_file(s, rounds[0], rank);
        memmove(rounds, rounds + 1, (size_t)(keep - 1) * sizeof *rounds);
        (*count)--;
    }
    rounds[(*count)++] = round;
}

static bool is_own(const sl_saver *s, uint32_t rank) {
    return rank >= s->settings.from && rank < s->settings.to;
}

/* Of the files of these ranks, those up to the round that is gone on from stay. */
static int take_stock(sl_saver *s, sl_error *error) {
    sl_checkpoint_file *files = NULL;
    size_t count = 0;
    int result = sl_checkpoint_list(&files, &count, s->folder, error);
    for (size_t i = 0; i < count && result == 0; i++) {
        if (!is_own(s, files[i].rank))
            continue;
        if (s->settings.resumed == 0)
            result = sl_fail(error, SL_EFILE,
                             "%s: holds checkpoints of an earlier run (round %" PRIu64
                             " of rank %u); go on from them with --resume, or choose another "
                             "checkpoint.path",
                             s->folder, files[i].round, files[i].rank);
        else if (files[i].round > s->settings.resumed)
            remove_file(s, files[i].round, files[i].rank);
        else
            keep_file(s, files[i].round, files[i].rank);
    }
    free(files);
    return result;
}

/* What a killed process was writing. */
static int remove_half_file(void *context, const char *name) {
    const sl_saver *s = context;
    char path[SL_CUT_PATH_MAX + 8], whole[SL_CUT_NAME_MAX];
    sl_checkpoint_file file;
    const size_t length = strlen(name), ending = strlen(".new");
    if (length <= ending || length - ending >= sizeof whole)
        return 0;
    snprintf(whole, sizeof whole, "%.*s", (int)(length - ending), name);
    if (strcmp(name + length - ending, ".new") != 0 || !sl_cut_name_read(&file, whole) ||
        !is_own(s, file.rank))
        return 0;
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    sl_disk_remove(path);
    return 0;
}

static int open_folder(sl_saver *s, sl_error *error) {
    char path[SL_CUT_PATH_MAX];
    const uint32_t count = s->settings.to - s->settings.from;
    snprintf(path, sizeof path, "%s/lock", s->folder);
    int why = sl_disk_make_folder(s->folder);
    if (why == 0)
        why = sl_disk_lock(&s->lock, path, s->settings.from, count);
    if (why == EAGAIN)
        return sl_fail(error, SL_EFILE,
                       "%s: another run writes its checkpoints there; choose another "
                       "checkpoint.path, or end that run first",
                       s->folder);
    if (why != 0)
        return sl_fail(error, SL_EFILE, "%s: cannot be written: %s", path, strerror(why));
    sl_disk_list(s->folder, remove_half_file, s);
    return take_stock(s, error);
}

/* ---- the thread ---- */

static void tell(sl_saver *s, const char *what, const char *why) {
    char text[SL_ERROR_TEXT_MAX + 128];
    snprintf(text, sizeof text, "warning: %s: %s; training goes on", what, why);
    pthread_mutex_lock(&s->mutex);
    const bool again = s->told;
    s->told = true;
    pthread_mutex_unlock(&s->mutex);
    if (!again && s->settings.notice != NULL)
        s->settings.notice(s->settings.context, text);
}

static void tell_written(const sl_saver *s, uint64_t round, uint32_t rank, const char *why) {
    if (s->settings.written != NULL)
        s->settings.written(s->settings.context, round, rank, why);
}

static void write_image(sl_saver *s, sl_error *error) {
    char what[64];
    const size_t bytes = sl_image_seal(&s->image);
    *error = (sl_error){0};
    if (sl_cut_write(&s->image, bytes, s->folder, error) == 0) {
        keep_file(s, s->image.round, s->image.rank);
        tell_written(s, s->image.round, s->image.rank, NULL);
        return;
    }
    tell_written(s, s->image.round, s->image.rank, error->text);
    snprintf(what, sizeof what, "no checkpoint of round %" PRIu64, s->image.round);
    tell(s, what, error->text);
}

static void *work(void *argument) {
    sl_saver *s = argument;
    pthread_mutex_lock(&s->mutex);
    for (;;) {
        while (!s->busy && !s->quit)
            pthread_cond_wait(&s->changed, &s->mutex);
        if (!s->busy)
            break;
        pthread_mutex_unlock(&s->mutex);
        sl_error error;
        write_image(s, &error);
        pthread_mutex_lock(&s->mutex);
        s->last = error;
        s->busy = false;
        s->told = s->told && error.code != 0;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

/* ---- the driver's ---- */

static int open_all(sl_saver *s, const sl_machine *largest, sl_error *error) {
    const size_t ranks = s->settings.to - s->settings.from;
    s->kept = calloc(ranks, (size_t)s->settings.keep * sizeof *s->kept);
    s->kept_count = calloc(ranks, sizeof *s->kept_count);
    if (s->kept == NULL || s->kept_count == NULL)
        return sl_fail(error, SL_ENOMEM, "checkpoint: out of memory for %zu ranks", ranks);
    int result = open_folder(s, error);
    if (result == 0)
        result = sl_image_open(&s->image, sl_image_vectors(largest), NULL, s->settings.vec,
                               &s->settings.owner, error);
    if (result == 0 && pthread_create(&s->thread, NULL, work, s) != 0)
        return sl_fail(error, SL_ENOMEM, "checkpoint: no thread could be started");
    s->running = result == 0;
    return result;
}

int sl_saver_open(sl_saver **out, const sl_saver_settings *settings, const sl_machine *largest,
                  sl_error *error) {
    sl_saver *s = calloc(1, sizeof *s);
    if (s == NULL)
        return sl_fail(error, SL_ENOMEM, "checkpoint: out of memory");
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    s->settings = *settings;
    s->lock = -1;
    snprintf(s->folder, sizeof s->folder, "%s", settings->folder);
    int result = open_all(s, largest, error);
    if (result != 0)
        sl_saver_close(&s);
    else
        *out = s;
    return result;
}

static void tell_wait(const sl_saver *s, double left_s) {
    char text[160], left[48] = "";
    if (s->settings.notice == NULL)
        return;
    if (isfinite(left_s))
        snprintf(left, sizeof left, "; in %.0f s the next one is left out", left_s);
    snprintf(text, sizeof text,
             "waiting for the disk: the checkpoint of round %" PRIu64 " is still being written%s",
             s->image.round, left);
    s->settings.notice(s->settings.context, text);
}

/* Is the thread idle, at the latest after patience_s? */
static bool wait_for_thread(sl_saver *s, double patience_s) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    pthread_mutex_lock(&s->mutex);
    for (double left_s = patience_s; s->busy && left_s >= 0;) {
        until.tv_sec += (time_t)(left_s < tell_every_s ? left_s : tell_every_s);
        while (s->busy && pthread_cond_timedwait(&s->changed, &s->mutex, &until) == 0)
            ;
        left_s -= tell_every_s;
        if (!s->busy || left_s <= 0)
            continue;
        pthread_mutex_unlock(&s->mutex);
        tell_wait(s, left_s);
        pthread_mutex_lock(&s->mutex);
    }
    const bool idle = !s->busy;
    pthread_mutex_unlock(&s->mutex);
    return idle;
}

/* A view may have more neighbours than the one before, and more vectors with them. */
static int make_room(sl_saver *s, const sl_machine *node, sl_error *error) {
    const size_t vectors = sl_image_vectors(node);
    sl_image larger;
    if (vectors <= s->image.vectors_max)
        return 0;
    const int result =
        sl_image_open(&larger, vectors, NULL, s->settings.vec, &s->settings.owner, error);
    if (result != 0)
        return result;
    sl_image_close(&s->image);
    s->image = larger;
    return 0;
}

bool sl_saver_take(sl_saver *s, const sl_machine *node, uint64_t round, uint32_t rank,
                   const sl_image_extras *extras, double patience_s) {
    sl_error error = {.text = "the one before is still being written"};
    if (!wait_for_thread(s, patience_s) || make_room(s, node, &error) != 0) {
        tell(s, "a checkpoint is left out", error.text);
        tell_written(s, round, rank, error.text);
        return false;
    }
    sl_image_take(&s->image, node, rank, extras);
    pthread_mutex_lock(&s->mutex);
    s->busy = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    return true;
}

int sl_saver_wait(sl_saver *s, sl_error *error) {
    wait_for_thread(s, INFINITY);
    pthread_mutex_lock(&s->mutex);
    const sl_error last = s->last;
    pthread_mutex_unlock(&s->mutex);
    if (last.code != 0 && error != NULL)
        *error = last;
    return last.code;
}

void sl_saver_close(sl_saver **saver) {
    sl_saver *s = *saver;
    if (s == NULL)
        return;
    *saver = NULL;
    pthread_mutex_lock(&s->mutex);
    s->quit = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    if (s->running)
        pthread_join(s->thread, NULL);
    if (s->lock >= 0)
        sl_disk_close(s->lock);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
    sl_image_close(&s->image);
    free(s->kept);
    free(s->kept_count);
    free(s);
}
