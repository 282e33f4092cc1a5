/* fuzz_set.c - --set: the input's lines are laid over an experiment. What is taken survives being
 * written and read back. */
#include "experiment.h"

enum { LINES_MAX = 8 };
static const char experiment_text[] =
    "{\"rounds\": 4, \"topology\": {\"nodes\": 4, \"family\": \"ring\"}, \"algorithm\": \"d-psgd\","
    " \"optimizer\": {\"learning_rate\": 0.1}, \"model\": {\"name\": \"softmax\"},"
    " \"data\": {\"name\": \"digits\"}}";

static size_t split(char *text, const char *lines[LINES_MAX]) {
    size_t count = 0;
    for (char *line = strtok(text, "\n"); line != NULL && count < LINES_MAX;
         line = strtok(NULL, "\n"))
        lines[count++] = line;
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = text_of(data, size);
    sl_experiment *experiment = NULL;
    sl_error error;
    const char *lines[LINES_MAX];
    if (text != NULL && !has_large_number(text)) {
        const size_t count = split(text, lines);
        if (sl_experiment_parse(&experiment, experiment_text, "input", "/nowhere", lines, count,
                                &error) == 0)
            check_written(experiment);
    }
    sl_experiment_close(&experiment);
    free(text);
    return 0;
}
