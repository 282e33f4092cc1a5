/* test_arena.c - arena/arena.h: who is handed an arena and takes it, what stays of it, and where it
 * ends. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "arena/window.h"
#include "harness.h"

enum { BYTES = 65536, OTHER_USER = 65534 };

static sl_error error;
static sl_arena *arena;
static sl_mailbox *mailbox;
static sl_mailbox_name name;
static sl_memory_offer offer;
static sl_arena_map *map;
static char why[SL_ARENA_WHY_MAX];

static void setup(void) {
    EXPECT_WELL(sl_arena_open(&arena, BYTES, &error));
    memset(sl_arena_memory(arena), 7, BYTES);
    ck_assert_ptr_nonnull(mailbox = sl_mailbox_open(NULL));
    name = sl_mailbox_name_of(mailbox);
}

static void teardown(void) {
    sl_arena_map_close(&map);
    sl_mailbox_close(&mailbox);
    sl_arena_close(&arena);
}

FIXTURES(setup, teardown);

/* Waits for a process that ends with what it found. */
static bool found_by(pid_t child) {
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Of an owner that nobody may trace, as agents with keys are. */
START_TEST(what_was_mapped_is_read_and_not_written_and_outlives_its_owner_s_kill) {
    int told[2];
    ck_assert_int_eq(pipe(told), 0);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_DUMPABLE, 0);
        memset(sl_arena_memory(arena), 9, BYTES);
        if (sl_arena_post(arena, &name, &offer, why) &&
            write(told[1], &offer, sizeof offer) == sizeof offer)
            pause();
        _exit(1);
    }
    sl_arena_close(&arena);
    ck_assert_int_eq(read(told[0], &offer, sizeof offer), sizeof offer);
    ck_assert_msg(sl_arena_map_open(&map, mailbox, &offer, why), "%s", why);
    ck_assert(sl_arena_map_is_of(map, &offer));
    kill(child, SIGKILL);
    ck_assert(!found_by(child));
    const uint8_t *memory = sl_arena_map_at(map, 0, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        ck_assert_uint_eq(memory[i], 9);
    ck_assert_int_ne(mprotect((void *)memory, 1, PROT_READ | PROT_WRITE), 0);
}

/* What is no arena comes from others than Starling's. */
static int file_of(bool memory, int seals) {
    char path[] = "/dev/shm/test-arena-XXXXXX";
    const int file = memory ? memfd_create("test", MFD_ALLOW_SEALING) : mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(ftruncate(file, BYTES), 0);
    ck_assert(memory || unlink(path) == 0);
    ck_assert(seals == 0 || fcntl(file, F_ADD_SEALS, seals) == 0);
    return file;
}

/* file: -1: none */
static void post(const uint64_t key[2], size_t key_bytes, int file) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const int length = sprintf(to.sun_path + 1, "starling-%016lx%016lx", (unsigned long)name.key[0],
                               (unsigned long)name.key[1]);
    char beside[CMSG_SPACE(sizeof file)] = {0};
    struct iovec text = {(void *)key, key_bytes};
    struct msghdr message = {.msg_name = &to,
                             .msg_namelen = (socklen_t)(sizeof to.sun_family + 1 + length),
                             .msg_iov = &text,
                             .msg_iovlen = 1};
    if (file >= 0) {
        message.msg_control = beside;
        message.msg_controllen = sizeof beside;
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){CMSG_LEN(sizeof file), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &file, sizeof file);
    }
    const int socket_of = socket(AF_UNIX, SOCK_DGRAM, 0);
    ck_assert_int_eq(sendmsg(socket_of, &message, 0), key_bytes);
    close(socket_of);
}

