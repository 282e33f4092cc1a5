/* fuzz_report.c - what `starling run` reads from its agents. The input is a row of pieces, each of
 * an agent, in one of two forms: a report, of which the first bytes choose the type and the next
 * are laid over it somewhere; or bytes as they are. Handlers get texts that end and models of
 * agents that there are. */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/log.h"
#include "run/fleet.h"

enum { AGENTS = 3, DIMENSION = 4, RAW = 0xC0, PIECE_HEAD = 5 };

volatile sig_atomic_t stop_requested; /* of cli/tool.c */
double now_seconds(void) {
    return 0;
}
bool log_is_json(void) {
    return false;
}
void catch_signals(void (*also)(void)) {}
void catch_reload(void (*reloads)(void)) {}
void catch_saving(bool (*saves)(save_wish wish)) {}

static float models[AGENTS][DIMENSION];

static void on_round(void *context, uint32_t rank, uint64_t round) {
    assert(rank < AGENTS);
}

static float *on_model(void *context, uint32_t rank) {
    assert(rank < AGENTS);
    return models[rank];
}

static int on_report(void *context, uint32_t rank, const report *r) {
    assert(rank < AGENTS && (r->type == REPORT_RECORD || r->type == REPORT_PARAMETERS));
    return 0;
}

static bool on_ready(void *context, uint32_t rank) {
    return true;
}

static void on_failed(void *context, uint32_t rank, const sl_error *error) {
    assert(rank < AGENTS && memchr(error->text, '\0', sizeof error->text) != NULL);
}

static void on_notice(void *context, uint32_t rank, const char *text) {
    assert(rank < AGENTS && memchr(text, '\0', SL_ERROR_TEXT_MAX) != NULL);
}

static void on_tick(void *context) {}

static int on_lost(void *context, uint32_t rank, const sl_error *error) {
    return 0;
}

static void on_returned(void *context, uint32_t rank, uint64_t round) {}

static void on_restarted(void *context, uint32_t rank, const sl_error *why_not) {}

static const fleet_handlers handlers = {NULL,         on_round,  on_model, on_report,
                                        on_ready,     on_failed, on_lost,  on_returned,
                                        on_restarted, on_notice, on_tick};

static void send_bytes(int fd, const void *data, size_t bytes) {
    (void)!send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_report(int fd, uint8_t type, size_t offset, const uint8_t *data, size_t bytes) {
    const float x[DIMENSION] = {0};
    report r = {.type = type % (REPORT_FINISHED + 2u)};
    offset %= sizeof r;
    memcpy((char *)&r + offset, data, bytes < sizeof r - offset ? bytes : sizeof r - offset);
    send_bytes(fd, &r, sizeof r);
    if (r.type == REPORT_RECORD || r.type == REPORT_PARAMETERS)
        send_bytes(fd, x, sizeof x);
}

static void send_pieces(const int fds[AGENTS], const uint8_t *data, size_t size) {
    while (size >= PIECE_HEAD) {
        size_t bytes = data[4];
        if (bytes > size - PIECE_HEAD)
            bytes = size - PIECE_HEAD;
        if (data[1] >= RAW)
            send_bytes(fds[data[0] % AGENTS], data + PIECE_HEAD, bytes);
        else
            send_report(fds[data[0] % AGENTS], data[1], data[2] | (size_t)data[3] << 8,
                        data + PIECE_HEAD, bytes);
        data += PIECE_HEAD + bytes;
        size -= PIECE_HEAD + bytes;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fleet f;
    int fds[AGENTS];
    f = (fleet){.count = AGENTS, .dimension = DIMENSION, .handlers = &handlers};
    for (int i = 0; i < AGENTS; i++) {
        int pair[2];
        assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        f.members[i].child.pipe = pair[0];
        fds[i] = pair[1];
    }
    send_pieces(fds, data, size);
    for (int i = 0; i < AGENTS; i++)
        close(fds[i]);
    sl_error error;
    fleet_run(&f, &error);
    fleet_close(&f);
    return 0;
}
