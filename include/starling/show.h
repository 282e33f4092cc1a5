/* show.h - a run as a page for a browser: served, live or finished, or as one file. */
#ifndef STARLING_SHOW_H
#define STARLING_SHOW_H

#include <stdbool.h>
#include <stdint.h>

#include "starling/board.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_show sl_show;

/* Serves the folder's board at HOST:PORT, port 0: a free one, on a thread of its own, until it is
 * closed. `key` names the place in errors, such as "monitor.listen". SL_EINVAL: the place is none,
 * or taken, or beyond loopback without is_public. The folder is read as somebody looks. */
SL_API int sl_show_open(sl_show **out, const char *folder, const char *place, const char *key,
                        bool is_public, sl_error *error);
/* "http://127.0.0.1:8000/", as long as it is open. */
SL_API const char *sl_show_address(const sl_show *show);
SL_API void sl_show_close(sl_show **show);

/* The page with the board in it, one file that asks nobody for anything. malloc'ed HTML; NULL: out
 * of memory. */
SL_API char *sl_show_report(const sl_board *board);

#ifdef __cplusplus
}
#endif
#endif
