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
    uint32_t holders;           /* by atomic operations */
    const sl_share_ops *device; /* whose memory it is; NULL: the host's */
    uint64_t key[2];
};

struct sl_arena_map {
    const uint8_t *base;
    size_t bytes;
    const sl_share_ops *device; /* as above */
    uint64_t key[2];
};

struct sl_mailbox {
    int descriptor;
    const sl_share_ops *device; /* that can map memory of devices; NULL: none */
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
    *a = (sl_arena){.bytes = bytes, .descriptor = -1, .holders = 1};
    const int result = make(a, error);
    if (result != 0)
        sl_arena_close(&a);
    else
        *out = a;
    return result;
}

bool sl_arena_open_on(sl_arena **out, const sl_share_ops *device, size_t bytes,
                      char why[SL_ARENA_WHY_MAX]) {
    sl_arena *a = calloc(1, sizeof *a);
    snprintf(why, SL_ARENA_WHY_MAX, "out of memory");
    if (a != NULL && getrandom(a->key, sizeof a->key, 0) == sizeof a->key) {
        a->base = device->open(bytes, &a->descriptor, why);
        a->bytes = bytes;
        a->device = device;
        a->holders = 1;
    }
    if (a == NULL || a->base == NULL) {
        free(a);
        a = NULL;
    }
    *out = a;
    return a != NULL;
}

sl_arena *sl_arena_hold(sl_arena *a) {
    __atomic_add_fetch(&a->holders, 1, __ATOMIC_RELAXED);
    return a;
}

void sl_arena_close(sl_arena **arena) {
    sl_arena *a = *arena;
    *arena = NULL;
    if (a == NULL || __atomic_sub_fetch(&a->holders, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (a->base != NULL && a->device != NULL)
        a->device->close(a->base);
    else if (a->base != NULL)
        munmap(a->base, a->bytes);
    if (a->descriptor >= 0)
        close(a->descriptor);
    free(a);
}

uint8_t *sl_arena_memory(const sl_arena *a) {
    return a->base;
}

bool sl_arena_holds(const sl_arena *a, const void *memory) {
    return a != NULL && (uintptr_t)memory - (uintptr_t)a->base < a->bytes;
}

int sl_arena_descriptor(const sl_arena *a) {
    return a->device == NULL ? a->descriptor : -1;
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

sl_mailbox *sl_mailbox_open(const sl_share_ops *device) {
    struct sockaddr_un address;
    const int yes = 1;
    sl_mailbox *m = malloc(sizeof *m);
    if (m == NULL)
        return NULL;
    m->descriptor = open_socket();
    m->device = device;
    if (m->descriptor < 0 ||
        setsockopt(m->descriptor, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0 ||
        getrandom(&m->name, sizeof m->name, 0) != sizeof m->name ||
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

/* What is in a mailbox: a key and a kind of memory; and beside it the descriptor, and from the
 * kernel whose process has sent it. */
typedef struct letter {
    struct {
        uint64_t key[2], on_device;
    } says;
    struct iovec text;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
    } beside;
    struct msghdr message;
} letter;

static void prepare(letter *l) {
    *l = (letter){0};
    l->text = (struct iovec){&l->says, sizeof l->says};
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
    memcpy(l.says.key, a->key, sizeof l.says.key);
    l.says.on_device = a->device != NULL;
    l.message.msg_controllen = CMSG_SPACE(sizeof(int));
    l.message.msg_name = &address;
    l.message.msg_namelen = address_of(name, &address);
    struct cmsghdr *header = CMSG_FIRSTHDR(&l.message);
    *header = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(header), &a->descriptor, sizeof a->descriptor);
    const bool is_posted = from >= 0 && sendmsg(from, &l.message, MSG_NOSIGNAL) == sizeof l.says;
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

typedef struct given {
    int descriptor; /* -1: none */
    bool on_device;
    uid_t user; /* of its sender */
    uint64_t key[2];
} given;

/* The next letter's. False: there is no letter. */
static bool take_letter(const sl_mailbox *m, given *out) {
    letter l;
    prepare(&l);
    *out = (given){.descriptor = -1, .user = (uid_t)-1};
    if (recvmsg(m->descriptor, &l.message, MSG_CMSG_CLOEXEC) < 0)
        return false;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&l.message); h != NULL; h = CMSG_NXTHDR(&l.message, h)) {
        struct ucred from;
        if (h->cmsg_level != SOL_SOCKET)
            continue;
        if (h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof(int)))
            memcpy(&out->descriptor, CMSG_DATA(h), sizeof out->descriptor);
        if (h->cmsg_type == SCM_CREDENTIALS && h->cmsg_len == CMSG_LEN(sizeof from)) {
            memcpy(&from, CMSG_DATA(h), sizeof from);
            out->user = from.uid;
        }
    }
    memcpy(out->key, l.says.key, sizeof out->key);
    out->on_device = l.says.on_device != 0;
    return true;
}

/* The letter with this key; strangers may have put others there. */
static given find_letter(const sl_mailbox *m, const uint64_t key[2]) {
    given g;
    while (take_letter(m, &g)) {
        if (g.descriptor >= 0 && memcmp(g.key, key, sizeof g.key) == 0)
            return g;
        if (g.descriptor >= 0)
            close(g.descriptor);
    }
    return (given){.descriptor = -1};
}

static bool map_device(sl_arena_map *m, const given *g, const sl_share_ops *device,
                       const sl_memory_offer *offer, char why[SL_ARENA_WHY_MAX]) {
    if (device == NULL)
        return say(why, "its memory is a GPU's, which this agent does not read");
    if (g->user != geteuid())
        return say(why, "it has another user");
    const uint8_t *base = device->map(g->descriptor, offer->bytes, why);
    *m = (sl_arena_map){base, offer->bytes, device, {offer->key[0], offer->key[1]}};
    return base != NULL;
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
    *m = (sl_arena_map){base, offer->bytes, NULL, {offer->key[0], offer->key[1]}};
    return true;
}

bool sl_arena_map_open(sl_arena_map **out, const sl_mailbox *from, const sl_memory_offer *offer,
                       char why[SL_ARENA_WHY_MAX]) {
    sl_arena_map *m = calloc(1, sizeof *m);
    const given g =
        m != NULL && from != NULL ? find_letter(from, offer->key) : (given){.descriptor = -1};
    if (m == NULL)
        say(why, "out of memory");
    else if (g.descriptor < 0)
        say(why, "its memory has not been handed over");
    if (g.descriptor < 0 || !(g.on_device ? map_device(m, &g, from->device, offer, why)
                                          : map(m, g.descriptor, offer, why))) {
        free(m);
        m = NULL;
    }
    if (g.descriptor >= 0)
        close(g.descriptor);
    *out = m;
    return m != NULL;
}

void sl_arena_map_close(sl_arena_map **at) {
    sl_arena_map *m = *at;
    if (m == NULL)
        return;
    *at = NULL;
    if (m->device != NULL)
        m->device->close(m->base);
    else
        munmap((void *)m->base, m->bytes);
    free(m);
}

bool sl_arena_map_is_on_device(const sl_arena_map *m) {
    return m->device != NULL;
}

bool sl_arena_map_is_of(const sl_arena_map *m, const sl_memory_offer *offer) {
    return m != NULL && memcmp(m->key, offer->key, sizeof m->key) == 0;
}

const uint8_t *sl_arena_map_at(const sl_arena_map *m, uint64_t offset, size_t bytes) {
    return offset > m->bytes || bytes > m->bytes - offset ? NULL : m->base + offset;
}
