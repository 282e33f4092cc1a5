/* going_on.c - what may be another where a run goes on from a checkpoint; see
 * starling/experiment.h. All that neighbours compare stays, but for the keys of `others`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/keys.h"

/* Of the sections. They follow from the round alone, and no state depends on them. A name that ends
 * in a dot is a group. */
static const char *const others[] = {"rounds", "epochs", "optimizer.learning_rate",
                                     "optimizer.schedule."};
/* What the lines of metrics of a round follow from, beside what stays and the rounds. */
static const char *const settings[] = {"optimizer.learning_rate", "optimizer.schedule.",
                                       "record.every", "record.evaluate"};
enum { OTHERS = sizeof others / sizeof *others, SETTINGS = sizeof settings / sizeof *settings };

static bool is_among(const char *path, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = strlen(names[i]);
        const bool is_group = names[i][bytes - 1] == '.';
        if (is_group ? strncmp(path, names[i], bytes) == 0 : strcmp(path, names[i]) == 0)
            return true;
    }
    return false;
}

/* A copy that borrows all of `e`, with the defaults of what may be another. */
static int leave_out(sl_experiment *out, const sl_experiment *e, sl_error *error) {
    sl_key_list keys;
    sl_experiment_keys(&keys);
    int result = 0;
    *out = *e;
    for (size_t i = 0; i < keys.count && result == 0; i++) {
        const sl_key *k = keys.items[i];
        if (!is_among(k->path, others, OTHERS))
            continue;
        json_t *usual = json_loads(k->fallback, JSON_DECODE_ANY, NULL);
        result = usual != NULL ? sl_key_read(k, out, usual, error)
                               : sl_fail(error, SL_ENOMEM, "%s: out of memory", k->path);
        json_decref(usual);
    }
    return result;
}

uint64_t sl_experiment_lasting_hash(const sl_experiment *e, sl_section section) {
    sl_experiment lasting;
    sl_error error;
    return leave_out(&lasting, e, &error) == 0 ? sl_experiment_section_hash(&lasting, section) : 0;
}

/* ---- comparing ---- */

#define WHAT_MAY_DIFFER                                                                            \
    "a run that goes on keeps what neighbours compare, but for rounds, epochs, "                   \
    "optimizer.learning_rate and optimizer.schedule"

static int refuse(const sl_difference *d, const char *where, sl_error *error) {
    return sl_fail(error, SL_EINVAL, "%s: %s here, %s in %s; " WHAT_MAY_DIFFER, d->key, d->ours,
                   d->theirs, where);
}

static int name_difference(const char *section, const sl_experiment *before,
                           const sl_experiment *now, const char *where, sl_error *error) {
    char *theirs = sl_experiment_differences(before), *ours = sl_experiment_differences(now);
    sl_difference d;
    int result;
    if (theirs == NULL || ours == NULL)
        result = sl_fail(error, SL_ENOMEM, "%s: out of memory", where);
    else if (sl_experiment_difference(&d, section, ours, strlen(ours), theirs, strlen(theirs)))
        result = refuse(&d, where, error);
    else
        result = sl_fail(error, SL_EINVAL, "%s: is another one than in %s; " WHAT_MAY_DIFFER,
                         section, where);
    free(theirs);
    free(ours);
    return result;
}

/* Neighbours compare these, though they are of no section. */
static int compare_single(const char *path, const sl_experiment *before, const sl_experiment *now,
                          const char *where, sl_error *error) {
    const sl_key *k = sl_key_find(path);
    json_t *theirs = sl_key_write(k, before), *ours = sl_key_write(k, now);
    char *there = json_dumps(theirs, JSON_ENCODE_ANY), *here = json_dumps(ours, JSON_ENCODE_ANY);
    sl_difference d;
    int result = 0;
    if (there == NULL || here == NULL) {
        result = sl_fail(error, SL_ENOMEM, "%s: out of memory", where);
    } else if (strcmp(there, here) != 0) {
        snprintf(d.key, sizeof d.key, "%s", path);
        snprintf(d.ours, sizeof d.ours, "%s", here);
        snprintf(d.theirs, sizeof d.theirs, "%s", there);
        result = refuse(&d, where, error);
    }
    free(there);
    free(here);
    json_decref(theirs);
    json_decref(ours);
    return result;
}

int sl_experiment_goes_on(const sl_experiment *before, const sl_experiment *now, const char *where,
                          sl_error *error) {
    sl_experiment then, here;
    int result = leave_out(&then, before, error);
    if (result == 0)
        result = leave_out(&here, now, error);
    if (result == 0 && sl_topology_hash(before->topology) != sl_topology_hash(now->topology))
        result = name_difference("topology", &then, &here, where, error);
    for (int s = 0; s < SL_SECTION_COUNT && result == 0; s++) {
        const uint64_t theirs = sl_experiment_section_hash(&then, (sl_section)s),
                       ours = sl_experiment_section_hash(&here, (sl_section)s);
        if (theirs == 0 || ours == 0)
            result = sl_fail(error, SL_ENOMEM, "%s: out of memory", where);
        else if (theirs != ours)
            result = name_difference(sl_section_name((sl_section)s), &then, &here, where, error);
    }
    if (result == 0)
        result = compare_single("membership.on_loss", before, now, where, error);
    return result == 0 ? compare_single("transport.chunk_bytes", before, now, where, error)
                       : result;
}

/* ---- telling ---- */

bool sl_experiment_is_setting(const char *path) {
    return sl_key_find(path) != NULL && is_among(path, settings, SETTINGS);
}

char *sl_experiment_settings(const sl_experiment *e) {
    json_t *root = json_object();
    sl_key_list keys;
    sl_experiment_keys(&keys);
    bool good = root != NULL;
    for (size_t i = 0; i < keys.count && good; i++)
        if (is_among(keys.items[i]->path, settings, SETTINGS))
            good =
                json_object_set_new(root, keys.items[i]->path, sl_key_write(keys.items[i], e)) == 0;
    char *text = good ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    return text;
}
