/* cut_file.h - one node's file of one cut: its name, how it is written, and how it is read. */
#ifndef SL_CUT_FILE_H
#define SL_CUT_FILE_H

#include "checkpoint/image.h"

enum { SL_CUT_NAME_MAX = 64, SL_CUT_PATH_MAX = SL_PATH_MAX + SL_CUT_NAME_MAX + 8 };

void sl_cut_path(char out[SL_CUT_PATH_MAX], const char *folder, sl_checkpoint_file file);
/* False: the name is no checkpoint's. */
bool sl_cut_name_read(sl_checkpoint_file *out, const char *name);

/* The rounds after `round` of which ranks [from, to) have a file, good or not, rising: the first
 * `room` of them. Returns how many. */
size_t sl_cut_newer(uint64_t *out, size_t room, const char *folder, uint32_t from, uint32_t to,
                    uint64_t round);

/* Writes a sealed image of `bytes`. What it leaves after an error is not taken for a checkpoint.
 * SL_EFILE. */
int sl_cut_write(const sl_image *image, size_t bytes, const char *folder, sl_error *error);

/* Fills a new node, before START, and the extras that the file was written with. view_begins: the
 * next round is the first one under a view, which gives some of the state anew. SL_EFILE names
 * file, field or tensor, and place; the node can only be closed then. */
int sl_cut_load(const char *folder, sl_checkpoint_file file, const sl_checkpoint_owner *owner,
                const sl_machine *node, bool view_begins, const sl_vec_ops *vec,
                const sl_image_extras *extras, sl_error *error);

#endif
