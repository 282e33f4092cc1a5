/* listener.h - accepts at a listening socket, and leaves descriptors for others.
 *
 * Whoever can connect takes a descriptor. Where none is left, who waits is turned away by means of
 * one that is kept for it, and the socket is left alone for a while: else it would be readable for
 * ever, and its owner would try again and again. Some descriptors are a reserve, for what matters
 * more than strangers: files, and connections of the process's own.
 */
#ifndef SL_LISTENER_H
#define SL_LISTENER_H

#include <stdbool.h>
#include <sys/socket.h>

enum {
    SL_LISTENER_NOBODY = -1, /* waits */
    SL_LISTENER_FULL = -2,   /* no descriptor is left: who waited is turned away, and it rests */
};

typedef struct sl_listener {
    int fd;           /* listens, and does not block; borrowed */
    int spare;        /* kept for when no other is left; -1: none */
    unsigned reserve; /* descriptors that strangers leave free */
    double rests_until_s;
} sl_listener;

void sl_listener_open(sl_listener *l, int fd, unsigned reserve);
void sl_listener_close(sl_listener *l);
/* Is it time to look whether somebody waits? Else a loop does not watch the socket. */
bool sl_listener_listens(const sl_listener *l, double now_s);
void sl_listener_rest(sl_listener *l, double until_s);
/* Accepts one: its descriptor, which does not block and is closed on exec, or SL_LISTENER_*. */
int sl_listener_accept(sl_listener *l, struct sockaddr_storage *other, double now_s);
/* fd: of who has just come. Are fewer left than the reserve? Then a stranger has to go. */
bool sl_listener_is_short(const sl_listener *l, int fd);
/* Can so many (at most SL_LISTENER_LEFT_MAX) be opened now? libevent ends the process where it
 * finds none. */
enum { SL_LISTENER_LEFT_MAX = 16 };
bool sl_descriptors_left(unsigned count);

#endif
