/* agent_report.c - messages between `starling run` and its agents; see agent_report.h. */
#include "run/agent_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int send_all(int fd, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes > 0) {
        ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return SL_ESTOPPED;
        at += sent;
        bytes -= (size_t)sent;
    }
    return 0;
}

int report_send(int fd, const report *r, const float *x, size_t dimension) {
    int result = send_all(fd, r, sizeof *r);
    if (result == 0 && x != NULL)
        result = send_all(fd, x, dimension * sizeof *x);
    return result;
}

/* Messages of this size are sent whole or not at all. */
void report_try(int fd, const report *r) {
    (void)!send(fd, r, sizeof *r, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int receive_all(int fd, void *data, size_t bytes) {
    char *at = data;
    while (bytes > 0) {
        ssize_t got = recv(fd, at, bytes, 0);
        if (got < 0 && errno == EINTR && !stop_requested)
            continue;
        if (got <= 0)
            return SL_ESTOPPED;
        at += got;
        bytes -= (size_t)got;
    }
    return 0;
}

int report_send_run_id(int fd, uint64_t run_id) {
    return send_all(fd, &run_id, sizeof run_id);
}

int report_wait_run_id(int fd, uint64_t *run_id, sl_error *error) {
    return receive_all(fd, run_id, sizeof *run_id) == 0
               ? 0
               : sl_fail(error, SL_ESTOPPED, "stopped before the run id came");
}

int report_wait_roster(int fd, char **text, sl_error *error) {
    uint32_t bytes;
    if (receive_all(fd, &bytes, sizeof bytes) != 0)
        return sl_fail(error, SL_ESTOPPED, "stopped before the roster came");
    if (bytes > ROSTER_BYTES_MAX)
        return sl_fail(error, SL_EPROTO, "report: a roster of %u bytes; at most %d are allowed",
                       bytes, ROSTER_BYTES_MAX);
    char *buffer = calloc(1, (size_t)bytes + 1);
    if (buffer == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a roster of %u bytes", bytes);
    if (receive_all(fd, buffer, bytes) != 0) {
        free(buffer);
        return sl_fail(error, SL_ESTOPPED, "stopped before the roster came");
    }
    *text = buffer;
    return 0;
}

int report_send_roster(int fd, const char *text) {
    uint32_t bytes = (uint32_t)strlen(text);
    int result = send_all(fd, &bytes, sizeof bytes);
    return result != 0 ? result : send_all(fd, text, bytes);
}
