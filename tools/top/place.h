/* place.h - the run at a port: its document (starling/board.h), where that is served; else what the
 * one agent there says, in the same form: itself, whom it waits for or has heard of, its edges. */
#ifndef PLACE_H
#define PLACE_H

#include <jansson.h>

#include "cli/tool.h"

/* NULL: as the error says. SL_EPEER: nobody answers there. */
json_t *place_look(const char *place, double patience_s, sl_error *error);

#endif