START_TEST(what_comes_from_others_is_not_taken) {
    static const uint64_t key[2] = {3, 4}, another[2] = {3, 5};
    const struct {
        bool memory;
        int seals; /* -1: no file comes */
        const uint64_t *key;
        size_t key_bytes;
        uint64_t bytes;  /* as is said */
        const char *why; /* NULL: it is mapped */
    } rows[] = {
        {true, F_SEAL_SHRINK, key, sizeof key, BYTES, NULL},
        {true, F_SEAL_SHRINK, another, sizeof key, BYTES, "not been handed over"},
        {true, F_SEAL_SHRINK, key, 8, BYTES, "not been handed over"},
        {true, -1, key, sizeof key, BYTES, "not been handed over"},
        {true, F_SEAL_SHRINK, key, sizeof key, BYTES + 1, "not as long as it says"},
        {true, F_SEAL_GROW, key, sizeof key, BYTES, "not sealed"},
        {false, 0, key, sizeof key, BYTES, "not sealed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int file = rows[i].seals < 0 ? -1 : file_of(rows[i].memory, rows[i].seals);
        offer = (sl_memory_offer){rows[i].bytes, {key[0], key[1]}};
        post(another, sizeof another, -1); /* of a stranger */
        post(rows[i].key, rows[i].key_bytes, file);
        ck_assert_msg(sl_arena_map_open(&map, mailbox, &offer, why) == (rows[i].why == NULL),
                      "row %zu", i);
        ck_assert_msg(rows[i].why == NULL || strstr(why, rows[i].why) != NULL, "row %zu: %s", i,
                      why);
        sl_arena_map_close(&map);
    }
}

START_TEST(another_user_s_memory_is_not_taken) {
    if (geteuid() != 0)
        return; /* nobody else can be made */
    const pid_t child = fork();
    if (child == 0) {
        sl_arena *own;
        if (seteuid(OTHER_USER) != 0 || sl_arena_open(&own, BYTES, &error) != 0)
            _exit(1);
        if (!sl_arena_post(own, &name, &offer, why) || seteuid(0) != 0)
            _exit(2);
        _exit(sl_arena_map_open(&map, mailbox, &offer, why) ||
              strcmp(why, "it has another user") != 0);
    }
    ck_assert(found_by(child));
}

START_TEST(who_is_elsewhere_is_not_reached) {
    sl_mailbox_close(&mailbox);
    ck_assert(!sl_arena_post(arena, &name, &offer, why));
    ck_assert_str_eq(why, "it has another host, or a network of its own");
}

START_TEST(nothing_outside_it_is_reached) {
    ck_assert(sl_arena_post(arena, &name, &offer, why));
    ck_assert_msg(sl_arena_map_open(&map, mailbox, &offer, why), "%s", why);
    const struct {
        uint64_t offset;
        size_t bytes;
        bool is_inside;
    } rows[] = {
        {0, BYTES, true},
        {0, BYTES + 1, false},
        {BYTES - 16, 16, true},
        {BYTES - 15, 16, false},
        {BYTES, 0, true},
        {BYTES, 1, false},
        {BYTES + 1, 0, false},
        {UINT64_MAX, 1, false},
        {UINT64_MAX - 7, 16, false},
        {4096, SIZE_MAX, false},
        {4096, SIZE_MAX - 4095, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_msg((sl_arena_map_at(map, rows[i].offset, rows[i].bytes) != NULL) ==
                          rows[i].is_inside,
                      "row %zu", i);
}

/* ---- a window on rooms ---- */

/* Rooms of a page, and what it shows; the last byte alone changes. */
static void look_through(void) {
    sl_window *w;
    EXPECT_WELL(sl_window_open(&w, 100, &error));
    const size_t page = sl_window_unit();
    uint8_t *rooms = memset(sl_arena_memory(arena), 7, BYTES), *here = sl_window_memory(w);
    memset(here, 1, page);
    ck_assert(!sl_window_attach(w, arena, rooms, page - 64));
    ck_assert(sl_window_attach(w, arena, rooms, page) && !sl_window_attach(w, arena, rooms, page));
    EXPECT_WELL(sl_window_show(w, 1, &error));
    ck_assert(here[0] == 7 && sl_window_shows(w) == 1);
    here[0] = 2;
    EXPECT_WELL(sl_window_freeze(w, &error));
    ck_assert(here[0] == 2 && rooms[page] == 2 && sl_window_find_change(w) == page);
    here[0] = 2; /* as it was */
    ck_assert_uint_eq(sl_window_find_change(w), page);
    rooms[page] = 3; /* its owner's: a page that was given back shows it */
    ck_assert_uint_eq(here[0], 3);
    here[page - 1] = 9;
    ck_assert(rooms[2 * page - 1] == 7 && sl_window_find_change(w) == page - 1);
    EXPECT_WELL(sl_window_show(w, 2, &error));
    here[0] = 4;
    ck_assert(rooms[2 * page] == 4 && rooms[page] == 3 && here[page - 1] == 7);
    EXPECT_WELL(sl_window_show(w, SL_WINDOW_OWN, &error));
    ck_assert_uint_eq(here[0], 1);
    EXPECT_WELL(sl_window_show(w, 2, &error));
    sl_window_detach(w);
    here[1] = 5;
    ck_assert(here[0] == 4 && rooms[2 * page + 1] == 7);
    sl_window_close(&w);
}

START_TEST(a_window_shows_rooms_and_what_is_written_to_a_frozen_one_is_its_own) {
    look_through();
    const struct rlimit none = {0, 0}; /* no descriptor, as for /proc/self/pagemap */
    const pid_t child = fork();        /* other tests of this process need some */
    if (child == 0) {
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
        look_through();
        _exit(0);
    }
    ck_assert(found_by(child));
}

START_TEST(what_does_not_fit_a_limit_is_refused_with_its_size) {
    sl_arena *too_long;
    const struct rlimit most = {BYTES, BYTES};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &most), 0);
    EXPECT_ERROR(sl_arena_open(&too_long, 1 << 20, &error), SL_ENOMEM,
                 "1.0 MiB that neighbours on this host would read cannot be had: RLIMIT_FSIZE");
}
