/* noise.h - a folder of data in which there is nothing to learn: the six files of CIFAR-10, and a
 * text in which each letter calls for the next. */
#ifndef STARLING_TEST_NOISE_H
#define STARLING_TEST_NOISE_H

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "starling/rng.h"

enum { NOISE_RECORDS = 40, NOISE_RECORD_BYTES = 3073, NOISE_FILES = 7, NOISE_LETTERS = 4000 };

static inline void noise_name(char path[64], const char *folder, int f) {
    snprintf(path, 64,
             f < 5    ? "%s/data_batch_%d.bin"
             : f == 5 ? "%s/test_batch.bin"
                      : "%s/text",
             folder, f + 1);
}

/* Makes the folder, whose name ends with XXXXXX. */
static inline void noise_write(char *folder) {
    static uint8_t bytes[NOISE_RECORDS * NOISE_RECORD_BYTES];
    sl_rng rng = sl_rng_open(1, 0, 0, SL_PURPOSE_DATA);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (int f = 0; f < NOISE_FILES; f++) {
        char path[64];
        const size_t count = f == NOISE_FILES - 1 ? NOISE_LETTERS : sizeof bytes;
        noise_name(path, folder, f);
        for (size_t i = 0; i < count; i++)
            bytes[i] = (uint8_t)(f == NOISE_FILES - 1
                                     ? 'a' + (i + sl_rng_below(&rng, 3)) % 20
                                     : sl_rng_below(&rng, i % NOISE_RECORD_BYTES == 0 ? 10 : 256));
        FILE *file = fopen(path, "wb");
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
        ck_assert_int_eq(fclose(file), 0);
    }
}

static inline void noise_remove(const char *folder) {
    for (int f = 0; f < NOISE_FILES; f++) {
        char path[64];
        noise_name(path, folder, f);
        ck_assert_int_eq(remove(path), 0);
    }
    ck_assert_int_eq(remove(folder), 0);
}

#endif
