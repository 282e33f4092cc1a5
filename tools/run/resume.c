/* resume.c - see resume.h. */
#include "run/resume.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "run/run_info.h"

const command_option option_resume = {
    "resume",
    .argument = "RUN",
    .help = "goes on with the run in folder RUN from its newest whole checkpoint; EXPERIMENT may "
            "be left out; what neighbours compare must be as it was, but for rounds, epochs, "
            "optimizer.learning_rate and optimizer.schedule",
    .take = take_text,
    .offset = offsetof(options, resume),
    .offer = OFFER_FOLDER,
};

int resume_choose_file(options *o, const char *name, char config[SL_PATH_MAX + 16],
                       sl_error *error) {
    if (o->resume != NULL && strlen(o->resume) >= SL_PATH_MAX)
        return sl_fail(error, SL_EINVAL, "--resume: the path is longer than %d bytes",
                       SL_PATH_MAX - 1);
    if (o->resume != NULL && o->out != NULL)
        return sl_fail(error, SL_EINVAL,
                       "--out: a run that goes on stays in its folder, %s; leave --out out",
                       o->resume);
    if (o->resume == NULL && o->file == NULL)
        return sl_fail(error, SL_EINVAL, "%s: which EXPERIMENT? (starling %s --help)", name, name);
    if (o->file != NULL)
        return 0;
    snprintf(config, SL_PATH_MAX + 16, "%s/config.json", o->resume);
    o->file = config;
    return 0;
}

/* ---- the experiment ---- */

enum { SHOWN = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15) };

/* As it was when the run began, or last went on. */
static int load_before(sl_experiment **out, const options *o, char path[SL_PATH_MAX + 16],
                       sl_error *error) {
    snprintf(path, SL_PATH_MAX + 16, "%s/config.json", o->resume);
    return sl_experiment_load(out, path, NULL, 0, error);
}

/* A line for each setting that is another from now on. */
static int tell_changes(const sl_experiment *before, const sl_experiment *now, sl_error *error) {
    char *was = sl_experiment_settings(before), *is = sl_experiment_settings(now);
    json_t *then = was != NULL ? json_loads(was, 0, NULL) : NULL,
           *here = is != NULL ? json_loads(is, 0, NULL) : NULL, *value;
    int result = then != NULL && here != NULL ? 0 : sl_fail(error, SL_ENOMEM, "out of memory");
    const char *key;
    json_object_foreach(here, key, value) {
        char *a = json_dumps(json_object_get(then, key), SHOWN), *b = json_dumps(value, SHOWN);
        if (a != NULL && b != NULL && strcmp(a, b) != 0)
            tell_line("goes on with %s %s, before %s", key, b, a);
        free(a);
        free(b);
    }
    json_decref(then);
    json_decref(here);
    free(was);
    free(is);
    return result;
}

int resume_compare(const trial *t, const options *o, sl_error *error) {
    char path[SL_PATH_MAX + 16];
    sl_experiment *before = NULL;
    if (o->resume == NULL)
        return 0;
    int result = load_before(&before, o, path, error);
    if (result == 0)
        result = sl_experiment_goes_on(before, t->experiment, path, error);
    if (result == 0)
        result = tell_changes(before, t->experiment, error);
    sl_experiment_close(&before);
    return result;
}

/* ---- the checkpoint ---- */

static void tell(void *context, const char *text) {
    (void)context;
    complain("%s", text);
}

/* Until then all lines are there that the processes before had to write. */
static int find_complete(uint64_t *complete, const trial *t, const options *o, uint64_t resumed,
                         sl_error *error) {
    char path[SL_PATH_MAX + 16];
    sl_experiment *before = NULL;
    int result = load_before(&before, o, path, error);
    if (result == 0)
        result = sl_folder_complete(complete, o->resume, before,
                                    before->rounds > 0 ? before->rounds : t->task.rounds, resumed,
                                    error);
    sl_experiment_close(&before);
    return result;
}

/* Where all lines of metrics come again; or else, with some lost for ever, where the newest is. */
static int find_round(resumption *r, const trial *t, const char *run, uint64_t complete,
                      const sl_checkpoint_owner *owner, sl_error *error) {
    uint64_t *round = &r->checkpoints.round;
    const uint32_t nodes = sl_topology_nodes(t->experiment->topology);
    int result =
        sl_checkpoint_newest(round, r->folder, owner, 0, nodes, complete, tell, NULL, error);
    if (result != SL_EFILE)
        return result;
    result = sl_checkpoint_newest(round, r->folder, owner, 0, nodes, UINT64_MAX, tell, NULL, error);
    if (result == 0 && *round > complete)
        complain("%s: lines of metrics from round %" PRIu64 " to round %" PRIu64 " are lost", run,
                 complete, *round - 1);
    return result;
}

static int find_cut(resumption *r, const trial *t, const options *o, sl_error *error) {
    sl_checkpoint_owner owner;
    uint64_t resumed = 0, complete = 0;
    int result = run_info_read_id(&r->checkpoints.run_id, &resumed, o->resume, -1, error);
    if (result == 0)
        result =
            sl_checkpoint_owner_of(&owner, t->experiment, &t->task, r->checkpoints.run_id, error);
    const bool apart = sl_experiment_is_asynchronous(t->experiment);
    if (result == 0 && apart) /* a file names no round of lines */
        complete = UINT64_MAX;
    else if (result == 0)
        result = find_complete(&complete, t, o, resumed, error);
    if (result == 0)
        result = find_round(r, t, o->resume, complete, &owner, error);
    if (result == 0 && !apart && r->checkpoints.round > t->task.rounds)
        result = sl_fail(error, SL_EINVAL,
                         "--resume: the newest checkpoint is of round %" PRIu64
                         ", and the experiment has %" PRIu64 " rounds; give more with --set rounds",
                         r->checkpoints.round, t->task.rounds);
    return result;
}

int resume_prepare(resumption *out, const trial *t, const options *o, const char *path,
                   uint64_t run_id, sl_error *error) {
    *out = (resumption){
        .checkpoints = {.run_id = run_id, .resume = o->resume != NULL, .end_after = o->end_after}};
    out->checkpoints.folder = out->folder;
    sl_checkpoint_folder(t->experiment, path, out->folder);
    if (o->resume != NULL)
        return find_cut(out, t, o, error);
    uint64_t *id = &out->checkpoints.run_id;
    if (run_id == 0 && getrandom(id, sizeof *id, 0) != sizeof *id)
        return sl_fail(error, SL_ENET, "no random run id: %s", strerror(errno));
    return 0;
}
