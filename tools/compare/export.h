/* export.h - a comparison as files for other programs: compare, runs and records, .csv and .jsonl.
 * docs/outputs.md lists their columns. */
#ifndef EXPORT_H
#define EXPORT_H

#include "compare/comparison.h"

/* Into the study's folder. */
int export_all(const comparison *c, sl_error *error);

#endif
