/* show.h - what only the library asks of the printer of text from outside; see starling/text.h. */
#ifndef SL_SHOW_H
#define SL_SHOW_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character of UTF-8 that a text begins with, which is *out, if a terminal obeys it;
 * 0: it prints it, or the text is not UTF-8. */
size_t sl_text_obeyed(uint32_t *out, const char *text, size_t bytes);

#endif
