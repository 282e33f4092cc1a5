/* complain.c - see complain.h. */
#include "cli/complain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/log.h"
#include "cli/patience.h"

void complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = shown_format(format, arguments);
    va_end(arguments);
    fflush(stdout);
    patience_hide();
    if (text == NULL) /* out of memory */
        return;
    if (log_is_json())
        log_plain(text, true);
    else
        fprintf(stderr, "starling: %s\n", text); /* one write: others may have the same terminal */
    free(text);
}

void tell_line(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = shown_format(format, arguments);
    va_end(arguments);
    patience_hide();
    if (text != NULL && log_is_json())
        log_plain(text, false);
    else if (text != NULL)
        puts(text);
    free(text);
}
