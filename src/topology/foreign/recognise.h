/* recognise.h - formats of other programs, to whoever expects a file of ours. */
#ifndef SL_RECOGNISE_H
#define SL_RECOGNISE_H

#include <jansson.h>

#include "base/bytes.h"
#include "starling/foreign.h"

sl_graph_format sl_graph_recognise_object(const json_t *root);
/* Reads a text of ours, as sl_text_read() does. A graph of another program's is refused with what
 * to do with it, unless it is a JSON object, whose format shows when it is parsed. */
int sl_graph_text_read(char **out, const char *path, size_t bytes_max, sl_error *error);
/* The same of a file that is in memory; closes `bytes` in any case. */
int sl_graph_take_text(char **out, sl_bytes *bytes, sl_error *error);
/* SL_EINVAL, with what to do, unless the format is unknown. */
int sl_graph_refuse(sl_graph_format format, sl_error *error);

#endif
