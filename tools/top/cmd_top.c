/* cmd_top.c - `starling top`: a run as a page of text, which a terminal shows anew each second. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/text_table.h"
#include "cli/tool.h"
#include "top/frame.h"
#include "top/place.h"

#define PATIENCE_S 0.5
#define PATIENCE_FAR_S 3.0
#define EVERY_S 1.0
/* Another screen, without cursor, and lines that are cut at its edge; and back. */
#define SCREEN_BEGIN "\033[?1049h\033[?25l\033[?7l"
#define SCREEN_END "\033[?7h\033[?25h\033[?1049l"

typedef struct top_request {
    bool wide, once;
} top_request;

typedef struct top {
    const char *where;
    sl_board *board; /* NULL: an agent at a port */
    bool is_live, wide, is_over;
} top;

/* ---- the terminal ---- */

static bool is_terminal(void) {
    const char *kind = getenv("TERM");
    return isatty(STDOUT_FILENO) && kind != NULL && strcmp(kind, "dumb") != 0;
}

static size_t lines_of_terminal(void) {
    const char *set = getenv("LINES");
    const long lines = set != NULL ? strtol(set, NULL, 10) : 0;
    struct winsize size;
    if (lines > 0)
        return (size_t)lines;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

/* As the C library chooses the characters. */
static bool is_unicode(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0')
            return strcasestr(value, "UTF-8") != NULL || strcasestr(value, "UTF8") != NULL;
    }
    return false;
}

/* A frame over the one before: nothing flickers. */
static void show_over(const char *text) {
    fputs("\033[H", stdout);
    for (const char *end; *text != '\0'; text = end) {
        const size_t bytes = strcspn(text, "\n");
        end = text + bytes + (text[bytes] == '\n');
        printf("%.*s\033[K%s", (int)bytes, text, *end != '\0' ? "\n" : "");
    }
    fputs("\033[J", stdout);
    fflush(stdout);
}

/* ---- looking ---- */

static json_t *look(top *t, sl_error *error) {
    if (t->board == NULL)
        return place_look(t->where, PATIENCE_FAR_S, error);
    if (sl_board_look(t->board, PATIENCE_S, error) != 0)
        return NULL;
    char *text = sl_board_text(t->board, 0);
    json_t *document = text != NULL ? json_loads(text, 0, NULL) : NULL;
    free(text);
    t->is_over = sl_board_is_over(t->board);
    if (document == NULL)
        sl_fail(error, SL_ENOMEM, "out of memory");
    return document;
}

/* over: on the live screen, cut to it. */
static int show(const json_t *document, const top *t, bool over, sl_error *error) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    const frame_room room = {.width = output_width(t->wide),
                             .height = over ? lines_of_terminal() : SIZE_MAX,
                             .is_unicode = is_unicode(),
                             .is_bold = is_terminal()};
    if (out == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory");
    frame_write(out, document, &room);
    fclose(out);
    if (over)
        show_over(text);
    else
        fputs(text, stdout);
    free(text);
    return 0;
}

/* Until the run is over, or somebody ends it; *last: what was seen last. */
static int go_on(top *t, json_t **last, sl_error *error) {
    const struct timespec pause = {.tv_nsec = 999999999};
    int result = show(*last, t, true, error);
    while (result == 0 && !t->is_over && stop_requested == 0) {
        nanosleep(&pause, NULL);
        json_t *document = stop_requested == 0 ? look(t, error) : NULL;
        if (stop_requested != 0)
            break;
        if (document == NULL)
            return error->code;
        json_decref(*last);
        *last = document;
        result = show(document, t, true, error);
    }
    return result;
}

static int watch(top *t, sl_error *error) {
    json_t *document = look(t, error);
    int result = document != NULL ? 0 : error->code;
    if (result == 0 && t->is_live && !t->is_over) {
        catch_signals(NULL);
        fputs(SCREEN_BEGIN, stdout);
        result = go_on(t, &document, error);
        fputs(SCREEN_END, stdout);
    }
    if (document != NULL && (result == 0 || t->is_live)) {
        sl_error ignored;
        show(document, t, false, result == 0 ? error : &ignored);
    }
    json_decref(document);
    return result;
}

static int run(void *request, char *const *operands, size_t count) {
    const top_request *r = request;
    sl_error error = {0};
    (void)count;
    top t = {.where = operands[0], .wide = r->wide, .is_live = is_terminal() && !r->once};
    const bool at_port = access(t.where, F_OK) != 0 && strchr(t.where, ':') != NULL;
    int result = at_port ? 0 : sl_board_open(&t.board, t.where, &error);
    if (result == 0)
        result = watch(&t, &error);
    sl_board_close(&t.board);
    if (result == 0)
        return TOOL_OK;
    complain("%s", error.text);
    return result == SL_EFILE || result == SL_EINVAL ? TOOL_USAGE : TOOL_FAILED;
}

static const command_option option_wide_here = OPTION_WIDE(top_request);
static const command_option option_once = {"once", .help = "one look, also on a terminal",
                                           .take = take_switch,
                                           .offset = offsetof(top_request, once)};
static const command_option *const option_rows[] = {&option_once, &option_wide_here, NULL};

const command top_command = {
    .name = "top",
    .summary = "a run as a page of text, live",
    .operands = "RUN|HOST:PORT",
    .operands_min = 1,
    .operands_max = 1,
    .offer = OFFER_FOLDER,
    .text =
        "Shows the run of the folder RUN, one that has ended, too: who waits for whom; curves; "
        "what each node did when; edges, those that are waited for most first; events. Of an "
        "agent at HOST:PORT (monitor.listen) what it says itself. A terminal is drawn anew each "
        "second, until the run is over, or Ctrl-C. Elsewhere it is one look.",
    .options = option_rows,
    .request_bytes = sizeof(top_request),
    .run = run,
};
