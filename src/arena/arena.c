/* arena.c - see arena.h. */
#include "arena/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct sl_arena {
    uint8_t *base;
    size_t bytes;
    int descriptor;
    uint64_t key[2];
};

struct sl_arena_map {
    const uint8_t *base;
    size_t bytes;
    uint64_t key[2];
};

struct sl_mailbox {
    int descriptor;
    sl_mailbox_name name;
};

/* ---- the owner's ---- */

static int fail(sl_error *error, size_t bytes, const char *what) {
    return sl_fail(error, SL_ENOMEM,
                   "%.1f MiB that neighbours on this host would read cannot be had: %s: %s",
                   (double)bytes / (1 << 20), what, strerror(errno));
}

/* Nobody else may write to it, where the kernel knows that (Linux 5.1). */
static bool seal(int descriptor) {
    const int size = F_SEAL_SHRINK | F_SEAL_GROW;
    return fcntl(descriptor, F_ADD_SEALS, size | F_SEAL_FUTURE_WRITE) == 0 ||
           fcntl(descriptor, F_ADD_SEALS, size) == 0;
}

/* Who makes a file longer than that is killed. */
static bool is_too_long(size_t bytes) {
    struct rlimit most;
    return getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < bytes;
}

static int make(sl_arena *a, sl_error *error) {
    if (is_too_long(a->bytes)) {
        errno = EFBIG;
        return fail(error, a->bytes, "RLIMIT_FSIZE (ulimit -f)");
    }
    if (getrandom(a->key, sizeof a->key, 0) != sizeof a->key)
        return fail(error, a->bytes, "getrandom");
    a->descriptor = memfd_create("starling", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (a->descriptor < 0)
        return fail(error, a->bytes, "memfd_create");
    if (ftruncate(a->descriptor, (off_t)a->bytes) != 0)
        return fail(error, a->bytes, "ftruncate");
    void *base = mmap(NULL, a->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->descriptor, 0);
    if (base == MAP_FAILED)
        return fail(error, a->bytes, "mmap");
    a->base = base;
    return seal(a->descriptor) ? 0 : fail(error, a->bytes, "F_ADD_SEALS");
}

int sl_arena_open(sl_arena **out, size_t bytes, sl_error *error) {
    sl_arena *a = malloc(sizeof *a);
    if (a == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for an arena");
    *a = (sl_arena){.bytes = bytes, .descriptor = -1};
    const int result = make(a, error);
    if (result != 0)
        sl_arena_close(&a);
    else
        *out = a;
    return result;
}

void sl_arena_close(sl_arena **arena) {
    sl_arena *a = *arena;
    if (a == NULL)
        return;
    *arena = NULL;
    if (a->base != NULL)
        munmap(a->base, a->bytes);
    if (a->descriptor >= 0)
        close(a->descriptor);
    free(a);
}

uint8_t *sl_arena_memory(const sl_arena *a) {
    return a->base;
}

size_t sl_arena_bytes(const sl_arena *a) {
    return a->bytes;
}

/* ---- mailboxes ---- */

/* In the abstract namespace, which belongs to a network namespace: it has no file. */
static socklen_t address_of(const sl_mailbox_name *name, struct sockaddr_un *out) {
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int length = snprintf(out->sun_path + 1, sizeof out->sun_path - 1,
                                "starling-%016" PRIx64 "%016" PRIx64, name->key[0], name->key[1]);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int open_socket(void) {
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

sl_mailbox *sl_mailbox_open(void) {
    struct sockaddr_un address;
    sl_mailbox *m = malloc(sizeof *m);
    if (m == NULL)
        return NULL;
    m->descriptor = open_socket();
    if (m->descriptor < 0 || getrandom(&m->name, sizeof m->name, 0) != sizeof m->name ||
        bind(m->descriptor, (const struct sockaddr *)&address, address_of(&m->name, &address)) != 0)
        sl_mailbox_close(&m);
    return m;
}

void sl_mailbox_close(sl_mailbox **mailbox) {
    sl_mailbox *m = *mailbox;
    if (m == NULL)
        return;
    *mailbox = NULL;
    if (m->descriptor >= 0)
        close(m->descriptor);
    free(m);
}

sl_mailbox_name sl_mailbox_name_of(const sl_mailbox *m) {
    return m->name;
}

/* What is in a mailbox: a key, and beside it the descriptor. */
typedef struct letter {
    uint64_t key[2];
    struct iovec text;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } beside;
    struct msghdr message;
} letter;

static void prepare(letter *l) {
    *l = (letter){0};
    l->text = (struct iovec){l->key, sizeof l->key};
    l->message = (struct msghdr){.msg_iov = &l->text,
                                 .msg_iovlen = 1,
                                 .msg_control = l->beside.bytes,
                                 .msg_controllen = sizeof l->beside.bytes};
}

bool sl_arena_post(const sl_arena *a, const sl_mailbox_name *name, sl_memory_offer *out,
                   char why[SL_ARENA_WHY_MAX]) {
    letter l;
    struct sockaddr_un address;
    const int from = open_socket();
    prepare(&l);
    memcpy(l.key, a->key, sizeof l.key);
    l.message.msg_name = &address;
    l.message.msg_namelen = address_of(name, &address);
    struct cmsghdr *header = CMSG_FIRSTHDR(&l.message);
    *header = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(header), &a->descriptor, sizeof a->descriptor);
    const bool is_posted = from >= 0 && sendmsg(from, &l.message, MSG_NOSIGNAL) == sizeof l.key;
    if (!is_posted && errno == ECONNREFUSED)
        snprintf(why, SL_ARENA_WHY_MAX, "it has another host, or a network of its own");
    else if (!is_posted)
        snprintf(why, SL_ARENA_WHY_MAX, "this agent's memory cannot be handed over: %s",
                 strerror(errno));
    if (from >= 0)
        close(from);
    *out = (sl_memory_offer){.bytes = a->bytes, .key = {a->key[0], a->key[1]}};
    return is_posted;
}

/* ---- the reader's ---- */

static bool say(char why[SL_ARENA_WHY_MAX], const char *what) {
    snprintf(why, SL_ARENA_WHY_MAX, "%s", what);
    return false;
}

static bool say_errno(char why[SL_ARENA_WHY_MAX], const char *what) {
    snprintf(why, SL_ARENA_WHY_MAX, "%s: %s", what, strerror(errno));
    return false;
}

/* The next letter's descriptor; -1: it has none. False: there is no letter. */
static bool take_letter(const sl_mailbox *m, uint64_t key[2], int *descriptor) {
    letter l;
    prepare(&l);
    const ssize_t bytes = recvmsg(m->descriptor, &l.message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&l.message);
    *descriptor = -1;
    if (bytes < 0)
        return false;
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
    memcpy(key, l.key, sizeof l.key);
    return true;
}

/* The letter with this key; strangers may have put others there. -1: there is none. */
static int find_letter(const sl_mailbox *m, const uint64_t key[2]) {
    uint64_t its[2];
    int descriptor;
    while (take_letter(m, its, &descriptor)) {
        if (descriptor >= 0 && memcmp(its, key, sizeof its) == 0)
            return descriptor;
        if (descriptor >= 0)
            close(descriptor);
    }
    return -1;
}

/* It cannot shrink: what is mapped can always be read. */
static bool map(sl_arena_map *m, int file, const sl_memory_offer *offer,
                char why[SL_ARENA_WHY_MAX]) {
    struct stat is;
    const int seals = fcntl(file, F_GET_SEALS);
    if (fstat(file, &is) != 0 || seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        return say(why, "its memory is not sealed");
    if (is.st_uid != geteuid())
        return say(why, "it has another user");
    if ((uint64_t)is.st_size != offer->bytes)
        return say(why, "its memory is not as long as it says");
    void *base = mmap(NULL, offer->bytes, PROT_READ, MAP_SHARED, file, 0);
    if (base == MAP_FAILED)
        return say_errno(why, "its memory cannot be mapped");
    *m = (sl_arena_map){base, offer->bytes, {offer->key[0], offer->key[1]}};
    return true;
}

bool sl_arena_map_open(sl_arena_map **out, const sl_mailbox *from, const sl_memory_offer *offer,
                       char why[SL_ARENA_WHY_MAX]) {
    sl_arena_map *m = calloc(1, sizeof *m);
    const int file = m != NULL && from != NULL ? find_letter(from, offer->key) : -1;
    if (m == NULL)
        say(why, "out of memory");
    else if (file < 0)
        say(why, "its memory has not been handed over");
    if (file < 0 || !map(m, file, offer, why)) {
        free(m);
        m = NULL;
    }
    if (file >= 0)
        close(file);
    *out = m;
    return m != NULL;
}

void sl_arena_map_close(sl_arena_map **at) {
    sl_arena_map *m = *at;
    if (m == NULL)
        return;
    *at = NULL;
    munmap((void *)m->base, m->bytes);
    free(m);
}

bool sl_arena_map_is_of(const sl_arena_map *m, const sl_memory_offer *offer) {
    return m != NULL && memcmp(m->key, offer->key, sizeof m->key) == 0;
}

const uint8_t *sl_arena_map_at(const sl_arena_map *m, uint64_t offset, size_t bytes) {
    return offset > m->bytes || bytes > m->bytes - offset ? NULL : m->base + offset;
}
