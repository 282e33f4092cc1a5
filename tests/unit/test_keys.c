/* test_keys.c - key files: who may have them, and what is in them. */
#include <sys/stat.h>

#include "secure/credentials.h"
#include "secure/key_text.h"
#include "temporary.h"

static const char *path;
static sl_error error;

static void setup(void) {
    make_base();
    path = at("run.key");
    ck_assert_int_eq(sl_run_key_make(path, NULL), 0);
}

static void write_text(const char *file, const char *text, mode_t mode) {
    put(file, text);
    ck_assert_int_eq(chmod(file, mode), 0);
}

static void refuse(const char *file, const char *words) {
    sl_credentials *credentials = NULL;
    EXPECT_ERROR(sl_credentials_load_key(&credentials, file, &error), SL_EFILE, words);
    ck_assert_ptr_null(credentials);
    ck_assert_msg(strncmp(error.text, file, strlen(file)) == 0, "%s", error.text);
}

FIXTURES(setup, remove_base);

START_TEST(a_run_key_is_its_owners_alone_and_comes_back) {
    struct stat status;
    sl_credentials *credentials;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0600);
    ck_assert_int_eq(status.st_size, SL_RUN_KEY_FILE_BYTES);
    ck_assert_int_eq(sl_credentials_load_key(&credentials, path, NULL), 0);
    sl_credentials_close(&credentials);
}

START_TEST(two_keys_differ_and_none_is_written_over) {
    char text[SL_RUN_KEY_FILE_BYTES + 1], other[SL_RUN_KEY_FILE_BYTES + 1];
    ck_assert_int_eq(sl_run_key_text(text, NULL), 0);
    ck_assert_int_eq(sl_run_key_text(other, NULL), 0);
    ck_assert_str_ne(text, other);
    EXPECT_ERROR(sl_run_key_make(path, &error), SL_EFILE, "is there already");
}

START_TEST(what_others_may_read_is_refused) {
    static const mode_t modes[] = {0640, 0604, 0644, 0660, 0606, 0610, 0601};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        ck_assert_int_eq(chmod(path, modes[i]), 0);
        refuse(path, "chmod 600");
    }
    ck_assert_int_eq(chmod(path, 0400), 0);
    sl_credentials *credentials;
    ck_assert_int_eq(sl_credentials_load_key(&credentials, path, NULL), 0);
    sl_credentials_close(&credentials);
}

START_TEST(what_belongs_to_another_user_is_refused) {
    if (geteuid() != 0)
        return; /* only root gives files away */
    ck_assert_int_eq(chown(path, 12345, (gid_t)-1), 0);
    refuse(path, "belongs to user 12345");
}

START_TEST(links_folders_pipes_and_missing_files_are_refused) {
    const char *other = at("link");
    ck_assert_int_eq(symlink(path, other), 0);
    refuse(other, "symbolic link");
    refuse(base, "not a regular file");
    other = at("pipe");
    ck_assert_int_eq(mkfifo(other, 0600), 0);
    refuse(other, "not a regular file");
    other = at("none");
    refuse(other, "No such file");
}

START_TEST(what_is_no_key_is_refused) {
    char text[SL_RUN_KEY_FILE_BYTES + 1];
    ck_assert_int_eq(sl_run_key_text(text, NULL), 0);
    const char *other = at("other");
    write_text(other, "", 0600);
    refuse(other, "it has 0");
    for (size_t at = 0; at < SL_RUN_KEY_FILE_BYTES; at++) {
        char wrong[sizeof text];
        memcpy(wrong, text, sizeof text);
        wrong[at] = 'x';
        write_text(other, wrong, 0600);
        refuse(other, "is not a run's key");
        memcpy(wrong, text, sizeof text);
        wrong[at] = '\0';
        write_text(other, wrong, 0600);
        refuse(other, "is not a run's key");
    }
    write_text(other, printed("%s%s", text, text), 0600);
    refuse(other, "too many for a key");
}

