/* options.c - what a session is told; see starling/session.h. */
#include <string.h>

#include "starling/session.h"

void sl_session_defaults(sl_session_options *options, uint64_t size) {
    const sl_session_options defaults = {.size = size, .rank = -1, .nodes = -1};
    memset(options, 0, size);
    memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
}
