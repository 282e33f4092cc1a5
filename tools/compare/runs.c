/* runs.c - see runs.h. */
#include "compare/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/names.h"
#include "compare/jobs.h"
#include "run/agents.h"
#include "run/fleet.h"
#include "run/resume.h"
#include "run/simulation.h"

enum {
    ROUNDS_SIMULATED = 50, /* beside a run with agents, to know its messages */
    LOCK_TRIES = 20,       /* a process that was killed may take a moment to be gone */
    LOCK_WAIT_US = 100000,
    FILES_OPEN = 16,
    CONFIG_BYTES_MAX = 64 << 20
};

/* ---- learners ---- */

/* The variant's experiment has this seed from now on. */
static int take_learner(runs *r, size_t index, uint64_t seed, sl_error *error) {
    const contender *c = &r->comparison->items[index];
    c->variant->experiment->seed = seed;
    if (r->learner != NULL && r->learner_of == c->learner && r->learner_seed == seed)
        return 0;
    sl_learner_close(&r->learner);
    r->learner_of = c->learner;
    r->learner_seed = seed;
    sl_learner_settings settings = sl_experiment_learner(c->variant->experiment);
    const int result = sl_learner_open(&r->learner, &settings, error);
    if (result != 0)
        return sl_fail_prefix(error, result, "%s", c->variant->where);
    r->task = sl_learner_task(r->learner);
    return 0;
}

/* ---- before anything is started ---- */

static int check_memory(const runs *r, const trial *t, const char *where, sl_error *error) {
    sl_run_memory m;
    int result = trial_check_memory(t, where, false, error);
    trial_memory(t, &m);
    if (result == 0 && m.available > 0 && m.simulator > m.available / r->jobs)
        result = sl_fail(error, SL_ENOMEM,
                         "--jobs %zu: %s needs %.2f GB of memory, and this host has %.2f GB; take "
                         "fewer at once",
                         r->jobs, where, 1e-9 * (double)m.simulator, 1e-9 * (double)m.available);
    return result;
}

static int check_agents(const trial *t, const char *where, sl_error *error) {
    return t->nodes <= CHILDREN_MAX
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "%s: the topology has %u nodes; --agents starts at most %u processes "
                         "(without it the simulator takes more)",
                         where, t->nodes, CHILDREN_MAX);
}

static int trial_of(trial *out, const runs *r, size_t index, sl_error *error) {
    sl_experiment *e = r->study->variants.items[index].experiment;
    *out = (trial){.experiment = e,
                   .learner = r->learner,
                   .task = r->task,
                   .nodes = sl_topology_nodes(e->topology)};
    return sl_experiment_plan(&out->plan, e, &r->task, error);
}

static int prepare_one(runs *r, size_t index, sl_error *error) {
    const variant *v = &r->study->variants.items[index];
    trial t;
    int result = take_learner(r, index, study_seed(r->study, v, 0), error);
    if (result != 0)
        return result;
    const sl_shapes shapes = sl_task_shapes(&r->task);
    task_facts_close(&r->study->facts[index]);
    result = task_facts_take(
        &r->study->facts[index], &r->task,
        v->experiment->algorithm.local_epochs > 0 ? sl_topology_nodes(v->experiment->topology) : 0,
        sl_learner_operations(r->learner), error);
    if (result == 0)
        result = sl_algorithm_check_shapes(&v->experiment->algorithm, &shapes, error);
    if (result == 0)
        result = trial_of(&t, r, index, error);
    if (result != 0)
        return sl_fail_prefix(error, result, "%s", v->where);
    if (!r->study->agents)
        return check_memory(r, &t, v->where, error);
    result = check_agents(&t, v->where, error);
    return result == 0 ? trial_check_agents(&t, r->options, v->where, error) : result;
}