START_TEST(a_run_folder_holds_no_keys) {
    const char *other = at("new.key");
    write_text(at("metrics-0.jsonl"), "", 0644);
    refuse(path, "is in a run folder");
    EXPECT_ERROR(sl_run_key_make(other, &error), SL_EFILE, "is in a run folder");
    ck_assert_int_ne(access(other, F_OK), 0);
}

START_TEST(a_text_hands_a_key_over) {
    char text[SL_RUN_KEY_FILE_BYTES + 1];
    sl_credentials *credentials = NULL;
    ck_assert_int_eq(sl_run_key_text(text, NULL), 0);
    for (size_t count = SL_RUN_KEY_FILE_BYTES - 1; count <= SL_RUN_KEY_FILE_BYTES; count++)
        ck_assert_int_eq(sl_credentials_take_key(&credentials, text, count, NULL),
                         count == SL_RUN_KEY_FILE_BYTES ? 0 : SL_EFILE);
    uint8_t secret[SL_SECRET_BYTES];
    ck_assert(sl_run_key_parse(text, SL_RUN_KEY_FILE_BYTES, secret));
    ck_assert_mem_eq(credentials->secret, secret, sizeof secret);
    sl_credentials_close(&credentials);
}

/* ---- nodes ---- */

START_TEST(a_nodes_pair_belongs_together) {
    const char *name = at("a"), *other = at("b"), *from = at("a.crt"), *to = at("b.crt");
    char one[SL_FINGERPRINT_TEXT_MAX], two[SL_FINGERPRINT_TEXT_MAX], read[SL_FINGERPRINT_TEXT_MAX];
    uint8_t bytes[SL_FINGERPRINT_BYTES];
    sl_credentials *credentials = NULL;
    struct stat status;
    EXPECT_WELL(sl_node_keys_make(name, one, &error));
    EXPECT_WELL(sl_node_keys_make(other, two, &error));
    ck_assert_str_ne(one, two);
    EXPECT_WELL(sl_certificate_fingerprint(from, read, &error));
    ck_assert_str_eq(read, one);
    EXPECT_WELL(sl_credentials_load_node(&credentials, name, &error));
    ck_assert(sl_fingerprint_parse(one, bytes));
    ck_assert_mem_eq(bytes, credentials->fingerprint, sizeof bytes);
    sl_credentials_close(&credentials);
    ck_assert_int_eq(stat(at("a.key"), &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0600);
    ck_assert_int_eq(rename(from, to), 0);
    EXPECT_ERROR(sl_credentials_load_node(&credentials, other, &error), SL_EFILE,
                 "is not the certificate of");
    EXPECT_ERROR(sl_node_keys_make(other, two, &error), SL_EFILE, "is there already");
}

START_TEST(a_nodes_pair_is_written_whole_or_not_at_all) {
    char fingerprint[SL_FINGERPRINT_TEXT_MAX];
    write_text(at("a.crt"), "mine", 0644);
    ck_assert_int_eq(sl_node_keys_make(at("a"), fingerprint, NULL), SL_EFILE);
    ck_assert_int_ne(access(at("a.key"), F_OK), 0);
}

START_TEST(fingerprints_are_read_as_they_are_printed_and_nothing_else) {
    uint8_t bytes[SL_FINGERPRINT_BYTES], back[SL_FINGERPRINT_BYTES];
    char text[SL_FINGERPRINT_TEXT_MAX + 1];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37);
    sl_fingerprint_print(bytes, text);
    ck_assert(sl_fingerprint_parse(text, back));
    ck_assert_mem_eq(bytes, back, sizeof bytes);
    const size_t length = strlen(text);
    for (size_t at = 0; at < length; at++) {
        const char was = text[at];
        text[at] = 'G';
        ck_assert(!sl_fingerprint_parse(text, back));
        text[at] = was;
    }
    strcat(text, "0");
    ck_assert(!sl_fingerprint_parse(text, back));
    text[length - 1] = '\0';
    ck_assert(!sl_fingerprint_parse(text, back));
}
