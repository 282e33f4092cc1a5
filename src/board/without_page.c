/* without_page.c - in place of page.c in the core of libstarling, whose agents are those of
 * sessions: they have no run folder of their own that a page could show. */
#include <stddef.h>

#include "board/page.h"

sl_board_page *sl_board_page_open(const char *folder) {
    (void)folder;
    return NULL;
}

void sl_board_page_routes(sl_board_page *page, sl_http_route routes[SL_BOARD_ROUTES]) {
    (void)page;
    (void)routes;
}

void sl_board_page_close(sl_board_page **page) {
    *page = NULL;
}
