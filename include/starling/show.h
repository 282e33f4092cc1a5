/* show.h - a run as a page for a browser: served, live or finished, or as one file. */
#ifndef STARLING_SHOW_H
#define STARLING_SHOW_H

#include <stdbool.h>
#include <stddef.h>

#include "starling/board.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_show sl_show;

/* Where it is served. */
typedef struct sl_show_place {
    const char *at;    /* HOST:PORT; port 0: a free one */
    const char *key;   /* begins errors: "monitor.listen" */
    bool is_public;    /* or else on loopback only: */
    const char *allow; /* the setting that lets it be public, as errors name it */
} sl_show_place;

/* Serves the folder's board on a thread of its own, until it is closed. SL_EINVAL: the place is
 * none, or taken, or beyond loopback without is_public. The folder is read once somebody looks. */
SL_API int sl_show_open(sl_show **out, const char *folder, const sl_show_place *place,
                        sl_error *error);
/* "http://127.0.0.1:8000/", as long as it is open. */
SL_API const char *sl_show_address(const sl_show *show);
/* After the run's end: gives those who look the time to see it, about a second; none if nobody
 * does. */
SL_API void sl_show_finish(sl_show *show);
SL_API void sl_show_close(sl_show **show);

/* The same as routes of another server, such as a monitor's (starling/monitor.h). Nothing is read
 * before somebody looks. *routes: (their number, returned) borrowed; of src/http. NULL: out of
 * memory. To be closed after that server. */
typedef struct sl_board_page sl_board_page;
struct sl_http_route;
SL_API sl_board_page *sl_board_page_open(const char *folder);
/* Once, from any thread: agents that are asked, too; see sl_board_ask_at. ports: malloc'ed, and the
 * page's from now on. */
SL_API void sl_board_page_ask_at(sl_board_page *page, sl_asked_port *ports, size_t count);
SL_API size_t sl_board_page_routes(const sl_board_page *page, const struct sl_http_route **routes);
SL_API void sl_board_page_close(sl_board_page **page);

/* The page with the board in it, one file that asks nobody for anything. malloc'ed HTML; NULL: out
 * of memory. */
SL_API char *sl_show_report(const sl_board *board);

#ifdef __cplusplus
}
#endif
#endif
