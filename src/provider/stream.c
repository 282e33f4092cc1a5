/* stream.c - messages over a connection, to its end; see provider.h.
 *
 * What comes is read into a stage of one page until a message's head is whole. The rest of the
 * message goes straight to where it was posted, and what lies behind it to the stage: a long
 * message and the head of the next one take one call. What is sent leaves from where it lies.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider/state.h"
#include "wire/frame.h"

/* A shorter message waits for those that follow: the fabric's next look sends them together. */
enum { PIECES_MAX = 16, LONG_BYTES = 256 };

static endpoint *endpoint_of(struct fid_ep *fid) {
    return HOLDER(fid, endpoint, fid);
}

/* ---- its end ---- */

void sl_tcp_stream_stop(endpoint *e) {
    if (e->fd >= 0)
        sl_tcp_close(e->fabric, e->fd);
    e->fd = -1;
    free(e->talk);
    e->talk = NULL;
}

static void fail_all(endpoint *e, operations *list, int error) {
    while (list->first != NULL)
        sl_tcp_complete(e->fabric, take_first(list), error);
}

void sl_tcp_stream_end(endpoint *e, int error, const char *why) {
    if (e->state == OVER)
        return;
    const bool was_open = e->state == OPEN && !e->connected.queued;
    sl_tcp_forget(e->fabric, &e->connected);
    e->state = OVER;
    sl_tcp_stream_stop(e);
    if (e->receiving != NULL)
        sl_tcp_complete(e->fabric, e->receiving, error != 0 ? error : FI_ECANCELED);
    e->receiving = NULL;
    fail_all(e, &e->sends, error != 0 && was_open ? error : FI_ECANCELED);
    fail_all(e, &e->receives, error != 0 && was_open ? error : FI_ECANCELED);
    snprintf(e->why, sizeof e->why, "%s", why != NULL ? why : "");
    e->ended.kind = was_open ? FI_SHUTDOWN : 0;
    e->ended.error = error != 0 ? error : FI_ECONNABORTED;
    sl_tcp_tell(e->fabric, &e->ended);
}

/* ---- pieces ---- */

/* The part of a message that is neither sent nor received yet. Returns its pieces. */
static int rest_of(const operation *o, struct iovec out[2]) {
    size_t skip = o->done, left = o->bytes - o->done;
    int count = 0;
    for (int i = 0; i < 2 && left > 0; i++) {
        if (skip >= o->iov[i].iov_len) {
            skip -= o->iov[i].iov_len;
            continue;
        }
        const size_t here = o->iov[i].iov_len - skip < left ? o->iov[i].iov_len - skip : left;
        out[count++] = (struct iovec){(uint8_t *)o->iov[i].iov_base + skip, here};
        left -= here;
        skip = 0;
    }
    return count;
}

/* ---- receiving ---- */

/* False: nothing more can be read now. A call that got less than it asked for has emptied the
 * socket, unless its end is there. */
static bool take_result(endpoint *e, ssize_t n, size_t asked) {
    if (n == 0)
        sl_tcp_stream_end(e, 0, NULL);
    else if (n < 0 && errno == EAGAIN)
        e->readable = false;
    else if (n < 0 && errno != EINTR)
        sl_tcp_stream_end(e, errno, NULL);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    e->received += (size_t)n;
    e->readable = (size_t)n == asked || e->hung;
    return true;
}

static bool fill_stage(endpoint *e) {
    const size_t kept = e->stage_to - e->stage_from, room = STAGE_BYTES - kept;
    if (!e->readable)
        return false;
    memmove(e->stage, e->stage + e->stage_from, kept);
    e->stage_from = 0;
    e->stage_to = kept;
    const ssize_t n = recv(e->fd, e->stage + kept, room, 0);
    if (!take_result(e, n, room))
        return false;
    e->stage_to += n > 0 ? (size_t)n : 0;
    return true;
}

/* The next message gets the oldest receive, if there is one. */
static bool begin_message(endpoint *e) {
    if (e->receives.first == NULL)
        return false;
    const size_t bytes = sl_frame_bytes(e->stage + e->stage_from);
    if (bytes == 0 || bytes > e->receives.first->bytes) {
        sl_tcp_stream_end(e, bytes == 0 ? EBADMSG : FI_ETRUNC, NULL);
        return false;
    }
    e->receiving = take_first(&e->receives);
    e->receiving->bytes = bytes;
    e->receiving->done = 0;
    return true;
}

