/* sockets.h - this process's own TCP sockets, as the kernel sees them.
 *
 * libfabric's tcp provider accepts every connection and waits for ever for the first bytes; when no
 * descriptor is left, it tries to accept again and again. It says nothing of either, nor of bytes
 * of a message that is not whole. All of that can be seen from the descriptors, which are this
 * process's. Providers without sockets have none of these troubles, and nothing is found.
 */
#ifndef SL_SOCKETS_H
#define SL_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

bool sl_address_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* Bytes that the connection between these addresses has received; 0: there is none. */
uint64_t sl_socket_received(const struct sockaddr_storage *own,
                            const struct sockaddr_storage *other);

enum { SL_SILENT_MAX = 64 };

/* Who connected to the listening port and has not greeted. */
typedef struct sl_doorway {
    uint16_t port;
    int listener; /* descriptor of the listening socket; -1: not found */
    int spare;    /* kept for when no other is left; -1: none */
    bool paused;  /* new connections wait in the kernel */
    double looked_s;
    struct {
        struct sockaddr_storage other;
        double seen_s;
    } silent[SL_SILENT_MAX];
    size_t silent_count;
} sl_doorway;

void sl_doorway_open(sl_doorway *d, uint16_t port);
void sl_doorway_close(sl_doorway *d);
/* Ends silent connections after some seconds, or at once where there are too many; stops accepting
 * while descriptors are short. greeted(context, other): does this peer have a connection? Returns
 * how many were ended. To be called often: it looks when it is time to. */
size_t sl_doorway_tick(sl_doorway *d, double now_s,
                       bool (*greeted)(void *context, const struct sockaddr_storage *other),
                       void *context);

#endif
