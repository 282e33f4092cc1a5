/* names.h - how people write what the library counts. */
#ifndef NAMES_H
#define NAMES_H

#include "starling/starling.h"

/* "top-k 1 %", "qsgd s = 7": what is sent of a vector. */
void name_compressor(const sl_compressor_config *k, char *out, size_t bytes);
/* "5 Mbit/s", "10 Gbit/s", rounded to so many digits. */
void name_bandwidth(char *out, size_t bytes, double mbit, int digits);

/* "1:07", "2:03:20": hours, minutes and seconds. */
void name_duration(char *out, size_t bytes, double seconds);

#endif