/* With seeds for all, a variant's own would be another experiment's. */
static int check_seeds(const runs *r, sl_error *error) {
    const variants *all = &r->study->variants;
    const variant *first = NULL;
    for (size_t i = 0; i < all->count && r->study->seeds.count > 0; i++) {
        const variant *v = &all->items[i];
        if (!variant_runs(v))
            continue;
        if (first != NULL && v->experiment->seed != first->experiment->seed)
            return sl_fail(
                error, SL_EINVAL,
                "%s: seed is %llu, but %llu in %s; with --seeds, or a \"sweep\" of seeds, "
                "variants must not set seeds of their own",
                v->where, (unsigned long long)v->experiment->seed,
                (unsigned long long)first->experiment->seed, first->where);
        first = first != NULL ? first : v;
    }
    return 0;
}

int runs_prepare(runs *r, sl_error *error) {
    int result = check_seeds(r, error);
    for (size_t i = 0; i < r->comparison->count && result == 0; i++)
        if (variant_runs(r->comparison->items[r->comparison->order[i]].variant))
            result = prepare_one(r, r->comparison->order[i], error);
    return result;
}

/* ---- what is there already ---- */

/* The first key in which a and b differ, below `path`, which holds it then. */
static bool find_difference(json_t *a, json_t *b, char *path, size_t bytes) {
    if (!json_is_object(a) || !json_is_object(b))
        return a != b && (a == NULL || b == NULL || !json_equal(a, b));
    json_t *const sides[] = {a, b};
    const size_t length = strlen(path);
    for (int i = 0; i < 2; i++) {
        const char *key;
        json_t *value;
        json_object_foreach(sides[i], key, value) {
            snprintf(path + length, bytes - length, "%s%s", length > 0 ? "." : "", key);
            if (find_difference(json_object_get(a, key), json_object_get(b, key), path, bytes))
                return true;
        }
    }
    path[length] = '\0';
    return false;
}

/* Where the files lie does not matter. */
static json_t *comparable(json_t *tree, uint64_t seed) {
    json_t *copy = json_deep_copy(tree);
    json_object_del(json_object_get(copy, "data"), "path");
    json_object_del(json_object_get(copy, "model"), "path");
    json_object_del(json_object_get(copy, "model"), "start");
    json_object_set_new(copy, "seed", json_integer((json_int_t)seed));
    return copy;
}

static bool holds_config(const char *folder) {
    char path[SL_PATH_MAX + 16];
    snprintf(path, sizeof path, "%.*s/config.json", SL_PATH_MAX, folder);
    return access(path, F_OK) == 0;
}

static json_t *read_config(const char *folder) {
    char path[SL_PATH_MAX + 16];
    snprintf(path, sizeof path, "%.*s/config.json", SL_PATH_MAX, folder);
    return json_load_file(path, 0, NULL);
}

/* Is it the run of this experiment? SL_EFILE: of another. */
static int check_config(const runs *r, size_t index, uint64_t seed, const char *folder,
                        bool *is_there, sl_error *error) {
    char key[256] = "";
    json_t *found = read_config(folder), *ours, *theirs;
    *is_there = found != NULL;
    if (found == NULL)
        return 0;
    ours = comparable(r->comparison->items[index].tree, seed);
    theirs = comparable(found, (uint64_t)json_integer_value(json_object_get(found, "seed")));
    const bool differs = find_difference(theirs, ours, key, sizeof key);
    json_decref(found);
    json_decref(ours);
    json_decref(theirs);
    return differs ? sl_fail(error, SL_EFILE,
                             "%s: already holds a run of another experiment: its %s differs; "
                             "choose another folder with --out",
                             folder, key)
                   : 0;
}

static bool is_over(ended e) {
    return e == RUN_DONE || e == RUN_DIVERGED;
}

