/* experiment_texts.h - experiments as texts, in a folder of their own: accepted, or refused with a
 * reason. */
#ifndef STARLING_TEST_EXPERIMENT_TEXTS_H
#define STARLING_TEST_EXPERIMENT_TEXTS_H

#include "harness.h"
#include "starling/experiment.h"

#define TOPOLOGY "\"topology\": {\"nodes\": 4, \"family\": \"ring\"}"
#define SMALLEST "{\"rounds\": 10, " TOPOLOGY "}"
#define WITH(members) "{\"rounds\": 10, " TOPOLOGY ", " members "}"

static char folder[] = "/tmp/starling-experiment-XXXXXX";

static inline void make_folder(void) {
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline void remove_folder(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
}

static inline const char *in_folder(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline void write_file(const char *name, const char *text) {
    FILE *file = fopen(in_folder(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static inline sl_experiment *parse_set(const char *json, const char *const *overrides,
                                       size_t count) {
    sl_experiment *e = NULL;
    sl_error error = {0};
    int result = sl_experiment_parse(&e, json, "test.json", folder, overrides, count, &error);
    ck_assert_msg(result == 0, "%s", error.text);
    return e;
}

static inline sl_experiment *parse(const char *json) {
    return parse_set(json, NULL, 0);
}

static inline sl_experiment *with_override(const char *json, const char *override) {
    return parse_set(json, &override, 1);
}

/* Refused, leaving *out alone, with an error that holds each of the texts. */
static inline void refuse(const char *json, const char *override, const char *text,
                          const char *another) {
    sl_experiment *e = NULL;
    sl_error error = {0};
    int result =
        sl_experiment_parse(&e, json, "test.json", folder, &override, override != NULL, &error);
    ck_assert_msg(result < 0, "accepted: %s %s", json, override ? override : "");
    ck_assert_ptr_null(e);
    ck_assert_int_eq(error.code, result);
    ck_assert_msg(strstr(error.text, "test.json") == error.text, "no source named: %s", error.text);
    ck_assert_msg(strstr(error.text, text) != NULL, "\"%s\" not in: %s", text, error.text);
    ck_assert_msg(another == NULL || strstr(error.text, another) != NULL, "\"%s\" not in: %s",
                  another ? another : "", error.text);
    ck_assert_int_eq(
        sl_experiment_parse(&e, json, "test.json", folder, &override, override != NULL, NULL),
        result);
}

static inline char *json_of(const char *json) {
    sl_experiment *e = parse(json);
    char *text = sl_experiment_json(e);
    ck_assert_ptr_nonnull(text);
    sl_experiment_close(&e);
    ck_assert_ptr_null(e);
    return text;
}

#endif
