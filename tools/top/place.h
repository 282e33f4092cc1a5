/* place.h - what the one agent at a port says, as a document like a board's: itself, whom it waits
 * for or has heard of, and its edges. */
#ifndef PLACE_H
#define PLACE_H

#include <jansson.h>

#include "cli/tool.h"

/* NULL: as the error says. SL_EPEER: nobody answers there. */
json_t *place_look(const char *place, double patience_s, sl_error *error);

#endif
