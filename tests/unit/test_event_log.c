/* test_event_log.c - the log of events: what is written comes back, whatever ended the writer; a
 * damaged line is refused with its place. */
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>

#include "folder/event_text.h"
#include "record_folder.h"
#include "starling/event_log.h"
#include "starling/kernels.h"
#include "starling/version.h"

enum { READ_MAX = 32 };

static sl_log_entry entries[READ_MAX]; /* (count) what was read */
static uint32_t members[READ_MAX][4];  /* of views */
static sl_pair edges[READ_MAX][4];     /* that they do without */
static char settings[READ_MAX][128];   /* likewise */
static size_t count;
static char told[SL_ERROR_TEXT_MAX];
static int tellings;

static void setup(void) {
    make_base();
    count = 0;
    tellings = 0;
}

static void notice(void *context, const char *text) {
    tellings++;
    snprintf(told, sizeof told, "%s", text);
}

static sl_event_log *open_log(int64_t rank) {
    sl_event_log *log = NULL;
    ck_assert_int_eq(sl_event_log_open(&log, base, rank, notice, NULL, NULL), 0);
    return log;
}

static int take(void *context, uint64_t line, const sl_log_entry *entry, sl_error *why) {
    ck_assert_uint_eq(line, count + 1);
    ck_assert_uint_lt(count, READ_MAX);
    entries[count] = *entry;
    if (entry->ranks != NULL)
        entries[count].ranks =
            memcpy(members[count], entry->ranks, entry->members * sizeof *entry->ranks);
    if (entry->broken != NULL)
        entries[count].broken =
            memcpy(edges[count], entry->broken, entry->broken_count * sizeof *entry->broken);
    if (entry->settings != NULL)
        entries[count].settings = strcpy(settings[count], entry->settings);
    count++;
    return 0;
}

static bool read_back(const char *name) {
    bool torn = true;
    count = 0;
    EXPECT_WELL(sl_event_log_read(at(name), take, NULL, &torn, &error));
    return torn;
}

static void write_one(sl_event_log *log, sl_log_kind kind, uint64_t round) {
    sl_event_log_write(log, &(sl_log_entry){.kind = kind, .rank = 3, .round = round});
}

FIXTURES(setup, remove_base);

START_TEST(every_kind_comes_back) {
    sl_event_log *log = open_log(3);
    const sl_log_entry written[] = {
        {.kind = SL_LOG_START,
         .round = 41,
         .rounds = 100,
         .run_id = UINT64_MAX,
         .incarnation = 1795380765671658},
        {.kind = SL_LOG_RESUME, .round = 40, .passed_over = {50, 60}, .passed_over_count = 2},
        {.kind = SL_LOG_SETTINGS, .round = 41, .settings = "{\"record.every\":5}"},
        {.kind = SL_LOG_SETTINGS, .round = 41},
        {.kind = SL_LOG_EDGE, .round = 41, .peer = 2, .why = "TLS 1.3, key, AES-256-GCM"},
        {.kind = SL_LOG_DOWN, .round = 43, .peer = 2, .exchange = 85, .why = "gone: \"\n\""},
        {.kind = SL_LOG_UP, .round = 44, .peer = 2, .exchange = 86, .seconds = 0.25},
        {.kind = SL_LOG_REQUEST, .round = 47, .then = SL_LOG_LEAVE},
        {.kind = SL_LOG_CHECKPOINT, .round = 47, .why = "No space left on device"},
        {.kind = SL_LOG_LOST, .round = 48, .peer = 5, .why = "killed"},
        {.kind = SL_LOG_CUT, .round = 48, .exchange = 96, .step = 1, .part = 7},
        {.kind = SL_LOG_COMMIT, .round = 48, .after = 48},
        {.kind = SL_LOG_VIEW,
         .round = 49,
         .exchange = 97,
         .ranks = (uint32_t[]){0, 1, 3},
         .members = 3,
         .broken = (sl_pair[]){{0, 3}},
         .broken_count = 1,
         .gap = 0.25,
         .why = "3 of 4"},
        {.kind = SL_LOG_JOIN, .round = 49, .peer = 2, .after = 61},
        {.kind = SL_LOG_END, .round = 47, .outcome = SL_LOG_SAVED},
    };
    const size_t all = sizeof written / sizeof *written;
    for (size_t i = 0; i < all; i++) {
        sl_log_entry entry = written[i];
        entry.rank = 3;
        sl_event_log_write(log, &entry);
        ck_assert_msg(!access(at("events-3.jsonl"), F_OK), "the line %zu is not there", i);
    }
    sl_event_log_close(&log);
    ck_assert(!read_back("events-3.jsonl"));
    ck_assert_uint_eq(count, all);
    for (size_t i = 0; i < all; i++) {
        sl_log_entry expected = written[i];
        expected.rank = 3;
        if (i == 0) {
            snprintf(expected.version, SL_LOG_WORD_MAX, "%s", sl_version());
            snprintf(expected.kernels, SL_LOG_WORD_MAX, "%s", sl_kernels_name());
            memcpy(expected.blas, entries[0].blas, SL_LOG_WORD_MAX);
            ck_assert_int_ne(expected.blas[0], '\0');
        }
        char *found = sl_event_text_write(&entries[i], 0);
        char *text = sl_event_text_write(&expected, 0);
        ck_assert_str_eq(found, text);
        free(found);
        free(text);
    }
    ck_assert_int_eq(tellings, 0);
}

