/* rendezvous.c - what both sides of a rendezvous use; see rendezvous.h. */
#include "launch/rendezvous.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "starling/version.h"

enum { TEXT_BYTES_MAX = 16 << 20, LINE_BYTES = SL_HOST_MAX + 16 };
static const double notice_every_s = 5;

size_t sl_rendezvous_text_max(const sl_rendezvous *m) {
    const size_t bytes = (size_t)m->size * LINE_BYTES + SL_ERROR_TEXT_MAX + SL_IDENTITY_BYTES;
    return bytes < TEXT_BYTES_MAX ? bytes : TEXT_BYTES_MAX;
}

bool sl_rendezvous_is_stopped(const sl_rendezvous *m) {
    return m->stop != NULL && *m->stop != 0;
}

sl_greeting sl_rendezvous_greeting(const sl_rendezvous *m, const char *host, uint16_t port) {
    sl_greeting greeting = {.protocol = SL_PROTOCOL_VERSION,
                            .rank = m->rank,
                            .size = m->size,
                            .run = m->run,
                            .nonce = m->nonce,
                            .port = port,
                            .origin = m->origin};
    strcpy(greeting.host, host);
    return greeting;
}

int sl_identity_write(char out[SL_IDENTITY_BYTES], uint64_t identity) {
    return snprintf(out, SL_IDENTITY_BYTES, "run %" PRIu64 "\n", identity);
}

const char *sl_identity_read(const char *roster, uint64_t *identity) {
    int length = 0;
    return sscanf(roster, "run %" SCNu64 "%n", identity, &length) == 1 && roster[length] == '\n'
               ? roster + length + 1
               : NULL;
}

bool sl_rendezvous_notice_is_due(const sl_rendezvous *m, double *last_s) {
    const double now_s = sl_clock_seconds();
    if (*last_s == 0)
        *last_s = now_s;
    const bool is_due = m->notice != NULL && now_s - *last_s >= notice_every_s;
    if (is_due)
        *last_s = now_s;
    return is_due;
}
