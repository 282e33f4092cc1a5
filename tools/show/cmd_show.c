/* cmd_show.c - `starling show`: a run as a page in a browser, or as one file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/browser.h"
#include "cli/tool.h"

#define LISTEN_USUALLY "127.0.0.1:0"

typedef struct show_request {
    const char *out, *listen;
    bool open, is_public;
} show_request;

/* An existing file is replaced once the new one is whole. */
static int write_file(const char *path, const char *text, sl_error *error) {
    char beside[SL_PATH_MAX + 8];
    snprintf(beside, sizeof beside, "%.*s.new", SL_PATH_MAX - 1, path);
    FILE *file = fopen(beside, "w");
    bool well = file != NULL && fputs(text, file) >= 0;
    int why = errno;
    if (file != NULL && fclose(file) != 0) {
        well = false;
        why = errno;
    }
    if (well && rename(beside, path) == 0)
        return 0;
    why = well ? errno : why;
    if (file != NULL)
        unlink(beside);
    return sl_fail(error, SL_EFILE, "%s: cannot be written: %s", path, strerror(why));
}

static int report(const sl_board *board, const char *path, sl_error *error) {
    char *html = sl_show_report(board);
    if (html == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a page");
    const int result = write_file(path, html, error);
    free(html);
    return result;
}

/* Until a signal. */
static int serve(const show_request *r, const char *folder, sl_error *error) {
    sl_show *show = NULL;
    catch_signals(NULL);
    const sl_show_place place = {.at = r->listen != NULL ? r->listen : LISTEN_USUALLY,
                                 .key = "--listen",
                                 .allow = "--public",
                                 .is_public = r->is_public};
    const int result = sl_show_open(&show, folder, &place, error);
    if (result != 0)
        return result;
    tell_line("%s shows %s until Ctrl-C", sl_show_address(show), folder);
    fflush(stdout);
    if (r->open)
        browser_open(sl_show_address(show));
    while (!stop_requested)
        pause();
    sl_show_close(&show);
    return 0;
}

static int run(void *request, char *const *operands, size_t count) {
    const show_request *r = request;
    sl_board *board = NULL;
    sl_error error;
    (void)count;
    if (r->out != NULL && (r->listen != NULL || r->open || r->is_public)) {
        complain("show: -o writes a file, and --listen, --public and --open are of a page that is "
                 "served: give one or the other");
        return TOOL_USAGE;
    }
    int result = sl_board_open(&board, operands[0], &error);
    if (result == 0 && r->out != NULL)
        result = sl_board_look(board, 0.5, &error);
    int code = result == 0 ? TOOL_FAILED : TOOL_USAGE;
    if (result == 0 && r->out != NULL)
        result = report(board, r->out, &error);
    sl_board_close(&board);
    if (result == 0 && r->out == NULL) {
        result = serve(r, operands[0], &error);
        code = TOOL_USAGE;
    }
    if (result == 0)
        return TOOL_OK;
    complain("%s", error.text);
    return code;
}

static const command_option option_output = {"output",
                                             .letter = 'o',
                                             .argument = "FILE.html",
                                             .help = "write one file with all of it instead; an "
                                                     "existing file is replaced",
                                             .take = take_text,
                                             .offset = offsetof(show_request, out),
                                             .offer = OFFER_FILE},
                            option_listen = {"listen",
                                             .argument = "HOST:PORT",
                                             .otherwise = "127.0.0.1 and a free port",
                                             .help = "where it is served",
                                             .take = take_text,
                                             .offset = offsetof(show_request, listen)},
                            option_public = {"public",
                                             .help = "HOST may be beyond loopback, where anybody "
                                                     "may look, unencrypted",
                                             .take = take_switch,
                                             .offset = offsetof(show_request, is_public)},
                            option_open = {"open", .help = "open it in the browser (xdg-open)",
                                           .take = take_switch,
                                           .offset = offsetof(show_request, open)};
static const command_option *const option_rows[] = {&option_output, &option_listen, &option_public,
                                                    &option_open, NULL};

const command show_command = {
    .name = "show",
    .summary = "show a run as a page in a browser, live or finished",
    .operands = "RUN",
    .operands_min = 1,
    .operands_max = 1,
    .offer = OFFER_FOLDER,
    .text = "Serves a page of the run in the folder RUN: its network, curves, where each node's "
            "time went, edges, and events. It follows a run that goes on. With -o it writes the "
            "page as one file, which needs no server.",
    .options = option_rows,
    .request_bytes = sizeof(show_request),
    .run = run,
};
