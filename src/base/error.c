/* error.c - one sentence per failure; see starling/error.h. */
#include "starling/error.h"

#include <stdio.h>
#include <string.h>

const char *sl_error_meaning(int code) {
    switch (code) {
#define SL_ERROR_CASE(name, value, text)                                                           \
    case name:                                                                                     \
        return text;
        SL_ERRORS(SL_ERROR_CASE)
#undef SL_ERROR_CASE
    default:
        return code == 0 ? "success" : "unknown error";
    }
}

int sl_fail(sl_error *error, int code, const char *format, ...) {
    if (error == NULL)
        return code;
    /* Arguments may point into error->text: format aside, then copy. */
    char text[SL_ERROR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    error->code = code;
    memcpy(error->text, text, sizeof text);
    return code;
}

int sl_fail_prefix(sl_error *error, int code, const char *format, ...) {
    if (error == NULL)
        return code;
    char prefix[SL_ERROR_TEXT_MAX / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    return sl_fail(error, error->code, "%s: %s", prefix, error->text);
}
