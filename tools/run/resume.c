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
            "be left out, and must else be equal but for rounds or epochs, paths, and what "
            "neighbours need not have alike",
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

/* Appends the key where the objects differ first to `path`, and gives both values; NULL: none. */
static void find_difference(char *path, size_t room, const json_t **theirs, const json_t **ours) {
    const json_t *mine = *ours, *before = *theirs;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)mine, key, value) {
        const json_t *other = json_object_get(before, key);
        if (json_equal(other, value))
            continue;
        const size_t at = strlen(path);
        snprintf(path + at, room - at, "%s%s", at > 0 ? "." : "", key);
        *theirs = other;
        *ours = value;
        if (json_is_object(other) && json_is_object(value))
            find_difference(path, room, theirs, ours);
        return;
    }
}

static char *shown(const json_t *value) {
    return json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
}

static int name_difference(const char *theirs, const char *ours, const char *where,
                           sl_error *error) {
    json_t *there = json_loads(theirs, 0, NULL), *here = json_loads(ours, 0, NULL);
    const json_t *before = there, *now = here;
    char path[128] = "";
    find_difference(path, sizeof path, &before, &now);
    char *was = shown(before), *is = shown(now);
    int result =
        sl_fail(error, SL_EINVAL,
                "a run that goes on must have the experiment of %s but for its length, paths, "
                "and what neighbours need not have alike; %s is %.200s there and %.200s "
                "here",
                where, path, was != NULL ? was : "not set", is != NULL ? is : "not set");
    free(was);
    free(is);
    json_decref(there);
    json_decref(here);
    return result;
}

int resume_compare(const trial *t, const options *o, sl_error *error) {
    char path[SL_PATH_MAX + 16];
    sl_experiment *before = NULL;
    if (o->resume == NULL)
        return 0;
    snprintf(path, sizeof path, "%s/config.json", o->resume);
    int result = sl_experiment_load(&before, path, NULL, 0, error);
    if (result != 0)
        return result;
    char *theirs = sl_experiment_lasting_json(before),
         *ours = sl_experiment_lasting_json(t->experiment);
    if (theirs == NULL || ours == NULL)
        result = sl_fail(error, SL_ENOMEM, "%s: out of memory", path);
    else if (strcmp(theirs, ours) != 0)
        result = name_difference(theirs, ours, path, error);
    free(theirs);
    free(ours);
    sl_experiment_close(&before);
    return result;
}

/* ---- the checkpoint ---- */

static void tell(void *context, const char *text) {
    (void)context;
    complain("%s", text);
}

/* Where all lines of metrics come again; or else, with some lost for ever, where the newest is. */
static int find_round(resumption *r, const trial *t, const char *run,
                      const sl_checkpoint_owner *owner, sl_error *error) {
    uint64_t complete, *round = &r->checkpoints.round;
    int result = sl_folder_complete(&complete, run, t->experiment, t->task.rounds, error);
    if (result != 0)
        return result;
    result =
        sl_checkpoint_newest(round, r->folder, owner, 0, t->nodes, complete, tell, NULL, error);
    if (result != SL_EFILE)
        return result;
    result =
        sl_checkpoint_newest(round, r->folder, owner, 0, t->nodes, UINT64_MAX, tell, NULL, error);
    if (result == 0 && *round > complete)
        complain("%s: lines of metrics from round %" PRIu64 " to round %" PRIu64 " are lost", run,
                 complete, *round - 1);
    return result;
}

static int find_cut(resumption *r, const trial *t, const options *o, sl_error *error) {
    sl_checkpoint_owner owner;
    int result = run_info_read_id(&r->checkpoints.run_id, o->resume, -1, error);
    if (result == 0)
        result =
            sl_checkpoint_owner_of(&owner, t->experiment, &t->task, r->checkpoints.run_id, error);
    if (result == 0)
        result = find_round(r, t, o->resume, &owner, error);
    if (result == 0 && r->checkpoints.round > t->task.rounds)
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
