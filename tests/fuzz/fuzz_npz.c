/* fuzz_npz.c - NumPy's archives of arrays; labels are numbers. */
#include <assert.h>
#include <math.h>

#include "learner/data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sl_data_config config = {.kind = SL_DATA_NUMPY, .real_labels = true};
    /* The parser only reads; sl_bytes owns its bytes elsewhere, hence the cast. */
    const sl_bytes archive = {.data = (uint8_t *)data, .size = size, .name = "input"};
    sl_data parsed;
    sl_error error;
    if (sl_npz_parse(&parsed, &archive, &config, &error) != 0)
        return 0;
    for (uint32_t i = 0; i < parsed.train.count; i++)
        assert(isfinite(parsed.train.targets[i]));
    for (size_t i = 0; i < (size_t)parsed.train.count * parsed.train.features; i++)
        assert(isfinite(parsed.train.values[i]));
    assert(parsed.train.features == parsed.test.features);
    sl_data_close(&parsed);
    return 0;
}
