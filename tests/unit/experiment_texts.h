/* experiment_texts.h - experiments as texts, in a folder of their own: accepted, or refused with a
 * reason. */
#ifndef STARLING_TEST_EXPERIMENT_TEXTS_H
#define STARLING_TEST_EXPERIMENT_TEXTS_H

#include "experiments.h"
#include "temporary.h"

#define TOPOLOGY "'topology': {'nodes': 4, 'family': 'ring'}"
#define SMALLEST "{'rounds': 10, " TOPOLOGY "}"
#define WITH(members) "{'rounds': 10, " TOPOLOGY ", " members "}"

static sl_error error;

/* Closed behind the test. */
static inline sl_experiment *parse_set(const char *json, const char *const *overrides,
                                       size_t count) {
    sl_experiment *e = NULL;
    EXPECT_WELL(sl_experiment_parse(&e, quoted(json), "test.json", base, overrides, count, &error));
    return close_behind(e, close_sl_experiment);
}

static inline sl_experiment *parse(const char *json) {
    return parse_set(json, NULL, 0);
}

static inline sl_experiment *with_override(const char *json, const char *override) {
    override = quoted(override);
    return parse_set(json, &override, 1);
}

static inline void expect_words(const char *said, const char *words) {
    ck_assert_msg(words == NULL || strstr(said, quoted(words)) != NULL, "%s not in: %s", words,
                  said);
}

/* Refused, leaving *out alone, with an error that holds each of the texts. */
static inline void refuse_both(const char *json, const char *override, const char *text,
                               const char *another) {
    sl_experiment *e = NULL;
    json = quoted(json);
    override = quoted(override);
    int result =
        sl_experiment_parse(&e, json, "test.json", base, &override, override != NULL, &error);
    ck_assert_msg(result < 0, "accepted: %s %s", json, override ? override : "");
    ck_assert_ptr_null(e);
    ck_assert_int_eq(error.code, result);
    ck_assert_msg(strstr(error.text, "test.json") == error.text, "no source named: %s", error.text);
    expect_words(error.text, text);
    expect_words(error.text, another);
    ck_assert_int_eq(
        sl_experiment_parse(&e, json, "test.json", base, &override, override != NULL, NULL),
        result);
}

static inline void refuse(const char *json, const char *text, const char *another) {
    refuse_both(json, NULL, text, another);
}

static inline void refuse_set(const char *override, const char *text, const char *another) {
    refuse_both(SMALLEST, override, text, another);
}

static inline const char *json_of(const char *json) {
    return close_behind(sl_experiment_json(parse(json)), free);
}

#endif
