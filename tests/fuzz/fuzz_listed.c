/* fuzz_listed.c - the list of a partition, text or .npy. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "learner/data/listed.h"

enum { SAMPLES = 5, NODES = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint32_t owners[SAMPLES];
    sl_error error;
    sl_bytes file = {.data = malloc(size + 1), .size = size, .name = "input"};
    if (file.data == NULL)
        return 0;
    if (size > 0)
        memcpy(file.data, data, size);
    file.data[size] = 0; /* as sl_bytes has it */
    if (sl_listed_parse(owners, &file, SAMPLES, NODES, &error) != 0)
        assert(error.text[0] != '\0');
    else
        for (int i = 0; i < SAMPLES; i++)
            assert(owners[i] < NODES || owners[i] == SL_LISTED_NOBODY);
    free(file.data);
    return 0;
}
