/* error.c - one sentence per failure; see starling/error.h. */
#include "starling/error.h"

#include <inttypes.h>
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

/* Arguments may point into error->text, so the text is built elsewhere and then copied. */
static int fill(sl_error *error, sl_error place, const char *prefix, const char *format,
                va_list arguments) {
    size_t used = (size_t)snprintf(place.text, sizeof place.text, "%s", prefix);
    vsnprintf(place.text + used, sizeof place.text - used, format, arguments);
    *error = place;
    return place.code;
}

int sl_fail(sl_error *error, int code, const char *format, ...) {
    if (error == NULL)
        return code;
    va_list arguments;
    va_start(arguments, format);
    fill(error,
         (sl_error){.code = code,
                    .rank = SL_ERROR_NOWHERE,
                    .peer = SL_ERROR_NOWHERE,
                    .round = SL_ERROR_NOWHERE},
         "", format, arguments);
    va_end(arguments);
    return code;
}

int sl_fail_node(sl_error *error, int code, uint32_t rank, uint64_t round, const char *format,
                 ...) {
    if (error == NULL)
        return code;
    char prefix[64];
    snprintf(prefix, sizeof prefix, "node %u, round %" PRIu64 ": ", rank, round);
    va_list arguments;
    va_start(arguments, format);
    fill(error,
         (sl_error){.code = code, .rank = rank, .peer = SL_ERROR_NOWHERE, .round = (int64_t)round},
         prefix, format, arguments);
    va_end(arguments);
    return code;
}

int sl_fail_edge(sl_error *error, int code, uint32_t peer, uint32_t rank, uint64_t round,
                 const char *format, ...) {
    if (error == NULL)
        return code;
    char prefix[64];
    snprintf(prefix, sizeof prefix, "edge %u->%u, round %" PRIu64 ": ", peer, rank, round);
    va_list arguments;
    va_start(arguments, format);
    fill(error, (sl_error){.code = code, .rank = rank, .peer = peer, .round = (int64_t)round},
         prefix, format, arguments);
    va_end(arguments);
    return code;
}

int sl_fail_prefix(sl_error *error, int code, const char *format, ...) {
    if (error == NULL)
        return code;
    char text[SL_ERROR_TEXT_MAX];
    memcpy(text, error->text, sizeof text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, SL_ERROR_TEXT_MAX / 2, format, arguments);
    va_end(arguments);
    size_t used = strlen(error->text);
    snprintf(error->text + used, SL_ERROR_TEXT_MAX - used, ": %s", text);
    return error->code;
}
