/* experiment.h - what holds of every experiment that is read. */
#ifndef FUZZ_EXPERIMENT_H
#define FUZZ_EXPERIMENT_H

#include <assert.h>

#include "starling/experiment.h"
#include "text.h"

/* Written and read back, it is the same. */
static inline void check_written(const sl_experiment *experiment) {
    sl_experiment *again = NULL;
    sl_error error;
    char *json = sl_experiment_json(experiment);
    assert(json != NULL);
    assert(sl_experiment_parse(&again, json, "again", "/nowhere", NULL, 0, &error) == 0);
    char *json_again = sl_experiment_json(again);
    assert(json_again != NULL && strcmp(json, json_again) == 0);
    free(json_again);
    free(json);
    sl_experiment_close(&again);
}

#endif