/* What a process that was killed has begun to write goes when another one goes on. */
START_TEST(a_torn_line_is_left_out_and_then_goes) {
    sl_event_log *log = open_log(-1);
    sl_log_entry start = {.kind = SL_LOG_START, .rank = SL_LOG_ALL, .round = 1, .rounds = 9};
    sl_event_log_write(log, &start);
    sl_event_log_close(&log);
    FILE *file = fopen(at("events.jsonl"), "a");
    fputs("{\"event\":\"end\",\"no", file);
    fclose(file);
    ck_assert(read_back("events.jsonl"));
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(entries[0].rank, SL_LOG_ALL);
    log = open_log(-1);
    write_one(log, SL_LOG_CHECKPOINT, 5);
    sl_event_log_close(&log);
    ck_assert(!read_back("events.jsonl"));
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(entries[1].round, 5);
}

#define UP                                                                                         \
    "{\"event\":\"up\",\"node\":1,\"round\":7,\"peer\":2,\"exchange\":7,\"seconds\":0.1,"          \
    "\"time\":1}"
#define END(field) "{\"event\":\"end\",\"node\":null,\"round\":7,\"time\":1," field "}"
#define RESUME(list)                                                                               \
    "{\"event\":\"resume\",\"node\":1,\"round\":7,\"time\":1,\"passed_over\":" list "}"
#define SETTINGS(object)                                                                           \
    "{\"event\":\"settings\",\"node\":1,\"round\":7,\"time\":1,\"settings\":" object "}"
#define DONE "\"outcome\":\"done\""

START_TEST(damaged_lines_are_refused_with_their_place) {
    static const refusal wrong[] = {
        {"", ":2: column 0: '[' or '{' expected near end of file"},
        {"7", ":2: column 1: '[' or '{' expected near '7'"},
        {"[]", ":2: line: [] is not allowed; it must be an object"},
        {"{}", ":2: event: is missing; it must be one of \"start\", \"resume\", \"settings\""},
        {"{\"event\":\"up\",\"event\":\"up\"}", ":2: column 21: duplicate object key"},
        {"{\"event\":\"bend\"}", ":2: event: \"bend\" is not allowed"},
        {"{\"event\":\"end\"}", ":2: node: is missing; it must be a whole number from 0 to"},
        {"{\"event\":\"end\",\"node\":1.5}", ":2: node: 1.5 is not allowed"},
        {"{\"event\":\"end\",\"node\":1,\"round\":-1}", ":2: round: -1 is not allowed"},
        {END("\"why\":null"), ":2: outcome: is missing; it must be one of \"done\", \"saved\""},
        {END(DONE), ":2: why: is missing; it must be text of up to 1023 bytes"},
        {END(DONE ",\"why\":3"), ":2: why: 3 is not allowed"},
        {END(DONE ",\"why\":null,\"peer\":3"), ":2: peer: is no field of the event \"end\""},
        {SETTINGS("{\"optimizer.momentum\":0.5}"),
         ":2: settings: optimizer.momentum is no key that a run changes"},
        {SETTINGS("3"), ":2: settings: 3 is not allowed; it must be an object of keys and values"},
        {RESUME("{}"), ":2: passed_over: {} is not allowed; it must be a list of up to 16"},
        {RESUME("[1,[]]"), ":2: passed_over: [] is not allowed"},
        {RESUME("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"), ":2: passed_over: [1,1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put(at("events-1.jsonl"), printed(UP "\n%s\n" UP "\n", wrong[i].text));
        count = 0;
        EXPECT_ERROR(sl_event_log_read(at("events-1.jsonl"), take, NULL, NULL, &error), SL_EFILE,
                     wrong[i].said);
        ck_assert_ptr_nonnull(strstr(error.text, "events-1.jsonl:2: "));
        ck_assert_uint_eq(count, 1);
    }
}
