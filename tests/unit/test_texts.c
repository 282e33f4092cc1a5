/* test_texts.c - text files as people's tools write them: one reader, and all that read with it. */
#include <sys/stat.h>
#include <zlib.h>

#include "learner/data/data.h"
#include "learner/quadratic.h"
#include "starling/experiment.h"
#include "starling/links.h"
#include "starling/roster.h"
#include "starling/suggest.h"
#include "starling/text.h"
#include "starling/topology.h"
#include "temporary.h"

#define LIMIT ((size_t)1 << 20)
#define MARK "\xEF\xBB\xBF"

static const char *path;
static sl_error error;

static void setup(void) {
    make_base();
    path = at("text");
}

static void write_bytes(const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void write_packed(const void *bytes, size_t size) {
    gzFile file = gzopen(path, "wb");
    ck_assert_int_eq(gzwrite(file, bytes, (unsigned)size), (int)size);
    gzclose(file);
}

/* ---- the reader ---- */

static const struct {
    const char *written, *read;
} texts[] = {{"a\nb\n", "a\nb\n"},
             {"a\r\nb\r\n", "a\nb\n"},
             {"a\r\r\nb", "a\nb"},
             {"a\rb\r", "a\nb\n"},   /* of an old Mac */
             {"a\rb\nc", "a\rb\nc"}, /* its lines end with LF */
             {MARK "a", "a"},
             {MARK MARK "a", MARK "a"}, /* only the first is a mark */
             {MARK "\r\n", "\n"},
             {"\xE9t\xE9", "\xE9t\xE9"}, /* not UTF-8, and nobody's business here */
             {MARK, ""},
             {"\r", "\n"},
             {"BZ", "BZ"},
             {"", ""}};

FIXTURES(setup, remove_base);

START_LOOP_TEST(marks_and_line_ends_are_gone, sizeof texts / sizeof *texts) {
    const char *written = texts[_i].written;
    for (int packed = 0; packed < 2; packed++) {
        char *text;
        (packed ? write_packed : write_bytes)(written, strlen(written));
        EXPECT_WELL(sl_text_read(&text, path, LIMIT, &error));
        ck_assert_str_eq(text, texts[_i].read);
        free(text);
    }
}

#define BYTES(literal) literal, sizeof literal - 1
static const struct {
    const char *bytes;
    size_t size;
    const char *said;
} refused[] = {
    {BYTES("\xFF\xFE{\0}\0"), "is UTF-16 text, and UTF-8 is read; write it anew: iconv -f UTF-16 "},
    {BYTES("\xFE\xFF\0{\0}"), "is UTF-16 text"},
    {BYTES("{\0}\0\n\0"), "iconv -f UTF-16LE -t UTF-8"},
    {BYTES("\0{\0}\0\n"), "iconv -f UTF-16BE -t UTF-8"},
    {BYTES("nodes\0and more"), "is no text: its byte 5 is 0"},
    {BYTES("BZh91AY&SY..."), "is packed by bzip2, and only gzip is unpacked here: bunzip2 -k "},
    {BYTES("\xFD"
           "7zXZ\0\0\4"),
     "is packed by xz, and only gzip is unpacked here: xz -dk "},
    {BYTES("\x28\xB5\x2F\xFD\x04\x50"),
     "is packed by zstd, and only gzip is unpacked here: zstd -d "},
    {BYTES("PK\3\4\x14\0\0\0"), "is packed by zip, and only gzip is unpacked here: unzip "},
    {BYTES("\x1F\x8B\x08\0cut"), "is the file truncated?"},
};

START_LOOP_TEST(what_is_no_plain_text_is_named, sizeof refused / sizeof *refused) {
    char *text;
    write_bytes(refused[_i].bytes, refused[_i].size);
    EXPECT_ERROR(sl_text_read(&text, path, LIMIT, &error), SL_EFILE, refused[_i].said);
    ck_assert_ptr_nonnull(strstr(error.text, path));
}

START_TEST(an_archive_within_gzip_is_named) {
    static char tar[1024];
    char *text;
    memcpy(tar + 257, "ustar", 5);
    write_packed(tar, sizeof tar);
    EXPECT_ERROR(sl_text_read(&text, path, LIMIT, &error), SL_EFILE, "is a tar archive");
}

START_TEST(a_file_has_at_most_the_bytes_that_are_allowed) {
    char *text;
    for (int packed = 0; packed < 2; packed++) {
        (packed ? write_packed : write_bytes)("12345678", 8);
        EXPECT_ERROR(sl_text_read(&text, path, 7, &error), SL_EFILE,
                     packed ? "7" : "is 8 bytes long; at most 7 are allowed");
        if (packed)
            continue;
        EXPECT_WELL(sl_text_read(&text, path, 8, &error));
        ck_assert_str_eq(text, "12345678");
        free(text);
    }
}

START_TEST(only_regular_files_are_read) {
    char *text;
    ck_assert_int_eq(sl_text_read(&text, "/tmp", LIMIT, &error), SL_EFILE);
    ck_assert_str_eq(error.text, "/tmp: is a folder, not a regular file; name a file here");
    unlink(path);
    EXPECT_ERROR(sl_text_read(&text, path, LIMIT, &error), SL_EFILE, "No such file or directory");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    EXPECT_ERROR(sl_text_read(&text, path, LIMIT, &error), SL_EFILE, "is not a regular file");
}

/* ---- all that read texts ---- */

static int read_topology(void) {
    sl_topology *t = NULL;
    int result = sl_topology_load(&t, path, &error);
    ck_assert(result != 0 || sl_topology_nodes(t) == 4);
    sl_topology_close(&t);
    return result;
}

static int read_links(void) {
    sl_links *links = NULL;
    int result = sl_links_load(&links, path, &error);
    ck_assert(result != 0 || sl_links_get(links, 0, 1).bandwidth_mbit == 100);
    sl_links_close(&links);
    return result;
}

static int read_roster(void) {
    sl_roster *roster = NULL;
    int result = sl_roster_load(&roster, path, &error);
    ck_assert(result != 0 || strcmp(sl_roster_host(roster, 0), "10.0.0.1") == 0);
    ck_assert(result != 0 || sl_roster_count(roster) == 2);
    sl_roster_close(&roster);
    return result;
}

static int read_experiment(void) {
    sl_experiment *e = NULL;
    int result = sl_experiment_load(&e, path, NULL, 0, &error);
    ck_assert(result != 0 || sl_topology_nodes(e->topology) == 4);
    sl_experiment_close(&e);
    return result;
}

static int read_named_topology(void) {
    sl_experiment *e = NULL;
    const char *text = printed("{\"rounds\": 1, \"topology\": \"%s\"}", path);
    int result = sl_experiment_parse(&e, text, "experiment", ".", NULL, 0, &error);
    ck_assert(result != 0 || sl_topology_nodes(e->topology) == 4);
    sl_experiment_close(&e);
    return result;
}

static int read_quadratic(void) {
    sl_quadratic q = {0};
    int result = sl_quadratic_load(&q, path, 1, &error);
    sl_quadratic_close(&q);
    return result;
}

static int read_data(sl_data_kind kind, uint32_t sequence, uint32_t classes) {
    sl_data_config config = {.kind = kind, .batch = 1, .sequence = sequence};
    sl_data data = {0};
    strcpy(config.path, path);
    int result = sl_data_load(&data, &config, 1, &error);
    ck_assert(result != 0 || data.train.classes == classes);
    ck_assert(result != 0 || data.train.speakers == (kind == SL_DATA_TEXT));
    sl_data_close(&data);
    return result;
}

static int read_svm(void) {
    return read_data(SL_DATA_LIBSVM, 0, 2);
}

static int read_play(void) {
    return read_data(SL_DATA_TEXT, 1, 9); /* neither a mark nor CR is a character of it */
}

static const struct {
    const char *text;
    int (*read)(void);
} readers[] = {
    {"{\"nodes\": 4,\n \"family\": \"ring\"}\n", read_topology},
    {"{\"nodes\": 4,\n \"family\": \"ring\"}\n", read_named_topology},
    {"{\"nodes\": 2,\n \"bandwidth_mbit\": 100}\n", read_links},
    {"10.0.0.1:7000\n10.0.0.2:7000\n", read_roster},
    {"{\"rounds\": 1, \"topology\":\n {\"nodes\": 4, \"family\": \"ring\"}}\n", read_experiment},
    {"{\"A\": [[[1]]],\n \"b\": [[1]], \"x0\": [[0]]}\n", read_quadratic},
    {"1 1:1\n2 1:2\n1 1:3\n2 1:4\n1 1:5\n", read_svm},
    {"A:\nxyxyxyxyxyxyxy\n\nB:\nzyzyzyzyzyzyzyzyz \n\nA:\nqxqxqx\n", read_play},
};

/* The text with CR LF at its line ends, and a mark. */
static size_t as_windows(char *out, const char *text) {
    char *end = stpcpy(out, MARK);
    for (; *text != '\0'; text++) {
        if (*text == '\n')
            *end++ = '\r';
        *end++ = *text;
    }
    return (size_t)(end - out);
}

START_LOOP_TEST(every_text_may_have_a_mark_and_line_ends_of_windows_and_be_packed,
                sizeof readers / sizeof *readers) {
    char text[512];
    const size_t size = as_windows(text, readers[_i].text);
    write_bytes(readers[_i].text, strlen(readers[_i].text));
    EXPECT_WELL(readers[_i].read());
    write_bytes(text, size);
    EXPECT_WELL(readers[_i].read());
    write_packed(text, size);
    EXPECT_WELL(readers[_i].read());
}

/* ---- what is shown of text from outside ---- */

static const struct {
    const char *text, *shown;
} outside[] = {
    {"plain, with \\x1b as somebody wrote it", "plain, with \\x1b as somebody wrote it"},
    {"\x1b]0;title\a and \x1b[2J", "\\x1b]0;title\\x07 and \\x1b[2J"},
    {"a\nb\r\tc\x7f", "a\\x0ab\\x0d\\x09c\\x7f"},
    {"\xC2\x9B"
     "31m, \x9B"
     "31m",
     "\\xc2\\x9b31m, \\x9b31m"}, /* CSI of C1, as UTF-8 and as a byte */
    {"\xE2\x80\xAE"
     "gpj.exe \xE2\x81\xA6 \xE2\x80\xA8",
     "\\xe2\\x80\\xaegpj.exe \\xe2\\x81\\xa6 \\xe2\\x80\\xa8"},
    {"h\xC3\xB6r \xE2\x82\xAC \xF0\x9F\x90\xA6", "h\xC3\xB6r \xE2\x82\xAC \xF0\x9F\x90\xA6"},
    {"\xC0\x9B \xE0\x82\x9B \xED\xA0\x80", "\\xc0\\x9b \\xe0\\x82\\x9b \\xed\\xa0\\x80"},
    {"\xF4\x90\x80\x80 \xFF", "\\xf4\\x90\\x80\\x80 \\xff"},
    {"torn \xE2\x82", "torn \\xe2\\x82"},
    {"", ""},
};

START_LOOP_TEST(text_from_outside_is_shown_without_what_a_terminal_obeys,
                sizeof outside / sizeof *outside) {
    char out[256], again[256];
    const char *text = outside[_i].text;
    ck_assert_ptr_eq(sl_text_show(out, sizeof out, text, strlen(text)), out);
    ck_assert_str_eq(out, outside[_i].shown);
    ck_assert_str_eq(sl_text_show(again, sizeof again, out, strlen(out)), out);
    sl_fail(&error, SL_EINVAL, "name: '%s' is not allowed", text);
    ck_assert_ptr_nonnull(strstr(error.text, outside[_i].shown));
    sl_fail_prefix(&error, SL_EINVAL, "%s", text);
    ck_assert_ptr_eq(strstr(error.text, outside[_i].shown), error.text);
}

/* Both ends stay, with whole characters and escapes. */
START_TEST(of_long_text_the_middle_is_left_out) {
    static const char text[] = "\x1b\xE2\x82\xAC"
                               "abcdefghijk\xE2\x82\xAC\x1b";
    char whole[64], out[64];
    sl_text_show(whole, sizeof whole, text, strlen(text));
    for (size_t room = 4; room <= strlen(whole); room++) {
        sl_text_show(out, room, text, strlen(text));
        const char *gap = strstr(out, "...");
        ck_assert_uint_lt(strlen(out), room);
        ck_assert_uint_gt(strlen(out) + 8, room);
        ck_assert(gap != NULL && strncmp(out, whole, (size_t)(gap - out)) == 0);
        ck_assert_str_eq(gap + 3, whole + strlen(whole) - strlen(gap + 3));
    }
    ck_assert_str_eq(sl_text_show(out, strlen(whole) + 1, text, strlen(text)), whole);
}

START_TEST(an_error_of_a_long_value_still_says_what_to_do) {
    char *value = malloc(LIMIT + 1);
    memset(value, '\a', LIMIT);
    value[LIMIT] = '\0';
    sl_fail(&error, SL_EINVAL, "key: '%s' is not allowed; leave it out", value);
    ck_assert_ptr_eq(strstr(error.text, "key: '\\x07"), error.text);
    ck_assert_ptr_nonnull(strstr(error.text, "..."));
    ck_assert_ptr_nonnull(strstr(error.text, "\\x07' is not allowed; leave it out"));
    sl_fail_prefix(&error, SL_EINVAL, "%s", value);
    ck_assert_ptr_nonnull(strstr(error.text, "is not allowed; leave it out"));
    free(value);
}

/* ---- as it was typed ---- */

static const struct {
    const char *typed, *json;
} typed[] = {{".05", "0.05"},
             {"-.5", "-0.5"},
             {"+1", "1"},
             {"5.", "5.0"},
             {"5.e-3", "5.0e-3"},
             {"[.1, .2,3.]", "[0.1, 0.2,3.0]"},
             {"{\"a.5\":.5,\"b\": \".5\"}", "{\"a.5\":0.5,\"b\": \".5\"}"},
             {"\"\\\".5 .5\"", "\"\\\".5 .5\""},
             {"./data.5", "./data.5"},
             {"", ""},
             {".", "."},
             {"-", "-"}};

START_TEST(numbers_are_taken_as_people_type_them) {
    for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
        char *json = sl_text_typed(typed[i].typed);
        ck_assert_str_eq(json, typed[i].json);
        free(json);
    }
}

