/* fuzz_experiment.c - experiment files; behind a '=', lines of --set that are laid over one. What
 * is taken survives being written and read back, unchanged. */
#include <assert.h>

#include "starling/experiment.h"
#include "text.h"

enum { LINES_MAX = 8 };
static const char below[] =
    "{\"rounds\": 4, \"topology\": {\"nodes\": 4, \"family\": \"ring\"}, \"algorithm\": \"d-psgd\","
    " \"optimizer\": {\"learning_rate\": 0.1}, \"model\": {\"name\": \"softmax\"},"
    " \"data\": {\"name\": \"digits\"}}";

static void check_written(const sl_experiment *experiment) {
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

static size_t split(char *text, const char *lines[LINES_MAX]) {
    size_t count = 0;
    for (char *line = strtok(text, "\n"); line != NULL && count < LINES_MAX;
         line = strtok(NULL, "\n"))
        lines[count++] = line;
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = text_of(data, size);
    const char *lines[LINES_MAX];
    sl_experiment *experiment = NULL;
    sl_error error;
    if (text != NULL && !has_large_number(text)) {
        const bool sets = text[0] == '=';
        const size_t count = sets ? split(text + 1, lines) : 0;
        if (sl_experiment_parse(&experiment, sets ? below : text, "input", "/nowhere", lines, count,
                                &error) == 0)
            check_written(experiment);
    }
    sl_experiment_close(&experiment);
    free(text);
    return 0;
}
