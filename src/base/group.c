/* group.c - see group.h. */
#include "base/group.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 + 256 };

/* A kind of limit. */
typedef struct resource {
    const char *controller;
    double (*read)(const char *folder, bool is_old); /* of one group; 0: no limit */
} resource;

/* The first two numbers of a group's file; one that it lacks stays as it is. */
static void read_numbers(const char *folder, const char *name, double *one, double *two) {
    char path[PATH_BYTES];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length < (int)sizeof path ? fopen(path, "re") : NULL;
    if (file == NULL)
        return;
    if (fscanf(file, "%lf", one) == 1 && fscanf(file, "%lf", two) != 1)
        *two = 0;
    fclose(file);
}

static double read_bytes(const char *folder, bool is_old) {
    double bytes = 0, none;
    read_numbers(folder, is_old ? "memory.limit_in_bytes" : "memory.max", &bytes, &none);
    return bytes;
}

/* Microseconds of processors in a period. */
static double read_cores(const char *folder, bool is_old) {
    double quota = 0, period = 0, none;
    read_numbers(folder, is_old ? "cpu.cfs_quota_us" : "cpu.max", &quota, &period);
    if (is_old)
        read_numbers(folder, "cpu.cfs_period_us", &period, &none);
    return quota > 0 && period > 0 ? quota / period : 0;
}

static double lower(double a, double b) {
    return a > 0 && (b <= 0 || a < b) ? a : b;
}

/* Of a group and those above it. */
static double lowest_above(const resource *r, const char *mount, char *group, bool is_old) {
    char folder[PATH_BYTES];
    double lowest = 0;
    for (char *end = group + strlen(group); end != NULL; end = strrchr(group, '/')) {
        *end = '\0';
        if (snprintf(folder, sizeof folder, "%s%s", mount, group) < (int)sizeof folder)
            lowest = lower(r->read(folder, is_old), lowest);
    }
    return lowest;
}

/* Is it one of "cpu,cpuacct"? */
static bool is_among(const char *controller, const char *list) {
    const size_t length = strlen(controller);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, controller, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* Lines are "0::/GROUP", or "4:cpu,cpuacct:/GROUP" of the old version. */
static double lowest_of(const resource *r) {
    char line[PATH_BYTES], mount[64];
    double lowest = 0;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *list = strchr(line, ':'), *group = list != NULL ? strchr(list + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = '\0';
        const bool is_old = *++list != '\0';
        snprintf(mount, sizeof mount, "/sys/fs/cgroup%s%s", is_old ? "/" : "",
                 is_old ? r->controller : "");
        if (!is_old || is_among(r->controller, list))
            lowest = lower(lowest_above(r, mount, group, is_old), lowest);
    }
    if (file != NULL)
        fclose(file);
    return lowest;
}

double sl_group_bytes(void) {
    return lowest_of(&(resource){"memory", read_bytes});
}

double sl_group_cores(void) {
    return lowest_of(&(resource){"cpu", read_cores});
}
