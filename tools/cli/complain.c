/* complain.c - see complain.h. */
#include "cli/complain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void complain(const char *format, ...) {
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    fflush(stdout);
    if (length < 0) /* out of memory */
        return;
    fprintf(stderr, "starling: %s\n", text); /* one write: others may have the same terminal */
    free(text);
}
