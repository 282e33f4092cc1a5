/* pipe.c - a socket's end; see pipe.h. */
#include "run/pipe.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "cli/signals.h"
#include "starling/error.h"

enum { LOOK_MS = 10 };

int pipe_send(int pipe, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes > 0) {
        ssize_t sent = send(pipe, at, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return SL_ESTOPPED;
        at += sent;
        bytes -= (size_t)sent;
    }
    return 0;
}

/* poll calls a socket full that still takes a short report: so it is asked again and again. */
bool pipe_try(int pipe, const void *data, size_t bytes, int wait_ms) {
    struct pollfd room = {.fd = pipe, .events = POLLOUT};
    ssize_t sent = send(pipe, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (; sent < 0 && errno == EAGAIN && wait_ms > 0; wait_ms -= LOOK_MS) {
        poll(&room, 1, LOOK_MS);
        sent = send(pipe, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    return sent == (ssize_t)bytes;
}

int pipe_receive(int pipe, void *data, size_t bytes) {
    char *at = data;
    while (bytes > 0) {
        ssize_t got = recv(pipe, at, bytes, 0);
        if (got < 0 && errno == EINTR && !stop_requested)
            continue;
        if (got <= 0)
            return SL_ESTOPPED;
        at += got;
        bytes -= (size_t)got;
    }
    return 0;
}

ssize_t pipe_take(int pipe, void *data, size_t bytes) {
    ssize_t got = recv(pipe, data, bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    return got > 0 ? got : -1;
}
