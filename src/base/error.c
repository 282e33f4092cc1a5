/* error.c - one sentence per failure; see starling/error.h. */
#include "starling/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "starling/text.h"

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

/* What a sentence quotes may be anybody's, and may be long; what to do stands at its end. So it is
 * cut only once all of it is there, or at its end where memory is out. */
static void build(char out[SL_ERROR_TEXT_MAX], const char *prefix, const char *format,
                  va_list arguments) {
    char brief[SL_ERROR_TEXT_MAX], *whole = NULL;
    const size_t used = (size_t)snprintf(brief, sizeof brief, "%s", prefix);
    va_list again;
    va_copy(again, arguments);
    const int more = vsnprintf(brief + used, sizeof brief - used, format, arguments);
    const size_t bytes = used + (more > 0 ? (size_t)more : 0);
    if (bytes >= sizeof brief)
        whole = malloc(bytes + 1);
    if (whole != NULL) {
        memcpy(whole, prefix, used);
        vsnprintf(whole + used, bytes + 1 - used, format, again);
    }
    va_end(again);
    const char *text = whole != NULL ? whole : brief;
    sl_text_show(out, SL_ERROR_TEXT_MAX, text, strlen(text));
    free(whole);
}

/* Arguments may point into error->text, so the text is built elsewhere and then copied. */
static int fill(sl_error *error, sl_error place, const char *prefix, const char *format,
                va_list arguments) {
    build(place.text, prefix, format, arguments);
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
    char before[SL_ERROR_TEXT_MAX], text[2 * SL_ERROR_TEXT_MAX + 2];
    va_list arguments;
    va_start(arguments, format);
    build(before, "", format, arguments);
    va_end(arguments);
    snprintf(text, sizeof text, "%s: %s", before, error->text);
    sl_text_show(error->text, sizeof error->text, text, strlen(text));
    return error->code;
}
