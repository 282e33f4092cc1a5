/* temporary.h - a folder of a test's own: FIXTURES(make_base, remove_base), or called by them. */
#ifndef STARLING_TEST_TEMPORARY_H
#define STARLING_TEST_TEMPORARY_H

#include "harness.h"

static char base[] = "/tmp/starling-test-XXXXXX";

static inline void make_base(void) {
    ck_assert_ptr_nonnull(mkdtemp(base));
}

static inline void remove_base(void) {
    ck_assert_int_eq(system(printed("chmod -R u+w %s; rm -rf %s", base, base)), 0);
    memcpy(base + strlen(base) - 6, "XXXXXX", 6);
}

/* A path in it. */
static inline const char *at(const char *name) {
    return printed("%s/%s", base, name);
}

static inline void put(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

#endif
