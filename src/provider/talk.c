/* talk.c - see provider.h: messages before there is a connection. They are small, and a socket that
 * is new has room for them: one that has none is of no use. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "provider/state.h"
#include "wire/bytes.h"

static size_t wanted(const talk *t) {
    return t->got < TALK_HEAD_BYTES ? TALK_HEAD_BYTES : TALK_HEAD_BYTES + sl_tcp_talk_bytes(t);
}

int sl_tcp_talk_read(talk *t, int fd) {
    while (t->got < wanted(t)) {
        const ssize_t n = recv(fd, t->message + t->got, wanted(t) - t->got, 0);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (n == 0)
            return -FI_ECONNABORTED;
        t->got += (size_t)n;
        if (t->got >= TALK_HEAD_BYTES && wanted(t) > sizeof t->message)
            return -EBADMSG;
    }
    return 1;
}

talk_kind sl_tcp_talk_heard(const talk *t) {
    return (talk_kind)t->message[0];
}

size_t sl_tcp_talk_bytes(const talk *t) {
    return get16(t->message + 1);
}

const uint8_t *sl_tcp_talk_payload(const talk *t) {
    return t->message + TALK_HEAD_BYTES;
}

void sl_tcp_talk_go_on(talk *t) {
    t->got = 0;
}

int sl_tcp_talk_say(int fd, talk_kind kind, const void *payload, size_t bytes) {
    uint8_t message[TALK_HEAD_BYTES + SL_PROOF_BYTES_MAX];
    message[0] = (uint8_t)kind;
    put16(message + 1, (uint16_t)bytes);
    if (bytes > 0)
        memcpy(message + TALK_HEAD_BYTES, payload, bytes);
    const ssize_t n = send(fd, message, TALK_HEAD_BYTES + bytes, MSG_NOSIGNAL);
    return n == (ssize_t)(TALK_HEAD_BYTES + bytes) ? 0 : n < 0 ? -errno : -FI_ENOBUFS;
}

int sl_tcp_talk_prove(const talk *t, int fd, talk_kind kind, const sl_gate *gate, bool dials) {
    uint8_t proof[SL_PROOF_BYTES_MAX];
    size_t bytes = 0;
    if (gate->proves) {
        bytes = gate->prove(gate->context, t->greeting, t->challenge, dials, proof);
        if (bytes == 0)
            return -FI_EKEYREJECTED;
    }
    return sl_tcp_talk_say(fd, kind, proof, bytes);
}