/* *is_missing: it is to be run. */
static int look_at(const runs *r, size_t index, size_t seed, bool *is_missing, sl_error *error) {
    const variant *v = &r->study->variants.items[index];
    char path[SL_PATH_MAX];
    bool is_there = false;
    int result = study_run_path(r->study, v, seed, path, error);
    if (result == 0)
        result = check_config(r, index, study_seed(r->study, v, seed), path, &is_there, error);
    *is_missing = !is_there || !is_over(results_look(path, NULL, NULL));
    return result;
}

int runs_take_folder(runs *r, size_t *to_do, sl_error *error) {
    const char *folder = r->study->folder;
    int result = sl_folder_make(folder, error);
    *to_do = 0;
    if (result != 0)
        return result;
    r->lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int tries = 0;
    while (r->lock >= 0 && flock(r->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        if (tries++ == LOCK_TRIES)
            return sl_fail(error, SL_EFILE,
                           "%s: another `starling compare` is at work in this folder", folder);
        else
            usleep(LOCK_WAIT_US);
    for (size_t i = 0; i < r->study->variants.count; i++)
        for (size_t s = 0; s < study_seeds(r->study) && result == 0; s++) {
            bool is_missing = false;
            if (variant_runs(&r->study->variants.items[i]))
                result = look_at(r, i, s, &is_missing, error);
            *to_do += is_missing;
        }
    return result;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *where) {
    (void)about, (void)kind, (void)where;
    return remove(path);
}

/* ---- one run, in its process ---- */

/* Agents say how long they took, but not to whom they sent how much: their first rounds do,
 * simulated. */
static int simulate_some(const trial *t, sl_timeline **timeline, sl_error *error) {
    sl_task task = t->task;
    if (task.rounds > ROUNDS_SIMULATED)
        task.rounds = ROUNDS_SIMULATED;
    return sl_sim_run(t->experiment, &task, &(sl_observer){0}, NULL, timeline, &stop_requested,
                      error);
}

static int run_on(const runs *r, const trial *t, const char *path, collector *here,
                  sl_error *error) {
    sl_summary summary;
    here->compared_at = path;
    if (!r->study->agents)
        return simulation_run(here, path, true, &summary, error);
    const int result = simulate_some(t, &here->timeline, error);
    return result == 0 ? agents_run(here, path, true, &summary, error) : result;
}

static void note_failure(collector *here, const char *where, const sl_error *error) {
    uint64_t kept;
    if (here->folder != NULL)
        sl_folder_rescue(here->folder, -1, &kept, &(sl_error){0});
    collector_explain(here, error);
    if (error->code != SL_EDIVERGED && error->code != SL_ESTOPPED)
        complain("%s: %s", where, error->text);
}

static int run_one(void *context, size_t number) {
    runs *r = context;
    const size_t each = study_seeds(r->study), index = number / each, seed = number % each;
    const variant *v = &r->study->variants.items[index];
    char path[SL_PATH_MAX];
    collector here = {0};
    resumption begun;
    live_view view;
    sl_error error = {0};
    trial t;
    v->experiment->seed = study_seed(r->study, v, seed);
    live_view_open(&view, r->task.rounds, r->options->wide);
    view.quiet = true;
    int code = study_run_path(r->study, v, seed, path, &error);
    if (code == 0)
        code = trial_of(&t, r, index, &error);
    if (code == 0)
        code = resume_prepare(&begun, &t, r->options, path, 0, &error);
    if (code == 0)
        code = collector_open(&here, &t, r->study->agents ? "run" : "sim", path, &begun.checkpoints,
                              &view, &error);
    if (code == 0)
        code = run_on(r, &t, path, &here, &error);
    live_view_clear(&view);
    if (code != 0)
        note_failure(&here, v->where, &error);
    collector_close(&here);
    return code == 0 ? TOOL_OK : TOOL_FAILED;
}

/* ---- all of them ---- */

/* The runs under way, and how long others took. */
typedef struct progress {
    size_t ended, missing; /* of those that were missing at the beginning */
    size_t told;           /* runs that were begun, or were there */
    double seconds;        /* of those that ended, together */
    double *began;         /* (variants * seeds) */
} progress;

static void tell_begin(const runs *r, progress *p, size_t index, size_t seed) {
    const contender *c = &r->comparison->items[index];
    const size_t all = r->comparison->count * study_seeds(r->study);
    char compressor[64], seed_text[48] = "", left[64] = "", time[32];
    contender_compressor(c, compressor, sizeof compressor);
    if (study_seeds(r->study) > 1)
        snprintf(seed_text, sizeof seed_text, ", seed %llu",
                 (unsigned long long)study_seed(r->study, c->variant, seed));
    if (p->ended > 0) {
        const double mean = p->seconds / (double)p->ended,
                     to_come = (double)(p->missing - p->ended) / (double)r->jobs;
        name_duration(time, sizeof time, mean * fmax(1, to_come));
        snprintf(left, sizeof left, "; %s left", time);
    }
    tell_line("%zu/%zu %s: %s, %s%s%s", ++p->told, all, c->variant->name, contender_algorithm(c),
              compressor, seed_text, left);
    fflush(stdout);
}

static void wait_for_one(const runs *r, jobs *j, progress *p) {
    const size_t each = study_seeds(r->study);
    size_t number;
    int status;
    jobs_wait(j, &number, &status);
    const contender *c = &r->comparison->items[number / each];
    char path[SL_PATH_MAX], why[SL_ERROR_TEXT_MAX] = "";
    p->ended++;
    p->seconds += now_seconds() - p->began[number];
    if (study_run_path(r->study, c->variant, number % each, path, NULL) == 0 &&
        results_look(path, why, NULL) == RUN_DIVERGED)
        tell_line("  %s: %s", c->variant->name, why);
}

static int begin(runs *r, jobs *j, progress *p, size_t index, size_t seed, sl_error *error) {
    const variant *v = &r->study->variants.items[index];
    const size_t number = index * study_seeds(r->study) + seed;
    char path[SL_PATH_MAX];
    int result = study_run_path(r->study, v, seed, path, error);
    while (result == 0 && j->busy == j->slots)
        wait_for_one(r, j, p);
    if (result != 0 || stop_requested)
        return result;
    if (holds_config(path)) /* what a killed run has left: look_at has compared it */
        nftw(path, remove_one, FILES_OPEN, FTW_DEPTH | FTW_PHYS);
    result = take_learner(r, index, study_seed(r->study, v, seed), error);
    if (result != 0)
        return result;
    tell_begin(r, p, index, seed);
    p->began[number] = now_seconds();
    return jobs_start(j, number, run_one, r, error);
}

static int begin_if_missing(runs *r, jobs *j, progress *p, size_t index, size_t seed,
                            sl_error *error) {
    bool is_missing = false;
    const int result = look_at(r, index, seed, &is_missing, error);
    p->told += !is_missing;
    return result == 0 && is_missing ? begin(r, j, p, index, seed, error) : result;
}

int runs_do(runs *r, size_t to_do, sl_error *error) {
    const comparison *c = r->comparison;
    progress p = {.missing = to_do, .began = calloc(c->count * c->seeds, sizeof *p.began)};
    int result = p.began != NULL
                     ? 0
                     : sl_fail(error, SL_ENOMEM, "out of memory for %zu runs", c->count * c->seeds);
    jobs j;
    jobs_open(&j, r->jobs);
    for (size_t s = 0; s < c->seeds; s++)
        for (size_t i = 0; i < c->count && result == 0 && !stop_requested; i++)
            if (variant_runs(c->items[c->order[i]].variant))
                result = begin_if_missing(r, &j, &p, c->order[i], s, error);
    while (j.busy > 0)
        wait_for_one(r, &j, &p);
    jobs_close(&j);
    free(p.began);
    return result;
}

void runs_close(runs *r) {
    sl_learner_close(&r->learner);
    if (r->lock >= 0)
        close(r->lock);
    r->lock = -1;
}
