/* test_record_errors.c - the run folder: what cannot be written is said. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <jansson.h>

#include "record_folder.h"

FIXTURES(begin, remove_base);

/* A descriptor table that is full after the folder was opened does not stop a run. */
START_TEST(a_process_at_its_descriptor_limit_still_writes) {
    sl_folder *folder = open_folder(at("run"), e, true);
    const sl_evaluation evaluation = {.loss = 1, .accuracy = 0.5};
    int full[1024], count = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){1000, 1000}), 0);
    while (count < 1024 && (full[count] = open("/dev/null", O_RDONLY)) >= 0)
        count++;
    ck_assert_int_eq(errno, EMFILE);
    sl_record record = record_of(0, 1);
    for (uint64_t r = 1; r <= 3; r++) {
        EXPECT_WELL(sl_folder_metrics(folder, &record, &error));
        EXPECT_WELL(sl_folder_parameters(folder, 4 - r, 0, awkward, AWKWARD, 1, &error));
        EXPECT_WELL(sl_folder_best(folder, -1, r, &evaluation, awkward, AWKWARD, &error));
    }
    EXPECT_WELL(sl_folder_remember(folder, 3, &evaluation, awkward, AWKWARD, &error));
    uint64_t round;
    EXPECT_WELL(sl_folder_rescue(folder, -1, &round, &error));
    EXPECT_WELL(sl_folder_close(&folder, &error));
    while (count > 0)
        close(full[--count]);
    size_t bytes;
    char *lines = contents(at("run/parameters.jsonl"), &bytes);
    ck_assert_int_eq(strncmp(lines, "{\"round\":1,", 11), 0);
}

START_TEST(a_file_in_the_way_is_named) {
    put(at("file"), "");
    refuse_folder(at("file"), e, true, "Not a directory");
    refuse_folder(at("file/run"), e, true, "Not a directory");
    refuse_folder("/proc/starling/run", e, true, "/proc/starling: the folder cannot be made");
}

/* In a child without root's rights, if need be. */
START_TEST(a_folder_without_write_permission_is_named) {
    ck_assert_int_eq(mkdir(at("locked"), 0555), 0);
    ck_assert_int_eq(chmod(base, 0755), 0);
    pid_t child = fork();
    if (child == 0) {
        if (getuid() == 0 && setuid(65534) != 0)
            _exit(3);
        sl_folder *folder = NULL;
        sl_error inside = {0}, itself = {0};
        bool refused = sl_folder_open(&folder, at("locked/run"), e, true, &inside) == SL_EFILE &&
                       sl_folder_open(&folder, at("locked"), e, true, &itself) == SL_EFILE;
        _exit(refused && strstr(inside.text, "locked/run") && strstr(itself.text, "locked") &&
                      strstr(inside.text, "Permission denied") &&
                      strstr(itself.text, "Permission denied")
                  ? 0
                  : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

/* ---- what a power cut leaves ---- */

/* The library's calls pass through here (tests/meson.build). */
int __real_fsync(int fd);
int __real_syncfs(int fd);
int __real_rename(const char *from, const char *to);
static ino_t synced[64]; /* files and folders whose content is on the disk */
static size_t synced_count;
static int renamed;
static bool all_synced; /* since the last rename */
static bool watched;

static bool is_synced(const char *path) {
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    for (size_t i = 0; i < synced_count; i++)
        if (synced[i] == status.st_ino)
            return true;
    return false;
}

int __wrap_fsync(int fd) {
    struct stat status;
    if (synced_count < 64 && fstat(fd, &status) == 0)
        synced[synced_count++] = status.st_ino;
    return __real_fsync(fd);
}

int __wrap_syncfs(int fd) {
    all_synced = true;
    return __real_syncfs(fd);
}

int __wrap_rename(const char *from, const char *to) {
    ck_assert_msg(!watched || is_synced(from), "%s gets its name before its content is on the disk",
                  to);
    ck_assert_msg(!watched || all_synced || strstr(to, "summary.json") == NULL,
                  "what it sums up is not");
    renamed++;
    all_synced = false;
    synced_count = 0; /* the folder has changed */
    return __real_rename(from, to);
}

START_TEST(content_is_on_the_disk_before_its_name) {
    watched = true;
    sl_folder *folder = open_folder(at("run"), e, true);
    ck_assert_msg(is_synced(at("run")), "the name of the configuration may be lost");
    EXPECT_WELL(sl_folder_model(folder, -1, "", awkward, AWKWARD, &error));
    ck_assert_msg(is_synced(at("run")), "the name of the model may be lost");
    const sl_evaluation evaluation = {.loss = 1};
    EXPECT_WELL(sl_folder_best(folder, -1, 1, &evaluation, awkward, AWKWARD, &error));
    EXPECT_WELL(sl_folder_summary(folder, &(sl_summary){.driver = "sim", .nodes = 4}, &error));
    ck_assert_msg(is_synced(at("run")), "the name of the summary may be lost");
    ck_assert_int_ge(renamed, 4); /* configuration, two models, summary */
    close_folder(folder);
    watched = false;
}
