/* tensorboard.h - event files of TensorBoard, which other viewers read too:
 * tensorboard/node-<rank>/ of each node, tensorboard/mean/ of the averaged model. They hold the
 * numbers of the lines of JSON beside them, under the same names.
 *
 * A NULL of boards takes what is added, and writes nothing. */
#ifndef SL_TENSORBOARD_H
#define SL_TENSORBOARD_H

#include <jansson.h>
#include <stdint.h>

#include "folder/history.h"

enum { SL_TENSORBOARD_MEAN = -1 }; /* the rank of the averaged model */

typedef struct sl_tensorboards sl_tensorboards;

/* Of the run folder at `path`; of so many nodes each has one. Makes no file yet. */
int sl_tensorboards_open(sl_tensorboards **out, const char *path, uint32_t nodes, sl_error *error);
/* The run goes on: what was added of these rounds, the first one's of `first`, or later ones is
 * void. UINT64_MAX: nothing of that node. */
void sl_tensorboards_resume(sl_tensorboards *b, uint32_t first, sl_line_ends ends);
/* Adds the numbers of a line, at its "round"; those of `rank` that has no board are passed over. */
int sl_tensorboards_add(sl_tensorboards *b, sl_files *files, int64_t rank, const json_t *line,
                        sl_error *error);
void sl_tensorboards_close(sl_tensorboards **b, sl_files *files);

#endif
