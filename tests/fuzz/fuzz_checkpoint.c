/* fuzz_checkpoint.c - a file of a checkpoint: what it may say before it is believed. An input is
 * tried as it is, and with the sum of its head put right. */
#include <inttypes.h>

#include "folder.h"
#include "starling/checkpoint.h"
#include "wire/checksum.h"

enum { DIGITS = 16 };

static void try_file(const uint8_t *data, size_t size) {
    const sl_checkpoint_owner owner = {.run = 7, .nodes = 2, .dimension = 4, .seed = 1};
    const sl_checkpoint_file file = {.round = 1, .rank = 0};
    uint32_t nodes;
    sl_error error = {0};
    folder_write("round-1-rank-0.safetensors", data, size);
    if (sl_checkpoint_check(folder_path(), file, NULL, &nodes, &error) != 0)
        assert(error.text[0] != '\0');
    if (sl_checkpoint_check(folder_path(), file, &owner, NULL, &error) != 0)
        assert(error.text[0] != '\0');
}

/* The head as its length says, with its right sum. */
static void try_with_sum(const uint8_t *data, size_t size) {
    uint64_t length = 0;
    for (size_t i = 0; i < 8 && size >= 8; i++)
        length |= (uint64_t)data[i] << 8 * i;
    if (size < 8 || length > size - 8)
        return;
    uint8_t *copy = malloc(size);
    if (copy == NULL)
        return;
    memcpy(copy, data, size);
    char digits[DIGITS + 1], *sum = memmem(copy, 8 + length, "\"sum\":\"", 7);
    if (sum != NULL && sum + 7 + DIGITS <= (char *)copy + 8 + length) {
        memset(sum + 7, '0', DIGITS);
        snprintf(digits, sizeof digits, "%016" PRIx64, sl_checksum(copy, 8 + length));
        memcpy(sum + 7, digits, DIGITS);
        try_file(copy, size);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    try_file(data, size);
    try_with_sum(data, size);
    return 0;
}
