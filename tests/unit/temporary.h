/* temporary.h - a folder of a test's own: FIXTURES(make_base, remove_base), or called by them. */
#ifndef STARLING_TEST_TEMPORARY_H
#define STARLING_TEST_TEMPORARY_H

#include "harness.h"

static char base[] = "/tmp/starling-test-XXXXXX";

static inline void make_base(void) {
    ck_assert_ptr_nonnull(mkdtemp(base));
}

static inline void remove_base(void) {
    char command[128];
    snprintf(command, sizeof command, "chmod -R u+w %s; rm -rf %s", base, base);
    ck_assert_int_eq(system(command), 0);
    memcpy(base + strlen(base) - 6, "XXXXXX", 6);
}

/* A path in it; valid until eight calls later. */
static inline const char *at(const char *name) {
    static char paths[8][256];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", base, name);
    return path;
}

static inline void put(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

#endif
