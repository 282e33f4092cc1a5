/* show.c - see starling/show.h. */
#include "starling/show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/clock.h"
#include "board/embedded.h"
#include "board/page.h"
#include "launch/roster.h"

#define FINISH_S 1.1 /* two looks */
enum { ADDRESS_MAX = SL_HOST_MAX + 24 };

struct sl_show {
    sl_board_page *page;
    sl_http *http;
    char address[ADDRESS_MAX];
};

/* ---- served ---- */

/* What a browser on this machine can open. */
static void write_address(sl_show *show, const char *host) {
    const bool any = sl_host_is_any(host), colons = strchr(host, ':') != NULL;
    snprintf(show->address, sizeof show->address, "http://%s%s%s:%u/", colons && !any ? "[" : "",
             any ? "localhost" : host, colons && !any ? "]" : "", sl_http_port(show->http));
}

static int serve(sl_show *show, const sl_show_place *place, sl_error *error) {
    const sl_http_route *pages;
    sl_http_route routes[SL_BOARD_ROUTES + 1] = {
        {.path = "/metrics", .context = show->page, .answer = sl_board_page_metrics}};
    char host[SL_HOST_MAX];
    sl_http_place at = {
        .host = host, .is_public = place->is_public, .allow = place->allow, .key = place->key};
    int result = sl_place_parse(host, &at.port, place->at, 0, place->key, error);
    if (result != 0)
        return result;
    const size_t count = sl_board_page_routes(show->page, &pages);
    memcpy(routes + 1, pages, count * sizeof *pages);
    result = sl_http_open(&show->http, &at, routes, 1 + count, error);
    if (result == 0)
        write_address(show, host);
    return result;
}

int sl_show_open(sl_show **out, const char *folder, const sl_show_place *place, sl_error *error) {
    sl_show *show = calloc(1, sizeof *show);
    if (show != NULL)
        show->page = sl_board_page_open(folder);
    const int result = show != NULL && show->page != NULL
                           ? serve(show, place, error)
                           : sl_fail(error, SL_ENOMEM, "out of memory for a page");
    if (result == 0)
        *out = show;
    else
        sl_show_close(&show);
    return result;
}

const char *sl_show_address(const sl_show *show) {
    return show->address;
}

void sl_show_finish(sl_show *show) {
    if (show != NULL && sl_board_page_is_watched(show->page))
        sl_clock_sleep(FINISH_S);
}

void sl_show_close(sl_show **show) {
    if (*show == NULL)
        return;
    sl_http_close(&(*show)->http);
    sl_board_page_close(&(*show)->page);
    free(*show);
    *show = NULL;
}

/* ---- as one file ---- */

/* malloc'ed, with a 0 behind it; NULL: out of memory. */
static char *unpack(const sl_embedded *file) {
    char *text = calloc(1, file->bytes + 1);
    z_stream z = {.next_in = (unsigned char *)file->packed,
                  .avail_in = (unsigned)file->packed_bytes,
                  .next_out = (unsigned char *)text,
                  .avail_out = (unsigned)file->bytes};
    bool whole = text != NULL && inflateInit2(&z, 16 + MAX_WBITS) == Z_OK;
    if (whole) {
        whole = inflate(&z, Z_FINISH) == Z_STREAM_END;
        inflateEnd(&z);
    }
    if (!whole) {
        free(text);
        text = NULL;
    }
    return text;
}

/* JSON that no HTML can end. */
static void put_json(FILE *out, const char *json) {
    for (; *json != '\0'; json++)
        if (*json == '<')
            fputs("\\u003c", out);
        else
            fputc(*json, out);
}

static const char style_line[] = "<link rel=\"stylesheet\" href=\"page.css\">\n",
                  icon_line[] = "<link rel=\"icon\" href=\"icon.svg\">\n",
                  script_line[] = "<script defer src=\"page.js\"></script>\n",
                  end_line[] = "</body>";

/* Up to the line, which is left out; then follows what stands behind it. */
static const char *put_until(FILE *out, const char *html, const char *line) {
    const char *at = strstr(html, line);
    if (at == NULL)
        return html;
    fwrite(html, 1, (size_t)(at - html), out);
    return at + strlen(line);
}

static void put_page(FILE *out, const char *html, const char *css, const char *js,
                     const char *json) {
    html = put_until(out, html, icon_line);
    html = put_until(out, html, style_line);
    fprintf(out, "<style>\n%s</style>\n", css);
    html = put_until(out, html, script_line);
    html = put_until(out, html, end_line);
    fputs("<script type=\"application/json\" id=\"board\">", out);
    put_json(out, json);
    fprintf(out, "</script>\n<script>\n%s</script>\n%s%s", js, end_line, html);
}

char *sl_show_report(const sl_board *board) {
    char *html = unpack(&sl_page_html), *css = unpack(&sl_page_css), *js = unpack(&sl_page_js),
         *json = sl_board_text(board, 0), *text = NULL;
    size_t bytes = 0;
    FILE *out = html && css && js && json ? open_memstream(&text, &bytes) : NULL;
    if (out != NULL) {
        put_page(out, html, css, js, json);
        const bool failed = ferror(out) != 0;
        if (fclose(out) != 0 || failed) {
            free(text);
            text = NULL;
        }
    }
    free(html);
    free(css);
    free(js);
    free(json);
    return text;
}
