/* fuzz_tensors.c - a file of parameters, safetensors or .npy: what it may say of a small model. An
 * input is tried as it is, and behind a length that fits it, because few mutations keep the two
 * together. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tensors/file.h"

enum { NUMBERS = 11, DATA_BYTES = NUMBERS * sizeof(float), LENGTH_BYTES = 8 };

static const sl_tensor model[] = {{"a", {2, 3}, 2}, {"b.c", {4}, 1}, {"scalar", {0}, 0}};

static void read_all(const uint8_t *data, size_t size) {
    float x[NUMBERS + 1];
    sl_error error;
    sl_tensors_file file = {
        .fd = memfd_create("input", MFD_CLOEXEC), .bytes = size, .where = "input"};
    if (file.fd < 0 || write(file.fd, data, size) != (ssize_t)size)
        abort();
    x[NUMBERS] = 7;
    if (sl_tensors_read(x, model, sizeof model / sizeof *model, &file, &error) != 0)
        assert(error.text[0] != '\0' && strncmp(error.text, "input", 5) == 0);
    else
        assert(size >= DATA_BYTES);
    assert(x[NUMBERS] == 7);
    close(file.fd);
}

/* The input as header, and right numbers behind it. */
static void read_as_header(const uint8_t *data, size_t size) {
    uint8_t *whole = calloc(1, LENGTH_BYTES + size + DATA_BYTES);
    if (whole == NULL)
        return;
    for (int i = 0; i < LENGTH_BYTES; i++)
        whole[i] = (uint8_t)((uint64_t)size >> 8 * i);
    if (size > 0)
        memcpy(whole + LENGTH_BYTES, data, size);
    read_all(whole, LENGTH_BYTES + size + DATA_BYTES);
    free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_all(data, size);
    read_as_header(data, size);
    return 0;
}
