/* sockets.h - this process's own TCP sockets, as the kernel sees them.
 *
 * libfabric's tcp provider says nothing of its sockets, nor of bytes of a message that is not
 * whole. Both can be seen from the descriptors, which are this process's.
 */
#ifndef SL_SOCKETS_H
#define SL_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/address.h"

typedef struct sl_socket {
    int fd;
    bool connected; /* else it is bound to a port only, or was connected */
    struct sockaddr_storage own, other;
} sl_socket;

/* Calls visit for each that has a port, until it returns true. */
void sl_sockets_visit(bool (*visit)(void *context, const sl_socket *s), void *context);

/* Bytes that the connection between these addresses has received; 0: there is none. */
uint64_t sl_socket_received(const struct sockaddr_storage *own,
                            const struct sockaddr_storage *other);

#endif
