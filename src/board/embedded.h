/* embedded.h - the page's files, as web/embed.py has made them. */
#ifndef SL_EMBEDDED_H
#define SL_EMBEDDED_H

#include <stddef.h>

typedef struct sl_embedded {
    const unsigned char *packed; /* (packed_bytes) gzip of (bytes) of UTF-8 */
    size_t packed_bytes, bytes;
} sl_embedded;

extern const sl_embedded sl_page_html, sl_page_css, sl_page_js, sl_icon_svg;

#endif
