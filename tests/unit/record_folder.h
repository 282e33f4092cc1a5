/* record_folder.h - run folders of tests, and what is written into them. */
#ifndef STARLING_TEST_RECORD_FOLDER_H
#define STARLING_TEST_RECORD_FOLDER_H

#include "experiments.h"
#include "starling/folder.h"
#include "temporary.h"

static sl_error error;

/* Freed behind the test. */
static inline char *contents(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s is missing", path);
    char *text = close_behind(calloc(1, 1 << 20), free);
    *bytes = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    return text;
}

static sl_experiment *e; /* of most tests */

static inline void begin(void) {
    make_base();
    e = experiment_of("{'rounds': 10, 'topology': {'nodes': 4, 'family': 'ring'}}");
}

static inline sl_folder *open_folder(const char *path, const sl_experiment *of, bool all_nodes) {
    sl_folder *folder = NULL;
    EXPECT_WELL(sl_folder_open(&folder, path, of, all_nodes, &error));
    return folder;
}

static inline void close_folder(sl_folder *folder) {
    EXPECT_WELL(sl_folder_close(&folder, &error));
    ck_assert_ptr_null(folder);
}

static inline void refuse_folder(const char *path, const sl_experiment *of, bool all_nodes,
                                 const char *text) {
    sl_folder *folder = NULL;
    int result = sl_folder_open(&folder, path, of, all_nodes, &error);
    ck_assert_msg(result < 0, "%s was accepted", path);
    ck_assert_ptr_null(folder);
    ck_assert_int_eq(error.code, result);
    ck_assert_msg(strstr(error.text, text) != NULL, "\"%s\" not in: %s", text, error.text);
}

static inline sl_record record_of(uint32_t rank, uint64_t round) {
    return (sl_record){
        .rank = rank,
        .round = {.round = round,
                  .loss = 0.125 * (double)round,
                  .learning_rate = 0.1,
                  .neighbour_distance = 3.5},
        .evaluation = {.loss = 1.0 / 3, .accuracy = 0.75},
        .bytes_sent = 5000000000,
        .bytes_received = 7,
        .messages_sent = 11,
        .messages_silent = 13,
        .times = {.total = 6, .gradient = 1, .encode = 2, .exchange = 3, .wait = 4, .combine = 5}};
}

static const float awkward[] = {
    0.1f, -0.0f, 1e-45f, 3.4028235e38f, 16777217.0f, -1.17549435e-38f, 0.333333343f};
enum { AWKWARD = sizeof awkward / sizeof *awkward };

#endif
