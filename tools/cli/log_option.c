/* log_option.c - --log, of run and agent; see log.h. */
#include <string.h>

#include "cli/complain.h"
#include "cli/log.h"

static const char *format_name(size_t index) {
    static const char *const names[] = {"text", "json", NULL};
    return names[index];
}

static int take_format(void *request, const command_option *row, const char *text) {
    (void)request;
    (void)row;
    const bool json = strcmp(text, "json") == 0;
    log_use_json(json);
    if (json || strcmp(text, "text") == 0)
        return TOOL_OK;
    complain("--log %s: is not allowed; it must be text or json", text);
    return TOOL_USAGE;
}

const command_option option_log = {
    "log",
    .argument = "FORMAT",
    .otherwise = "text",
    .help = "lines for people (text), or an object a line with time, level, event, run, rank, "
            "round, peer and message, in place of tables too (json)",
    .take = take_format,
    .offer = OFFER_WORDS,
    .words = format_name,
};
