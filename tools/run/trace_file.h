/* trace_file.h - an agent's trace, in its run folder. A run goes on without it: what cannot be
 * written is a warning. */
#ifndef TRACE_FILE_H
#define TRACE_FILE_H

#include "cli/tool.h"

/* *out stays as it was where there is none. */
void trace_file_open(sl_trace **out, const char *folder, uint32_t rank);
/* NULL: there is none. */
void trace_file_close(sl_trace **trace);

#endif
