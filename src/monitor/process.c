/* process.c - see process.h; proc(5). */
#include "monitor/process.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { STAT_BYTES = 1024, STAT_START = 20 /* of the fields behind the name: 22 in all */ };

static double seconds_of(clockid_t clock) {
    struct timespec now;
    return clock_gettime(clock, &now) == 0 ? (double)now.tv_sec + 1e-9 * (double)now.tv_nsec : NAN;
}

static double count_descriptors(void) {
    DIR *all = opendir("/proc/self/fd");
    double count = -1; /* the folder's own */
    if (all == NULL)
        return NAN;
    for (const struct dirent *entry; (entry = readdir(all)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(all);
    return count;
}

static void read_memory(sl_process_numbers *n) {
    FILE *file = fopen("/proc/self/statm", "re");
    const double page = (double)sysconf(_SC_PAGESIZE);
    unsigned long whole, resident;
    if (file == NULL)
        return;
    if (fscanf(file, "%lu %lu", &whole, &resident) == 2) {
        n->virtual_bytes = page * (double)whole;
        n->resident_bytes = page * (double)resident;
    }
    fclose(file);
}

/* The name stands in parentheses, and may hold any character. */
static double read_start(void) {
    char text[STAT_BYTES];
    unsigned long long ticks;
    FILE *file = fopen("/proc/self/stat", "re");
    if (file == NULL)
        return NAN;
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = '\0';
    const char *at = strrchr(text, ')');
    for (int i = 0; at != NULL && i < STAT_START; i++)
        at = strchr(at + 1, ' ');
    if (at == NULL || sscanf(at, "%llu", &ticks) != 1)
        return NAN;
    return seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME) +
           (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

sl_process_numbers sl_process_numbers_read(void) {
    sl_process_numbers n = {.resident_bytes = NAN, .virtual_bytes = NAN, .max_descriptors = NAN};
    struct rlimit limit;
    n.cpu_seconds = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    n.open_descriptors = count_descriptors();
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        n.max_descriptors = (double)limit.rlim_cur;
    n.start_seconds = read_start();
    read_memory(&n);
    return n;
}
