/* tensorboard.h - event files of TensorBoard, which other viewers read too:
 * tensorboard/node-<rank>/ of each node, tensorboard/mean/ of the averaged model. They hold the
 * numbers of the lines of JSON beside them, under the same names.
 *
 * NULL takes what is added, and writes nothing. */
#ifndef SL_TENSORBOARD_H
#define SL_TENSORBOARD_H

#include <jansson.h>
#include <stdint.h>

#include "folder/history.h"

enum { SL_TENSORBOARD_MEAN = -1 }; /* the rank of the averaged model */

typedef struct sl_tensorboard sl_tensorboard;

/* Of the run folder at `path`; of so many nodes each has one. Makes no file yet. */
int sl_tensorboard_open(sl_tensorboard **out, const char *path, uint32_t nodes, sl_error *error);
/* The run goes on: what was added of these rounds, the first one's of `first`, or later ones is
 * void. UINT64_MAX: nothing of that node. */
void sl_tensorboard_resume(sl_tensorboard *b, uint32_t first, sl_line_ends ends);
/* Adds the numbers of a line, at its "round"; those of `rank` that has no files are passed over. */
int sl_tensorboard_add(sl_tensorboard *b, sl_files *files, int64_t rank, const json_t *line,
                       sl_error *error);
void sl_tensorboard_close(sl_tensorboard **b, sl_files *files);

#endif
