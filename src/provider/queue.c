/* queue.c - what the fabric's queues will tell, and the sockets that it watches; see provider.h. */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "provider/state.h"

int sl_tcp_watch(fabric *f, int fd, watched *w) {
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = w};
    if (epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &e) == 0 ||
        (errno == EEXIST && epoll_ctl(f->epoll, EPOLL_CTL_MOD, fd, &e) == 0))
        return 0;
    return -errno;
}

/* A child that was forked meanwhile holds it still: that keeps no event, and no connection. */
void sl_tcp_close(fabric *f, int fd) {
    epoll_ctl(f->epoll, EPOLL_CTL_DEL, fd, &(struct epoll_event){0});
    shutdown(fd, SHUT_RDWR);
    close(fd);
}

void sl_tcp_complete(fabric *f, operation *o, int error) {
    o->error = error;
    append(&f->complete, o);
}

void sl_tcp_tell(fabric *f, event *e) {
    if (e->queued)
        return;
    e->queued = true;
    e->next = NULL;
    *(f->first_event == NULL ? &f->first_event : &f->last_event->next) = e;
    f->last_event = e;
}

void sl_tcp_forget(fabric *f, event *e) {
    event *before = NULL;
    for (event *at = f->first_event; at != NULL && e->queued; before = at, at = at->next) {
        if (at != e)
            continue;
        *(before == NULL ? &f->first_event : &before->next) = e->next;
        if (f->last_event == e)
            f->last_event = before;
        e->queued = false;
    }
}
