/* page.h - a run's page as routes of an HTTP server: its files, its board, and a stream of what
 * changes on it. Nothing is opened or read before somebody looks. */
#ifndef SL_BOARD_PAGE_H
#define SL_BOARD_PAGE_H

#include "http/http.h"
#include "starling/board.h"

enum { SL_BOARD_ROUTES = 6 };

typedef struct sl_board_page sl_board_page;

/* NULL: out of memory. */
sl_board_page *sl_board_page_open(const char *folder);
/* To be served on one thread, and not after sl_board_page_close. */
void sl_board_page_routes(sl_board_page *page, sl_http_route routes[SL_BOARD_ROUTES]);
/* From any thread: has somebody looked within the last seconds? */
bool sl_board_page_is_watched(const sl_board_page *page);
void sl_board_page_close(sl_board_page **page);

#endif
