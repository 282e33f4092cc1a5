/* report.c - see report.h. */
#include "doctor/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/complain.h"

void report_open(report *r, bool json) {
    *r = (report){.checks = json ? json_array() : NULL};
}

static void say(report *r, const char *verdict, const char *name, const char *remedy,
                const char *format, va_list arguments) {
    char *seen = shown_format(format, arguments), *shown = shown_text(remedy);
    if (r->checks != NULL)
        json_array_append_new(r->checks,
                              json_pack("{ss ss ss? ss?}", "verdict", verdict, "name", name, "seen",
                                        seen, "remedy", remedy[0] != '\0' ? shown : NULL));
    else
        tell_line("%-4s %s: %s%s%s", verdict, name, seen != NULL ? seen : "out of memory",
                  remedy[0] != '\0' ? "; " : "", remedy);
    fflush(stdout);
    free(seen);
    free(shown);
}

void report_ok(report *r, const char *name, const char *seen, ...) {
    va_list arguments;
    va_start(arguments, seen);
    say(r, "ok", name, "", seen, arguments);
    va_end(arguments);
}

void report_warn(report *r, const char *name, const char *remedy, const char *seen, ...) {
    va_list arguments;
    r->warned++;
    va_start(arguments, seen);
    say(r, "warn", name, remedy, seen, arguments);
    va_end(arguments);
}

void report_fail(report *r, const char *name, const char *remedy, const char *seen, ...) {
    va_list arguments;
    r->failed++;
    va_start(arguments, seen);
    say(r, "FAIL", name, remedy, seen, arguments);
    va_end(arguments);
}

int report_close(report *r) {
    if (r->checks != NULL) {
        json_t *all = json_pack("{sb so}", "healthy", r->failed == 0, "checks", r->checks);
        json_dumpf(all, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(all);
    } else if (r->failed > 0) {
        printf("%zu would fail, %zu to watch\n", r->failed, r->warned);
    } else {
        printf("nothing would fail, %zu to watch\n", r->warned);
    }
    return r->failed > 0 ? TOOL_FAILED : TOOL_OK;
}
