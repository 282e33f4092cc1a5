/* disk.c - the disk of the run folder: may it be written, is there room, how fast is it. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "check/times_page.h"
#include "doctor/doctor.h"

enum { PIECE_BYTES = 1 << 20, PIECES = 8, INODES_MIN = 64 };
static const double spare_bytes = 16e6, /* for metrics, events and logs */
    written_s = 1,                      /* at most */
    slow_mb = 2;                        /* MB/s: of no disk that works */

/* The folder, or the nearest one above it that is there. */
static void find_folder(char path[SL_PATH_MAX]) {
    while (access(path, F_OK) != 0 && strcmp(path, ".") != 0 && strcmp(path, "/") != 0) {
        char copy[SL_PATH_MAX];
        snprintf(copy, sizeof copy, "%s", path);
        snprintf(path, SL_PATH_MAX, "%s", dirname(copy));
    }
}

static void choose(const doctor *d, char path[SL_PATH_MAX]) {
    const char *checkpoints = d->trial.experiment->checkpoint.path;
    snprintf(path, SL_PATH_MAX, "%s",
             d->o->out != NULL        ? d->o->out
             : checkpoints[0] != '\0' ? checkpoints
                                      : "runs");
    find_folder(path);
}

/* Of one node's state: all its vectors but the gradient, at most. */
static double checkpoint_bytes(const doctor *d) {
    sl_run_memory m;
    trial_memory(&d->trial, &m);
    return d->trial.experiment->checkpoint.every > 0 ? (double)m.vectors : 0;
}

/* One more is written before the oldest is removed; and the models at the end. */
static double needed_bytes(const doctor *d) {
    const sl_experiment *e = d->trial.experiment;
    const double model = 4 * (double)d->trial.task.dimension, kept = (double)e->checkpoint.keep + 1;
    return spare_bytes + d->agents * (2 * model + kept * checkpoint_bytes(d));
}

/* Seconds that so many bytes take, synced; NaN: errno says why not. Leaves no file. */
static double time_writing(const char *folder, double *bytes) {
    char path[SL_PATH_MAX + 16], *piece = calloc(1, PIECE_BYTES);
    snprintf(path, sizeof path, "%s/.doctor-XXXXXX", folder);
    const double began_s = now_seconds();
    const int fd = piece != NULL ? mkostemp(path, O_CLOEXEC) : -1;
    bool well = fd >= 0;
    *bytes = 0;
    if (well)
        unlink(path);
    for (int i = 0; i < PIECES && well && now_seconds() - began_s < written_s; i++) {
        well = write(fd, piece, PIECE_BYTES) == PIECE_BYTES;
        *bytes += PIECE_BYTES;
    }
    well = well && fsync(fd) == 0;
    const int why = errno;
    if (fd >= 0)
        close(fd);
    free(piece);
    errno = why;
    return well ? now_seconds() - began_s : NAN;
}

static void say_speed(doctor *d, const char *folder) {
    double bytes;
    const double seconds = time_writing(folder, &bytes);
    const int why = errno;
    const double speed = bytes / seconds, one_s = d->agents * checkpoint_bytes(d) / speed,
                 between_s =
                     (double)d->trial.experiment->checkpoint.every * round_estimate(&d->trial);
    if (isnan(seconds))
        report_fail(&d->report, "disk", "name another folder with --out, or mend this one",
                    "%s: nothing can be written: %s", folder, strerror(why));
    else if (one_s > between_s)
        report_warn(&d->report, "disk", "raise checkpoint.every, or take a faster disk",
                    "%s: %.0f MB/s; checkpoints take %.3g s, and one is due each %.3g s", folder,
                    1e-6 * speed, one_s, between_s);
    else if (speed < 1e6 * slow_mb)
        report_warn(&d->report, "disk", "take a faster disk, or raise checkpoint.every",
                    "%s: %.3g MB/s", folder, 1e-6 * speed);
    else
        report_ok(&d->report, "disk", "%s: %.0f MB/s", folder, 1e-6 * speed);
}

/* False: there is too little. */
static bool say_space(doctor *d, const char *folder) {
    static const char remedy[] =
        "remove old runs, name another disk with --out, or lower checkpoint.keep";
    struct statvfs disk;
    if (statvfs(folder, &disk) != 0)
        return true;
    const double there = (double)disk.f_bavail * (double)disk.f_frsize, needed = needed_bytes(d);
    const bool lacks_names = disk.f_files > 0 && disk.f_favail < INODES_MIN;
    if (there < needed)
        report_fail(&d->report, "disk space", remedy, "%s: %.1f MB are free, %.1f MB are needed",
                    folder, 1e-6 * there, 1e-6 * needed);
    else if (lacks_names)
        report_fail(&d->report, "disk space", remedy, "%s: only %llu more files fit", folder,
                    (unsigned long long)disk.f_favail);
    else
        report_ok(&d->report, "disk space", "%s: %.1f MB of %.1f MB", folder, 1e-6 * needed,
                  1e-6 * there);
    return there >= needed && !lacks_names;
}

void look_at_disk(doctor *d) {
    char folder[SL_PATH_MAX];
    sl_error error;
    choose(d, folder);
    if (d->o->out != NULL && d->given &&
        sl_folder_check(d->o->out, d->trial.experiment, d->has_rank ? (int64_t)d->rank : -1,
                        &error) != 0)
        report_warn(&d->report, "run folder", "an agent goes on there; else name another --out",
                    "%s", error.text);
    if (say_space(d, folder))
        say_speed(d, folder);
}
