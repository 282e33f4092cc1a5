/* page.h - a run's page as routes of an HTTP server: its files, its board, and a stream of what
 * changes on it. Nothing is opened or read before somebody looks. */
#ifndef SL_PAGE_H
#define SL_PAGE_H

#include "http/http.h"
#include "starling/board.h"

enum { SL_PAGE_ROUTES = 6 };

typedef struct sl_page sl_page;

/* NULL: out of memory. */
sl_page *sl_page_open(const char *folder);
/* To be served on one thread, and not after sl_page_close. */
void sl_page_routes(sl_page *page, sl_http_route routes[SL_PAGE_ROUTES]);
void sl_page_close(sl_page **page);

#endif
