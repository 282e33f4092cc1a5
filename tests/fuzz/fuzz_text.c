/* fuzz_text.c - a text: the first byte tells how many characters a sample has, and how many samples
 * are wanted. */
#include <assert.h>

#include "learner/data/data.h"

static void check(const sl_samples *samples) {
    for (size_t i = 0; i < (size_t)samples->count * samples->features; i++)
        assert(samples->codes[i] < samples->classes && samples->labels[i] < samples->classes);
    for (uint32_t row = 0; row < samples->count; row++)
        assert(samples->groups[row] < samples->group_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    sl_data_config config = {
        .kind = SL_DATA_TEXT, .sequence = 1 + data[0] % 16, .train_samples = data[0] / 16};
    /* The parser only reads; sl_bytes owns its bytes elsewhere, hence the cast. */
    sl_bytes file = {.data = (uint8_t *)data + 1, .size = size - 1, .name = "text"};
    sl_data parsed;
    sl_error error;
    if (sl_text_parse(&parsed, &file, &config, &error) != 0)
        return 0;
    check(&parsed.train);
    check(&parsed.test);
    sl_data_close(&parsed);
    return 0;
}
