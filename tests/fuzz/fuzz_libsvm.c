/* fuzz_libsvm.c - LIBSVM text: a training file and, behind the first NUL byte if there is one, a
 * held-out file. */
#include <assert.h>
#include <string.h>

#include "learner/data/data.h"

static void check(const sl_samples *samples) {
    for (uint32_t i = 0; i < samples->count; i++)
        assert(samples->labels[i] < samples->classes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *nul = size > 0 ? memchr(data, 0, size) : NULL;
    size_t train_size = nul != NULL ? (size_t)(nul - data) : size;
    sl_data_config config = {.kind = SL_DATA_LIBSVM};
    /* The parser only reads; sl_bytes owns its bytes elsewhere, hence the casts. */
    sl_bytes train = {.data = (uint8_t *)data, .size = train_size, .name = "train"};
    sl_bytes test = {.name = "test"};
    if (nul != NULL)
        test =
            (sl_bytes){.data = (uint8_t *)nul + 1, .size = size - train_size - 1, .name = "test"};
    sl_data parsed;
    sl_error error;
    if (sl_libsvm_parse(&parsed, &train, nul != NULL ? &test : NULL, &config, &error) != 0)
        return 0;
    check(&parsed.train);
    check(&parsed.test);
    assert(parsed.train.features == parsed.test.features);
    sl_data_close(&parsed);
    return 0;
}
