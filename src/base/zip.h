/* zip.h - the files in a zip archive, stored or deflated. */
#ifndef SL_ZIP_H
#define SL_ZIP_H

#include <stdbool.h>

#include "base/bytes.h"

/* Do these bytes begin as an archive? */
bool sl_zip_is(const sl_bytes *bytes);
/* Unpacks the member of this name into *out, named "ARCHIVE: NAME". *found: it is there; else *out
 * is not touched. SL_EFILE: the archive is damaged, encrypted, larger than 4 GiB, or packs in
 * another way; or the member would be larger than SL_BYTES_MAX. */
int sl_zip_read(sl_bytes *out, bool *found, const sl_bytes *archive, const char *name,
                sl_error *error);

#endif
