/* page.h - a run's page as routes of an HTTP server: its files, its board, and a stream of what
 * changes on it. Nothing is opened or read before somebody looks. */
#ifndef SL_BOARD_PAGE_H
#define SL_BOARD_PAGE_H

#include "http/http.h"
#include "starling/show.h"

enum { SL_BOARD_ROUTES = 6 };

/* From any thread: has somebody looked within the last seconds? */
bool sl_board_page_is_watched(const sl_board_page *page);

/* An answer of a server of runs, beside the page's routes: sl_board_metrics. page: its context. */
void sl_board_page_metrics(void *page, const char *query, sl_http_answer *out);

#endif
