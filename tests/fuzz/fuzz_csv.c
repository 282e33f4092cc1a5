/* fuzz_csv.c - tables of numbers: a training file and, behind the first NUL byte if there is one, a
 * held-out file; labels are classes, or numbers where the first byte is even. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "learner/data/data.h"

static void check(const sl_samples *samples, bool real) {
    assert((samples->targets != NULL) == real);
    for (uint32_t i = 0; i < samples->count; i++)
        assert(real ? isfinite(samples->targets[i]) : samples->labels[i] < samples->classes);
    for (size_t i = 0; i < (size_t)samples->count * samples->features; i++)
        assert(isfinite(samples->values[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    const bool real = *data++ % 2 == 0;
    const uint8_t *nul = --size > 0 ? memchr(data, 0, size) : NULL;
    const size_t train_size = nul != NULL ? (size_t)(nul - data) : size;
    sl_data_config config = {.kind = SL_DATA_CSV, .real_labels = real, .label = "last"};
    /* The parser only reads; sl_bytes owns its bytes elsewhere, hence the casts. */
    sl_bytes train = {.data = (uint8_t *)data, .size = train_size, .name = "train"};
    sl_bytes test = {.name = "test"};
    if (nul != NULL)
        test =
            (sl_bytes){.data = (uint8_t *)nul + 1, .size = size - train_size - 1, .name = "test"};
    sl_data parsed;
    sl_error error;
    if (sl_csv_parse(&parsed, &train, nul != NULL ? &test : NULL, &config, &error) != 0)
        return 0;
    check(&parsed.train, real);
    check(&parsed.test, real);
    sl_data_close(&parsed);
    return 0;
}
