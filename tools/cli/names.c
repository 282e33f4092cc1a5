/* names.c - how people write what the library counts; see names.h. */
#include "cli/names.h"

#include <stdio.h>
#include <stdlib.h>

void name_compressor(const sl_compressor_config *k, char *out, size_t bytes) {
    const char *name = sl_compressor_name(k->kind);
    const bool sparse = sl_compressor_reads(k->kind, "fraction");
    if (sparse && k->k > 0)
        snprintf(out, bytes, "%s k = %llu", name, (unsigned long long)k->k);
    else if (sparse)
        snprintf(out, bytes, "%s %g %%", name, 100 * k->fraction);
    else if (sl_compressor_reads(k->kind, "levels"))
        snprintf(out, bytes, "%s s = %u", name, k->levels);
    else if (k->kind == SL_COMPRESSOR_EDEN || k->kind == SL_COMPRESSOR_MODULAR ||
             k->kind == SL_COMPRESSOR_GRID)
        snprintf(out, bytes, "%s b = %u", name, k->bits);
    else if (k->kind == SL_COMPRESSOR_RANDOM_DROPPING)
        snprintf(out, bytes, "%s p = %g", name, k->probability);
    else if (k->kind == SL_COMPRESSOR_THREE_LC)
        snprintf(out, bytes, "%s s = %g", name, k->multiplier);
    else if (k->kind == SL_COMPRESSOR_ADACOMP)
        snprintf(out, bytes, "%s T = %u", name, k->bin);
    else if (sl_compressor_reads(k->kind, "threshold"))
        snprintf(out, bytes, "%s tau = %g", name, k->threshold);
    else
        snprintf(out, bytes, "%s", name);
}

void name_bandwidth(char *out, size_t bytes, double mbit, int digits) {
    char rounded[32];
    snprintf(rounded, sizeof rounded, "%.*g", digits, mbit);
    mbit = strtod(rounded, NULL);
    if (mbit >= 1000)
        snprintf(out, bytes, "%.6g Gbit/s", mbit / 1000);
    else
        snprintf(out, bytes, "%.6g Mbit/s", mbit);
}

void name_duration(char *out, size_t bytes, double seconds) {
    const unsigned long long whole = (unsigned long long)(seconds > 0 ? seconds + 0.5 : 0),
                             minutes = whole / 60;
    if (minutes < 60)
        snprintf(out, bytes, "%llu:%02llu", minutes, whole % 60);
    else
        snprintf(out, bytes, "%llu:%02llu:%02llu", minutes / 60, minutes % 60, whole % 60);
}
