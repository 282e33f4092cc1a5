/* fuzz_experiment.c - experiment files. What is taken survives being written and read back,
 * unchanged. */
#include <assert.h>

#include "starling/experiment.h"
#include "text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = text_of(data, size);
    sl_experiment *experiment = NULL, *again = NULL;
    sl_error error;
    if (text != NULL && !has_large_number(text) &&
        sl_experiment_parse(&experiment, text, "input", "/nowhere", NULL, 0, &error) == 0) {
        char *json = sl_experiment_json(experiment);
        assert(json != NULL);
        assert(sl_experiment_parse(&again, json, "again", "/nowhere", NULL, 0, &error) == 0);
        char *json_again = sl_experiment_json(again);
        assert(json_again != NULL && strcmp(json, json_again) == 0);
        free(json_again);
        free(json);
    }
    sl_experiment_close(&again);
    sl_experiment_close(&experiment);
    free(text);
    return 0;
}
