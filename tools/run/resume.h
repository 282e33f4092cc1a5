/* resume.h - going on with an earlier run: its experiment, its id, the round of its newest whole
 * checkpoint. */
#ifndef RESUME_H
#define RESUME_H

#include "cli/tool.h"

/* What a run's checkpoints belong to, and from which it goes on. */
typedef struct resumption {
    sl_checkpoints checkpoints;
    char folder[SL_PATH_MAX]; /* of the checkpoints */
} resumption;

/* The operand of commands with --resume. */
#define OPERAND_FILE_OR_RUN .operands = "EXPERIMENT", .operands_max = 1, .offer = OFFER_FILE

/* Takes the experiment of the run in o->resume unless one is given; `config` is for its path.
 * SL_EINVAL: neither is there, or --out is too. */
int resume_choose_file(options *o, const char *name, char config[SL_PATH_MAX + 16],
                       sl_error *error);
/* Refuses an experiment with which that run cannot go on (sl_experiment_goes_on). */
int resume_compare(const trial *t, const options *o, sl_error *error);
/* Of a run that begins in the folder at `path`, under a random id if run_id is 0; or of o->resume,
 * under its own, from the newest checkpoint that all its nodes have. What is borrowed is in *out.
 */
int resume_prepare(resumption *out, const trial *t, const options *o, const char *path,
                   uint64_t run_id, sl_error *error);

extern const command_option option_resume;

#endif
