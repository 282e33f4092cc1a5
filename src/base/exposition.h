/* exposition.h - numbers as Prometheus reads them: its text format, version 0.0.4. */
#ifndef SL_EXPOSITION_H
#define SL_EXPOSITION_H

#include <stdio.h>

#define SL_EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* type: "gauge" or "counter". */
void sl_exposition_head(FILE *out, const char *name, const char *type, const char *help);
/* One that has no labels. NaN: it is not known, and left out. */
void sl_exposition_number(FILE *out, const char *name, const char *type, const char *help,
                          double value);

#endif
