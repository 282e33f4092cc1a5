/* agent_report.c - messages between `starling run` and its agents; see agent_report.h. */
#include "run/agent_report.h"

#include <stdlib.h>
#include <string.h>

#include "run/pipe.h"

int report_send(int fd, const report *r, const float *x, size_t dimension) {
    int result = pipe_send(fd, r, sizeof *r);
    if (result == 0 && x != NULL)
        result = pipe_send(fd, x, dimension * sizeof *x);
    return result;
}

bool report_try(int fd, const report *r, int wait_ms) {
    return pipe_try(fd, r, sizeof *r, wait_ms);
}

int report_send_orders(int fd, const orders *told) {
    return pipe_send(fd, told, sizeof *told);
}

int report_wait_orders(int fd, orders *told, sl_error *error) {
    return pipe_receive(fd, told, sizeof *told) == 0
               ? 0
               : sl_fail(error, SL_ESTOPPED, "stopped before the run id came");
}

int report_send_key(int fd, const char key[SL_RUN_KEY_FILE_BYTES]) {
    return pipe_send(fd, key, SL_RUN_KEY_FILE_BYTES);
}

int report_wait_key(int fd, sl_credentials **credentials, sl_error *error) {
    char key[SL_RUN_KEY_FILE_BYTES];
    int result = pipe_receive(fd, key, sizeof key) == 0
                     ? sl_credentials_take_key(credentials, key, sizeof key, error)
                     : sl_fail(error, SL_ESTOPPED, "stopped before the run's key came");
    explicit_bzero(key, sizeof key);
    return result;
}

int report_wait_roster(int fd, char **text, sl_error *error) {
    uint32_t bytes;
    if (pipe_receive(fd, &bytes, sizeof bytes) != 0)
        return sl_fail(error, SL_ESTOPPED, "stopped before the roster came");
    if (bytes > ROSTER_BYTES_MAX)
        return sl_fail(error, SL_EPROTO, "report: a roster of %u bytes; at most %d are allowed",
                       bytes, ROSTER_BYTES_MAX);
    char *buffer = calloc(1, (size_t)bytes + 1);
    if (buffer == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for a roster of %u bytes", bytes);
    if (pipe_receive(fd, buffer, bytes) != 0) {
        free(buffer);
        return sl_fail(error, SL_ESTOPPED, "stopped before the roster came");
    }
    *text = buffer;
    return 0;
}

int report_send_roster(int fd, const char *text) {
    uint32_t bytes = (uint32_t)strlen(text);
    int result = pipe_send(fd, &bytes, sizeof bytes);
    return result != 0 ? result : pipe_send(fd, text, bytes);
}
