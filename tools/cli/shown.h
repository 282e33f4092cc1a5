/* shown.h - a text as it may be printed (sl_text_show), to be freed; NULL: out of memory. */
#ifndef SHOWN_H
#define SHOWN_H

#include <stdarg.h>

char *shown_text(const char *text);
char *shown_format(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

#endif
