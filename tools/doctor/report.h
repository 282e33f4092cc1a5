/* report.h - what a doctor says: one line for each thing that it has looked at. */
#ifndef REPORT_H
#define REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct report {
    json_t *checks;        /* what was said, for --json; NULL: it is printed at once */
    size_t warned, failed; /* lines */
} report;

void report_open(report *r, bool json);
/* "ok   name: what was seen" */
void report_ok(report *r, const char *name, const char *seen, ...)
    __attribute__((format(printf, 3, 4)));
/* "warn name: what was seen; remedy", "FAIL name: ...". remedy "": `seen` says it. */
void report_warn(report *r, const char *name, const char *remedy, const char *seen, ...)
    __attribute__((format(printf, 4, 5)));
void report_fail(report *r, const char *name, const char *remedy, const char *seen, ...)
    __attribute__((format(printf, 4, 5)));
/* Prints what is left: an exit code. */
int report_close(report *r);

#endif
