/* study.h - what `starling compare` is to do, and the file of its folder that says so: study.json.
 *
 * The file comes before the first run. From it and the run folders follows every table, at any
 * time.
 */
#ifndef STUDY_H
#define STUDY_H

#include "compare/task_facts.h"
#include "compare/variants.h"

typedef struct study {
    variants variants;
    task_facts *facts; /* (variants.count) owned */
    seeds seeds;       /* count 0: each variant has that of its experiment */
    bool agents;       /* not the simulator */
    bool has_target;
    double target_loss; /* if it was given */
    link_profile links[LINKS_MAX];
    size_t link_count;
    char folder[SL_PATH_MAX];
} study;

/* Does this folder hold a study? */
bool study_is_there(const char *folder);
/* Of the folder's file. To be closed in any case. */
int study_read(study *out, const char *folder, sl_error *error);
/* Into its folder, which is there. */
int study_write(const study *s, sl_error *error);
void study_close(study *s);

/* Runs of a variant. */
size_t study_seeds(const study *s);
uint64_t study_seed(const study *s, const variant *v, size_t index);
/* FOLDER/NAME, or one of several in it; of a variant with a run of its own that. SL_EINVAL: the
 * path is too long. */
int study_run_path(const study *s, const variant *v, size_t index, char out[SL_PATH_MAX],
                   sl_error *error);

#endif
