/* progress.c - see progress.h. */
#include "compare/progress.h"

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/names.h"
#include "compare/results.h"

enum { LOOK_EVERY_S = 2 };

typedef struct tally {
    size_t done, diverged, under_way, broken, missing;
    double seconds; /* of those that are done, together */
} tally;

static void count(tally *t, ended e) {
    t->done += e == RUN_DONE;
    t->diverged += e == RUN_DIVERGED;
    t->under_way += e == RUN_UNDER_WAY;
    t->broken += e == RUN_STOPPED || e == RUN_FAILED || e == RUN_KILLED;
    t->missing += e == RUN_ABSENT;
}

/* When a file of the folder was written, in seconds; NaN: it is not there. */
static double written_at(const char *folder, const char *name) {
    char path[SL_PATH_MAX + 32];
    struct stat about;
    snprintf(path, sizeof path, "%.*s/%s", SL_PATH_MAX, folder, name);
    return stat(path, &about) == 0
               ? (double)about.st_mtim.tv_sec + 1e-9 * (double)about.st_mtim.tv_nsec
               : NAN;
}

/* Seconds since the run's folder got its configuration. */
static double age_of(const char *folder) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const double age = (double)now.tv_sec - written_at(folder, "config.json");
    return age > 0 ? age : 0;
}

/* That a run took which is done. */
static double seconds_of(const char *folder) {
    const double seconds = written_at(folder, "summary.json") - written_at(folder, "config.json");
    return seconds > 0 ? seconds : 0;
}

static void tell_run(const char *name, uint64_t seed, const char *folder, uint64_t rounds) {
    const uint64_t round = results_round(folder);
    char left[32], text[48] = "";
    if (round > 0 && rounds > round) {
        name_duration(left, sizeof left, age_of(folder) * (double)(rounds - round) / (double)round);
        snprintf(text, sizeof text, ", %s left", left);
    }
    tell_line("  %s, seed %llu: round %llu/%llu%s", name, (unsigned long long)seed,
              (unsigned long long)round, (unsigned long long)rounds, text);
}

static tally look(const study *s, bool tells) {
    tally t = {0};
    char path[SL_PATH_MAX];
    for (size_t i = 0; i < s->variants.count; i++) {
        const variant *v = &s->variants.items[i];
        for (size_t k = 0; k < study_seeds(s) && variant_runs(v); k++) {
            if (study_run_path(s, v, k, path, NULL) != 0)
                continue;
            const ended e = results_look(path, NULL, NULL);
            count(&t, e);
            t.seconds += e == RUN_DONE ? seconds_of(path) : 0;
            if (tells && e == RUN_UNDER_WAY)
                tell_run(v->name, study_seed(s, v, k), path, s->facts[i].task.rounds);
        }
    }
    return t;
}

static void tell_tally(const tally *t) {
    const size_t all = t->done + t->diverged + t->under_way + t->broken + t->missing;
    char more[160] = "", left[32];
    size_t used = 0;
    const struct {
        size_t count;
        const char *what;
    } parts[] = {{t->diverged, "diverged"},
                 {t->under_way, "under way"},
                 {t->broken, "stopped, killed or failed"},
                 {t->missing, "not begun"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].count > 0 && used < sizeof more)
            used += (size_t)snprintf(more + used, sizeof more - used, ", %zu %s", parts[i].count,
                                     parts[i].what);
    if (t->under_way > 0 && t->done > 0) {
        const double each = t->seconds / (double)t->done,
                     to_come = (double)(t->broken + t->missing) / (double)t->under_way;
        name_duration(left, sizeof left,
                      each * (to_come + 0.5)); /* those are half way, on average */
        snprintf(more + used, used < sizeof more ? sizeof more - used : 0, "; about %s left", left);
    }
    tell_line("%zu of %zu runs done%s", t->done, all, more);
}

size_t progress_left(const study *s) {
    const tally t = look(s, false);
    return t.under_way + t.broken + t.missing;
}

void progress_tell(const study *s) {
    const tally t = look(s, false);
    tell_tally(&t);
    look(s, true);
    fflush(stdout);
}

void progress_watch(const study *s) {
    for (bool was_under_way = true; !stop_requested; sleep(LOOK_EVERY_S)) {
        progress_tell(s);
        const bool is_under_way = look(s, false).under_way > 0;
        /* between two runs nothing is */
        if (progress_left(s) == 0 || (!is_under_way && !was_under_way))
            return;
        was_under_way = is_under_way;
    }
}
