/* trace_file.c - see trace_file.h. */
#include "run/trace_file.h"

#include <stdio.h>
#include <time.h>

/* Agents of several machines have one clock in it, as far as these agree on the time. */
void trace_file_open(sl_trace **out, const char *folder, uint32_t rank) {
    char file[SL_PATH_MAX + 32];
    struct timespec now;
    sl_error error;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(file, sizeof file, "%.*s/trace-%u.json", SL_PATH_MAX, folder, rank);
    const double epoch_s = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - now_seconds();
    if (sl_trace_open(out, file, epoch_s, &error) != 0)
        complain("warning: %s; this agent writes no trace", error.text);
}

void trace_file_close(sl_trace **trace) {
    sl_error error;
    if (sl_trace_close(trace, &error) != 0)
        complain("warning: %s", error.text);
}
