/* compressor_cases.h - every compressor with usual parameters, some with particular ones, and each
 * of these with every coding that it takes. */
#ifndef COMPRESSOR_CASES_H
#define COMPRESSOR_CASES_H

#include <assert.h>

#include "messages.h"
#include "usual_compressor.h"

enum { CASES_MAX = 400 };

static const sl_compressor_config particular[] = {
    KIND(QSGD, .levels = 1),
    KIND(QSGD, .levels = 7, .bucket = 512),
    KIND(QSGD, .levels = 4, .bucket = 1000),
    KIND(QSGD, .levels = 3, .norm = SL_NORM_MAX),
    KIND(QSGD, .levels = 7, .bucket = 100, .norm = SL_NORM_MAX),
    KIND(QSGD, .levels = 3, .bucket = 16, .contractive = true),
    KIND(QSGD, .levels = 15, .bucket = 20),
    KIND(QSGD, .levels = 100, .bucket = 8),
    KIND(QSGD, .levels = 127, .bucket = 3072),
    KIND(QSGD, .levels = 130, .bucket = 4),
    KIND(QSGD, .levels = 300, .norm = SL_NORM_MAX),
    KIND(QSGD, .levels = 3000, .bucket = 4096, .contractive = true),
    KIND(QSGD, .levels = 32767),
    KIND(QSGD, .levels = 32767, .bucket = 70000, .norm = SL_NORM_MAX),
    KIND(SCALED_SIGN, .bucket = 0),
    KIND(SCALED_SIGN, .bucket = 512),
    KIND(SCALED_SIGN, .bucket = 13),
    KIND(SCALED_SIGN, .bucket = 266240), /* each of 262144, which go at once, and some more */
    KIND(ONE_BIT, .bucket = 0),
    KIND(ONE_BIT, .bucket = 2048),
    KIND(ONE_BIT, .bucket = 7),
    KIND(TERNGRAD, .bucket = 0),
    KIND(TERNGRAD, .bucket = 64, .contractive = true),
    KIND(TERNGRAD, .bucket = 777),
    KIND(TERNGRAD, .bucket = 12),
    KIND(TERNGRAD, .clip_sigma = 1),
    KIND(TERNGRAD, .clip_sigma = 2.5),
    KIND(TERNGRAD, .clip_sigma = 8),
    KIND(TERNGRAD, .bucket = 100, .clip_sigma = 1.5),
    KIND(NATURAL, .contractive = true),
    KIND(ROTATED_QSGD, .levels = 3, .bucket = 512),
    KIND(ROTATED_QSGD, .levels = 7, .norm = SL_NORM_MAX),
    KIND(ROTATED_QSGD, .levels = 60, .bucket = 1000),
    KIND(ROTATED_TERNGRAD, .bucket = 256),
    KIND(TOP_K, .fraction = 0.01),
    KIND(TOP_K, .fraction = 0.34),
    KIND(RANDOM_K, .fraction = 0.01, .scaled = true),
    KIND(RANDOM_K, .fraction = 0.67),
    KIND(RANDOM_K, .fraction = 0.9, .scaled = true),
    KIND(RANDOM_K, .fraction = 0.3, .scaled = true, .contractive = true),
    KIND(SHARED_MASK, .fraction = 0.3),
    KIND(SHARED_MASK, .fraction = 0.3, .order = SL_ORDER_CYCLIC),
    KIND(RANDOM_DROPPING, .probability = 0.02, .scaled = true),
    KIND(RANDOM_DROPPING, .probability = 0.7),
    KIND(RANDOM_DROPPING, .probability = 0.4, .scaled = true, .contractive = true),
    KIND(MAGNITUDE_DROPPING, .fraction = 0.01),
    KIND(STC, .fraction = 0.01),
    KIND(SBC, .fraction = 0.01),
    KIND(POS_NEG, .fraction = 0.01),
    KIND(STROM, .threshold = 2.5),
    KIND(DRIVE, .contractive = true),
    KIND(THREE_LC, .multiplier = 1.99),
    KIND(ADACOMP, .bin = 1),
    KIND(ADACOMP, .bin = 64),
    KIND(ADACOMP, .bin = 1500),
    KIND(MODULAR, .bits = 7, .theta = 0.4),
    KIND(GRID, .bits = 9),
};

static sl_compressor_config cases[CASES_MAX];
static int case_count;

static void add_case(sl_compressor_config config) {
    assert(case_count < CASES_MAX);
    cases[case_count++] = config;
}

/* The first three, the last, and each fourth between. */
static void add_widths(sl_compressor_kind kind, uint32_t most) {
    for (uint32_t bits = 1; bits <= most; bits++)
        if (bits <= 3 || bits % 4 == 0)
            add_case((sl_compressor_config){.kind = kind, .bits = bits, .theta = 0.4});
}

static void gather_cases(void) {
    case_count = 0; /* a process may run several tests */
    for (int kind = 0; kind < SL_COMPRESSOR_KINDS; kind++)
        if (kind != SL_COMPRESSOR_COUNT)
            add_case(usual_compressor((sl_compressor_kind)kind));
    for (size_t i = 0; i < LENGTH(particular); i++)
        add_case(particular[i]);
    add_widths(SL_COMPRESSOR_EDEN, 4);
    for (uint32_t bits = 1; bits <= 4; bits++)
        add_case(CONFIG(EDEN, .bits = bits, .contractive = true));
    add_widths(SL_COMPRESSOR_MODULAR, 24);
    add_widths(SL_COMPRESSOR_GRID, 16);
    for (int i = 0, plain = case_count; i < plain; i++)
        for (int coding = SL_ENTROPY_GOLOMB; coding <= SL_ENTROPY_HUFFMAN; coding++) {
            sl_compressor_config config = cases[i];
            config.coding = (sl_entropy)coding;
            if (sl_compressor_reads(config.kind, "coding") &&
                sl_compressor_check(&config, 1000, &(sl_error){0}) == 0)
                add_case(config);
        }
}

#endif
