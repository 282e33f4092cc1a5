/* fuzz_join.c - an agent that joins a run folder. The first byte says which files another run has
 * left there; the rest is config.json: as it is or, where the second byte is odd, laid over the
 * true one from the offset in the next two. Whatever is there, a refusal changes nothing, and only
 * the true configuration is joined. */
#include "folder.h"
#include "starling/experiment.h"
#include "starling/folder.h"
#include "text.h"

static const char experiment_text[] =
    "{\"rounds\": 4, \"topology\": {\"nodes\": 4, \"family\": \"ring\"}, \"algorithm\": \"d-psgd\","
    " \"optimizer\": {\"learning_rate\": 0.1}, \"model\": {\"name\": \"softmax\"},"
    " \"data\": {\"name\": \"digits\"}}";
enum { RANK = 1, HEAD = 4 };

static sl_experiment *experiment;
static char *config; /* as the folder's writer writes it */
static size_t config_bytes;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    sl_error error;
    assert(sl_experiment_parse(&experiment, experiment_text, "input", "/nowhere", NULL, 0,
                               &error) == 0);
    char *json = sl_experiment_json(experiment);
    assert(json != NULL);
    config_bytes = strlen(json) + 1;
    config = malloc(config_bytes + 1);
    assert(config != NULL);
    snprintf(config, config_bytes + 1, "%s\n", json);
    free(json);
    return 0;
}

static size_t write_remains(uint8_t which) {
    static const char *const names[] = {"summary.json", "metrics-1.jsonl", "parameters-1.jsonl",
                                        "metrics-0.jsonl"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (which >> i & 1) {
            folder_write(names[i], "{}\n", 3);
            count++;
        }
    return count;
}

/* Is config.json the true one? */
static bool write_config(const uint8_t *data, size_t size, bool over, size_t offset) {
    char *text = malloc(config_bytes + size);
    assert(text != NULL);
    size_t bytes = size;
    if (over) {
        memcpy(text, config, config_bytes);
        offset %= config_bytes + 1;
        bytes = offset + size > config_bytes ? offset + size : config_bytes;
        memcpy(text + offset, data, size);
    } else {
        memcpy(text, data, size);
    }
    folder_write("config.json", text, bytes);
    const bool same = bytes == config_bytes && memcmp(text, config, bytes) == 0;
    free(text);
    return same;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < HEAD)
        return 0;
    const uint8_t which = data[0] < 128 ? 0 : data[0]; /* most folders hold a run under way */
    size_t files = write_remains(which) + 1;
    const bool same =
        write_config(data + HEAD, size - HEAD, data[1] & 1, data[2] | (size_t)data[3] << 8);
    sl_error error;
    sl_folder *folder = NULL;
    const int checked = sl_folder_check(folder_path(), experiment, RANK, &error);
    assert((checked == 0) == (same && (which & 7) == 0));
    const int opened = sl_folder_open(&folder, folder_path(), experiment, false, &error);
    assert((opened == 0) == same);
    if (checked == 0) {
        sl_record record = {.rank = RANK};
        assert(sl_folder_metrics(folder, &record, &error) == 0);
        files++;
    }
    if (opened == 0)
        sl_folder_close(&folder, &error);
    assert(folder_clear() == files);
    return 0;
}