#define LONG_LIST                                                                                  \
    "; it must be one of what fills more than a line, so that it helps only those who find "       \
    "nothing "                                                                                     \
    "of it in what they wrote"

static const struct {
    const char *word, *end; /* of a refusal */
} words[] = {
    {"topk", "; did you mean \"top-k\"?"},
    {"Top_K", "; did you mean \"top-k\"?"},
    {"d2", "; did you mean \"exact-diffusion\"?"},
    {"choco", "; did you mean \"choco-sgd\"?"},
    {"gt", "; did you mean \"gradient-tracking\"?"},
    {"exponential", "; did you mean \"static-exponential\" or \"one-peer-exponential\"?"},
    {"sgd", "; did you mean \"choco-sgd\", \"local-sgd\", \"ecq-sgd\" or \"cd-sgd\"?"},
    {"tpo-k", "; did you mean \"top-k\"?"},
    {"lr", LONG_LIST}, /* what it is called is not among them */
    {"k", LONG_LIST},
    {"-", LONG_LIST},
    {"", LONG_LIST},
};

START_TEST(a_name_gets_those_that_may_have_been_meant) {
    static const char *const known[] =
        ROW("top-k", "exact-diffusion", "gradient-tracking", "choco-sgd", "local-sgd", "ecq-sgd",
            "cd-sgd", "x-sgd", "static-exponential", "one-peer-exponential");
    char end[256];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        sl_suggest_text(end, sizeof end, words[i].word, known, sizeof known / sizeof *known,
                        LONG_LIST);
        ck_assert_str_eq(end, words[i].end);
    }
    sl_suggest_text(end, sizeof end, "topk", known, 2, "; short");
    ck_assert_str_eq(end, "; short; did you mean \"top-k\"?");
    ck_assert_str_eq(sl_usual_name("lr"), "learning_rate");
    ck_assert_str_eq(sl_usual_name("alpha"), "alpha");
}
