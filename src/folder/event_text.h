/* event_text.h - an event as a line of JSON, and back. */
#ifndef SL_EVENT_TEXT_H
#define SL_EVENT_TEXT_H

#include <stddef.h>

#include "starling/observer.h"

/* Without an end of line, malloc'ed; NULL: out of memory. time_s: since 1970. */
char *sl_event_text_write(const sl_log_entry *entry, double time_s);
/* SL_EFILE names the field, its value, and what is allowed. */
int sl_event_text_read(sl_log_entry *out, const char *text, size_t bytes, sl_error *error);
/* The lists of an entry that was read. */
void sl_event_text_free(const sl_log_entry *entry);

#endif
