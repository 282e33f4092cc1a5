/* topologies.h - topologies that tests describe in JSON, in which ' may stand for ". */
#ifndef STARLING_TEST_TOPOLOGIES_H
#define STARLING_TEST_TOPOLOGIES_H

#include "harness.h"
#include "starling/topology.h"

static sl_error error;

CLOSER(sl_topology);

/* Closed behind the test. */
static inline sl_topology *parse(const char *text) {
    sl_topology *t = NULL;
    ck_assert_msg(sl_topology_parse(&t, quoted(text), "test", &error) == 0, "%s: %s", text,
                  error.text);
    return close_behind(t, close_sl_topology);
}

static inline const char *json_of(const sl_topology *t) {
    return close_behind(sl_topology_json(t), free);
}

#define make(...) parse(printed(__VA_ARGS__))

static inline void expect_refusal(const char *text, const char *complaint) {
    sl_topology *t = NULL;
    ck_assert_msg(sl_topology_parse(&t, quoted(text), "test", &error) != 0, "%s was accepted",
                  text);
    ck_assert_msg(strstr(error.text, complaint) != NULL, "%s: %s", text, error.text);
    ck_assert_msg(strncmp(error.text, "test:", 5) == 0, "%s", error.text);
    ck_assert_ptr_null(t);
}

#endif
