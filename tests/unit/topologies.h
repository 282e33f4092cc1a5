/* topologies.h - topologies that tests describe in JSON, in which ' may stand for ". */
#ifndef STARLING_TEST_TOPOLOGIES_H
#define STARLING_TEST_TOPOLOGIES_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "starling/topology.h"

static sl_error error;

/* To be freed. */
static inline char *quoted(const char *text) {
    char *json = strdup(text);
    ck_assert_ptr_nonnull(json);
    for (char *at = json; (at = strchr(at, '\'')) != NULL;)
        *at = '"';
    return json;
}

static inline sl_topology *parse(const char *text) {
    char *json = quoted(text);
    sl_topology *t = NULL;
    ck_assert_msg(sl_topology_parse(&t, json, "test", &error) == 0, "%s: %s", json, error.text);
    free(json);
    return t;
}

__attribute__((format(printf, 1, 2))) static inline sl_topology *make(const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    ck_assert_int_gt(vasprintf(&text, format, arguments), 0);
    va_end(arguments);
    sl_topology *t = parse(text);
    free(text);
    return t;
}

static inline void expect_refusal(const char *text, const char *complaint) {
    char *json = quoted(text);
    sl_topology *t = NULL;
    ck_assert_msg(sl_topology_parse(&t, json, "test", &error) != 0, "%s was accepted", json);
    ck_assert_msg(strstr(error.text, complaint) != NULL, "%s: %s", json, error.text);
    EXPECT_WELL(strncmp(error.text, "test:", 5));
    ck_assert_ptr_null(t);
    free(json);
}

#endif
