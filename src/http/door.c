/* door.c - see door.h. */
#include "http/door.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/address.h"

enum { WAITING_MAX = 512, PORT_TEXT_MAX = 8 };

static int open_socket(int family) {
    return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* ---- in a folder ---- */

/* A socket's address is short, and a folder's path may be long. */
static int bind_name(sl_http_door *d) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int bytes = snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s",
                               d->folder, d->name);
    if ((size_t)bytes >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    unlinkat(d->folder, d->name, 0);
    if (bind(d->listener, (const struct sockaddr *)&address, sizeof address) != 0)
        return -1;
    d->bound = true;
    return listen(d->listener, WAITING_MAX);
}

static int listen_in_folder(sl_http_door *d, const sl_http_place *at, sl_error *error) {
    snprintf(d->name, sizeof d->name, "%s", at->name);
    d->folder = open(at->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    d->listener = open_socket(AF_UNIX);
    if (d->folder >= 0 && d->listener >= 0 && bind_name(d) == 0)
        return 0;
    return sl_fail(error, SL_EFILE, "%s/%s: cannot be made: %s", at->folder, at->name,
                   strerror(errno));
}

/* ---- at a port ---- */

/* 0, or an errno. */
static int listen_at(sl_http_door *d, const struct addrinfo *at) {
    const int on = 1;
    d->listener = open_socket(at->ai_family);
    if (d->listener < 0)
        return errno;
    setsockopt(d->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return bind(d->listener, at->ai_addr, at->ai_addrlen) == 0 &&
                   listen(d->listener, WAITING_MAX) == 0
               ? 0
               : errno;
}

static int listen_at_host(sl_http_door *d, const sl_http_place *at, sl_error *error) {
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char port[PORT_TEXT_MAX];
    snprintf(port, sizeof port, "%u", at->port);
    const int unknown = getaddrinfo(at->host, port, &wanted, &found);
    if (unknown != 0)
        return sl_fail(error, SL_EINVAL, "%s: host '%s' is unknown: %s", at->key, at->host,
                       gai_strerror(unknown));
    const int failure = listen_at(d, found);
    freeaddrinfo(found);
    return failure == 0 ? 0
                        : sl_fail(error, SL_EINVAL, "%s: cannot listen at %s port %u: %s%s%s",
                                  at->key, at->host, at->port, strerror(failure),
                                  at->hint != NULL ? "; " : "", at->hint != NULL ? at->hint : "");
}

static bool is_loopback(int fd) {
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    return getsockname(fd, (struct sockaddr *)&own, &bytes) == 0 && sl_address_is_loopback(&own);
}

/* As a request may name it that does not by an address: where the host is any, as this machine. */
static void name_self(sl_http_door *d, const char *host) {
    if (!sl_host_is_any(host) || gethostname(d->own_name, sizeof d->own_name - 1) != 0)
        snprintf(d->own_name, sizeof d->own_name, "%s", host);
}

/* ---- both ---- */

int sl_http_door_open(sl_http_door *d, const sl_http_place *at, sl_error *error) {
    *d = (sl_http_door){.folder = -1, .listener = -1};
    if (at->folder != NULL)
        return listen_in_folder(d, at, error);
    const int result = listen_at_host(d, at, error);
    if (result != 0)
        return result;
    name_self(d, at->host);
    if (at->is_public || is_loopback(d->listener))
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "%s: %s is beyond loopback, where anybody may look, unencrypted, at what is "
                   "told here: say %s if they may, or listen on loopback; nothing can be changed "
                   "through it, and how agents prove themselves stays",
                   at->key, at->host, at->allow != NULL ? at->allow : "that it is public");
}

static void close_if_open(int fd) {
    if (fd >= 0)
        close(fd);
}

void sl_http_door_close(sl_http_door *d) {
    if (d->bound)
        unlinkat(d->folder, d->name, 0);
    close_if_open(d->listener);
    close_if_open(d->folder);
    *d = (sl_http_door){.folder = -1, .listener = -1};
}
