/* fuzz_differences.c - what two agents say of their settings; the first byte says where the second
 * agent's lines begin. */
#include <assert.h>
#include <string.h>

#include "starling/experiment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    const size_t bytes = size - 1, first = bytes * data[0] / 256;
    sl_difference d;
    if (sl_experiment_difference(&d, "topology", text, first, text + first, bytes - first))
        assert(strcmp(d.ours, d.theirs) != 0);
    for (int s = 0; s < SL_SECTION_COUNT; s++)
        if (sl_experiment_difference(&d, sl_section_name((sl_section)s), text, first, text + first,
                                     bytes - first))
            assert(strcmp(d.ours, d.theirs) != 0);
    return 0;
}