static void copy_staged(endpoint *e) {
    operation *o = e->receiving;
    struct iovec pieces[2];
    const int count = rest_of(o, pieces);
    for (int i = 0; i < count; i++) {
        const size_t staged = e->stage_to - e->stage_from;
        const size_t here = staged < pieces[i].iov_len ? staged : pieces[i].iov_len;
        memcpy(pieces[i].iov_base, e->stage + e->stage_from, here);
        e->stage_from += here;
        o->done += here;
    }
}

/* The stage is empty. */
static bool read_rest(endpoint *e) {
    operation *o = e->receiving;
    struct iovec pieces[3];
    if (!e->readable)
        return false;
    int count = rest_of(o, pieces);
    pieces[count++] = (struct iovec){e->stage, STAGE_BYTES};
    const size_t left = o->bytes - o->done;
    const ssize_t n = readv(e->fd, pieces, count);
    e->stage_from = e->stage_to = 0;
    if (!take_result(e, n, left + STAGE_BYTES))
        return false;
    const size_t got = n > 0 ? (size_t)n : 0;
    o->done += got < left ? got : left;
    e->stage_to = got > left ? got - left : 0;
    return true;
}

static bool go_on_receiving(endpoint *e) {
    if (e->receiving == NULL) {
        if (e->stage_to - e->stage_from < SL_FRAME_HEADER_BYTES)
            return fill_stage(e);
        if (!begin_message(e))
            return false;
        copy_staged(e);
    } else if (!read_rest(e)) {
        return false;
    }
    if (e->receiving->done == e->receiving->bytes) {
        sl_tcp_complete(e->fabric, e->receiving, 0);
        e->receiving = NULL;
    }
    return true;
}

/* ---- sending ---- */

static int collect(const endpoint *e, struct iovec pieces[PIECES_MAX]) {
    int count = 0;
    for (const operation *o = e->sends.first; o != NULL && count + 2 <= PIECES_MAX; o = o->next)
        count += rest_of(o, pieces + count);
    return count;
}

static void count_sent(endpoint *e, size_t n) {
    while (e->sends.first != NULL) {
        operation *o = e->sends.first;
        const size_t left = o->bytes - o->done, here = n < left ? n : left;
        o->done += here;
        n -= here;
        if (o->done < o->bytes)
            return;
        sl_tcp_complete(e->fabric, take_first(&e->sends), 0);
    }
}

void sl_tcp_stream_send(endpoint *e) {
    while (e->state == OPEN && e->writable && e->sends.first != NULL) {
        struct iovec pieces[PIECES_MAX];
        const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)collect(e, pieces)};
        const ssize_t n = sendmsg(e->fd, &message, MSG_NOSIGNAL);
        if (n >= 0)
            count_sent(e, (size_t)n);
        else if (errno == EAGAIN)
            e->writable = false;
        else if (errno != EINTR)
            sl_tcp_stream_end(e, errno, NULL);
    }
}

void sl_tcp_stream_go_on(endpoint *e) {
    sl_tcp_stream_send(e);
    while (e->state == OPEN && !e->connected.queued && go_on_receiving(e))
        continue;
}

static void be_looked_at(endpoint *e) {
    if (e->is_ready)
        return;
    e->is_ready = true;
    e->next_ready = e->fabric->ready;
    e->fabric->ready = e;
}

void sl_tcp_stream_ready(endpoint *e) {
    if (e->state == OPEN && (e->readable || e->stage_to != e->stage_from))
        be_looked_at(e);
}

/* ---- libfabric's calls ---- */

static operation *take(const struct fi_msg *m, bool receives) {
    operation *o = m->context;
    *o = (operation){.receives = receives};
    for (size_t i = 0; i < m->iov_count && i < 2; i++) {
        o->iov[i] = m->msg_iov[i];
        o->bytes += m->msg_iov[i].iov_len;
    }
    return o;
}

static ssize_t post_receive(struct fid_ep *fid, const struct fi_msg *m, uint64_t flags) {
    endpoint *e = endpoint_of(fid);
    (void)flags;
    if (e->state == OVER)
        return -FI_ENOTCONN;
    append(&e->receives, take(m, true));
    sl_tcp_stream_ready(e);
    return 0;
}

static ssize_t post_send(struct fid_ep *fid, const struct fi_msg *m, uint64_t flags) {
    endpoint *e = endpoint_of(fid);
    (void)flags;
    if (e->state != OPEN)
        return e->state == OVER ? -FI_ENOTCONN : -FI_EAGAIN;
    operation *o = take(m, false);
    append(&e->sends, o);
    if (o->bytes < LONG_BYTES)
        be_looked_at(e);
    else
        sl_tcp_stream_send(e);
    return 0;
}

const struct fi_ops_msg sl_tcp_stream_ops = {
    .size = sizeof(struct fi_ops_msg), .recvmsg = post_receive, .sendmsg = post_send};
