/* faults.h - `faults` of an experiment: reading and checking. */
#ifndef SL_CONFIG_FAULTS_H
#define SL_CONFIG_FAULTS_H

#include <jansson.h>

#include "starling/experiment.h"

/* Reads the list, NULL: none; resolves membership.on_loss. After topology and keys. */
int sl_faults_read(sl_experiment *e, json_t *list, sl_error *error);
/* Plays them: does each view suit the algorithm? */
int sl_faults_check(const sl_experiment *e, sl_error *error);

#endif
