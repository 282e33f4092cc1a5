/* complain.c - see complain.h. */
#include "cli/complain.h"

#include <stdarg.h>
#include <stdio.h>

void complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs("starling: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}
