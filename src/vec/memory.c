/* memory.c - says how short memory is; see starling/vec.h. */
#include <stdio.h>

#include "starling/vec.h"

#define MB 1e-6

static void describe(const sl_vec_ops *vec, char *text, size_t size) {
    sl_vec_memory m;
    vec->memory(&m);
    if (m.refused == 0)
        snprintf(text, size, "out of memory");
    else if (m.limit > 0 && m.refused > m.limit - m.taken)
        snprintf(text, size,
                 "%s: %.1f MB are needed, and of the %.1f MB that device_memory_gb allows %.1f MB "
                 "are left",
                 vec->name, MB * (double)m.refused, MB * (double)m.limit,
                 MB * (double)(m.limit - m.taken));
    else
        snprintf(text, size, "%s is out of memory: %.1f MB are needed and %.1f MB are free",
                 vec->name, MB * (double)m.refused, MB * (double)m.free);
}

int sl_vec_no_memory(const sl_vec_ops *vec, sl_error *error, const char *format, ...) {
    if (error == NULL)
        return SL_ENOMEM;
    char what[SL_ERROR_TEXT_MAX / 2], memory[SL_ERROR_TEXT_MAX / 4];
    sl_error failure;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (vec->async != NULL && vec->async->status(&failure) != 0)
        return sl_fail(error, SL_EDEVICE, "%s: %.*s", what, (int)sizeof memory, failure.text);
    describe(vec, memory, sizeof memory);
    return sl_fail(error, SL_ENOMEM, "%s: %s", what, memory);
}
