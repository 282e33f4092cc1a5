/* listed.h - a partition that a file lists: the node of each training sample, in their order. */
#ifndef SL_LEARNER_LISTED_H
#define SL_LEARNER_LISTED_H

#include <stdint.h>

#include "base/bytes.h"

#define SL_LISTED_NOBODY UINT32_MAX /* has no node: -1 in the file */

/* Reads owners (samples), each below `nodes` or SL_LISTED_NOBODY; each node owns a sample. A text
 * has one integer per line; a .npy file has one axis of integers. SL_EINVAL: it does not fit the
 * samples or the nodes. */
int sl_listed_read(uint32_t *owners, const char *path, uint32_t samples, uint32_t nodes,
                   sl_error *error);
/* The same from the file's bytes. */
int sl_listed_parse(uint32_t *owners, sl_bytes *file, uint32_t samples, uint32_t nodes,
                    sl_error *error);

#endif
