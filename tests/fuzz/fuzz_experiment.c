/* fuzz_experiment.c - experiment files. What is taken survives being written and read back,
 * unchanged. */
#include "experiment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = text_of(data, size);
    sl_experiment *experiment = NULL;
    sl_error error;
    if (text != NULL && !has_large_number(text) &&
        sl_experiment_parse(&experiment, text, "input", "/nowhere", NULL, 0, &error) == 0)
        check_written(experiment);
    sl_experiment_close(&experiment);
    free(text);
    return 0;
}
