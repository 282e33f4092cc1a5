/* page.c - see page.h. All viewers share one board, which is looked at twice a second while there
 * are some; each is sent what has changed since its own last version. */
#include "board/page.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/clock.h"
#include "base/exposition.h"
#include "board/embedded.h"
#include "starling/types.h"

#define LOOK_EVERY_S 0.45
#define WATCHED_S 2.0
#define PATIENCE_S 0.2 /* with agents that are asked */
/* Nothing of another host, and nothing in line. */
#define POLICY                                                                                     \
    "Content-Security-Policy: default-src 'self'\r\nX-Content-Type-Options: nosniff\r\n"           \
    "Referrer-Policy: no-referrer\r\n"

struct sl_board_page {
    char folder[SL_PATH_MAX];
    sl_http_route routes[SL_BOARD_ROUTES];
    sl_asked_port *ports;
    _Atomic size_t port_count; /* is set after them */
    sl_board *board;           /* NULL: nobody has looked */
    _Atomic double looked_s;   /* 0: never */
};

void sl_board_page_close(sl_board_page **page) {
    if (*page == NULL)
        return;
    sl_board_close(&(*page)->board);
    free((*page)->ports);
    free(*page);
    *page = NULL;
}

void sl_board_page_ask_at(sl_board_page *page, sl_asked_port *ports, size_t count) {
    page->ports = ports;
    page->port_count = count;
}

bool sl_board_page_is_watched(const sl_board_page *page) {
    return page->looked_s > 0 && sl_clock_seconds() - page->looked_s < WATCHED_S;
}

static int look(sl_board_page *p, sl_error *error) {
    const double now_s = sl_clock_seconds();
    const size_t port_count = p->port_count;
    int result = 0;
    if (p->board == NULL)
        result = sl_board_open(&p->board, p->folder, error);
    else if (now_s - p->looked_s < LOOK_EVERY_S)
        return 0;
    if (result == 0) {
        sl_board_ask_at(p->board, port_count > 0 ? p->ports : NULL, port_count);
        result = sl_board_look(p->board, PATIENCE_S, error);
    }
    p->looked_s = sl_clock_seconds();
    return result;
}

/* ---- files ---- */

typedef struct page_file {
    const char *path, *type;
    const sl_embedded *content;
} page_file;

static const page_file files[] = {
    {"/", "text/html; charset=utf-8", &sl_page_html},
    {"/page.css", "text/css; charset=utf-8", &sl_page_css},
    {"/page.js", "text/javascript; charset=utf-8", &sl_page_js},
    {"/icon.svg", "image/svg+xml", &sl_icon_svg},
};
enum { FILES = sizeof files / sizeof *files };

static void give_file(void *context, const char *query, sl_http_answer *out) {
    const page_file *file = context;
    (void)query;
    out->type = file->type;
    out->headers = "Content-Encoding: gzip\r\nCache-Control: no-cache\r\n" POLICY;
    out->body = file->content->packed;
    out->bytes = file->content->packed_bytes;
}

/* ---- the board ---- */

static char *whole_text(const sl_board *board) {
    return sl_board_text(board, 0);
}

static void give_text(sl_board_page *p, const char *type, char *(*write)(const sl_board *board),
                      sl_http_answer *out) {
    sl_error error;
    const int result = look(p, &error);
    char *text = result == 0 ? write(p->board) : strdup(error.text);
    out->status = result == 0 && text != NULL ? 200 : 500;
    out->type = result == 0 ? type : "text/plain; charset=utf-8";
    out->body = text != NULL ? text : "";
    out->bytes = text != NULL ? strlen(text) : 0;
    out->owned = text;
}

static void give_board(void *context, const char *query, sl_http_answer *out) {
    (void)query;
    give_text(context, "application/json", whole_text, out);
}

void sl_board_page_metrics(void *context, const char *query, sl_http_answer *out) {
    (void)query;
    give_text(context, SL_EXPOSITION_TYPE, sl_board_metrics, out);
}

/* A folder that cannot be read now may be read at the next tick. */
static bool tell_changes(void *context, uint64_t *cursor, struct evbuffer *out) {
    sl_board_page *p = context;
    if (look(p, NULL) != 0 || sl_board_version(p->board) == *cursor)
        return true;
    char *text = sl_board_text(p->board, *cursor);
    const bool told = text != NULL && evbuffer_add_printf(out, "data: %s\n\n", text) > 0;
    free(text);
    if (told)
        *cursor = sl_board_version(p->board);
    return told;
}

sl_board_page *sl_board_page_open(const char *folder) {
    sl_board_page *page = calloc(1, sizeof *page);
    if (page == NULL)
        return NULL;
    static_assert(FILES + 2 == SL_BOARD_ROUTES, "files, board and events");
    for (size_t i = 0; i < FILES; i++)
        page->routes[i] = (sl_http_route){
            .path = files[i].path, .context = (void *)&files[i], .answer = give_file};
    page->routes[FILES] = (sl_http_route){.path = "/board", .context = page, .answer = give_board};
    page->routes[FILES + 1] =
        (sl_http_route){.path = "/events", .context = page, .stream = tell_changes};
    snprintf(page->folder, sizeof page->folder, "%s", folder);
    return page;
}

size_t sl_board_page_routes(const sl_board_page *page, const sl_http_route **routes) {
    *routes = page->routes;
    return SL_BOARD_ROUTES;
}
