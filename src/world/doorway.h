/* doorway.h - who connects to the listening port and has not greeted.
 *
 * libfabric's tcp provider accepts everybody, waits for ever for the first bytes, and says nothing
 * of it. It reads what comes with calls that block: who sends half a request stops the process.
 * When no descriptor is left, it tries to accept again and again. So the port's socket is set up
 * before it listens. What is set is inherited by the connections that come:
 *   - the kernel keeps who says nothing for some seconds, before the provider sees him;
 *   - the provider is told of a request when all that it may read is there;
 *   - a read waits for no longer than the kernel's clock ticks.
 * A connection keeps the mark of this, a least number of bytes, until it is let in: so who has it
 * has not greeted. Those are counted often enough that the provider holds few, and ended in time.
 * Providers without sockets have none of these troubles, and nothing is found.
 */
#ifndef SL_DOORWAY_H
#define SL_DOORWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    SL_DOORWAY_GREETING_BYTES = 256, /* all that the tcp provider can send with a request */
    SL_SILENT_MAX = 64,              /* at a time, and fewer of one address, unless it is here */
    SL_SILENT_OF_ADDRESS_MAX = 4,
    SL_DOORWAY_LOOKS = 32, /* of the provider, each of which accepts one, between two counts */
    SL_DOORWAY_PLACES = SL_SILENT_MAX + 4 * SL_DOORWAY_LOOKS
};

typedef struct sl_silent {
    int fd;
    struct sockaddr_storage other;
    double seen_s; /* first */
    uint64_t look; /* the first at which he was seen */
} sl_silent;

typedef struct sl_doorway {
    struct sockaddr_storage own;
    int listener;     /* descriptor of the listening socket; -1: not found */
    int spare;        /* kept for when no other is left; -1: none */
    unsigned reserve; /* descriptors that strangers leave free */
    bool paused;      /* new connections wait in the kernel */
    double now_s, looked_s;
    uint64_t look; /* this, or the last: their number */
    unsigned looks;
    int crowded_from; /* where this is the lowest descriptor that is free, it is time to look */
    sl_silent silent[SL_DOORWAY_PLACES];
    size_t silent_count;
    size_t ended; /* and not told of */
} sl_doorway;

/* When the socket is bound to its address, and does not listen. */
void sl_doorway_open(sl_doorway *d, const struct sockaddr_storage *own, unsigned reserve);
void sl_doorway_close(sl_doorway *d);
/* Has it a socket? Then requests have to hold SL_DOORWAY_GREETING_BYTES. */
bool sl_doorway_is_used(const sl_doorway *d);
/* Whoever is at this address has greeted: false, if there is nobody. */
bool sl_doorway_let_in(sl_doorway *d, const struct sockaddr_storage *other);
/* To be called after each look of the provider: counts, where it is time to. */
void sl_doorway_count(sl_doorway *d);
/* Ends who has been silent for some seconds; stops accepting while no descriptor is left. Returns
 * how many were ended since the last call. To be called often: it looks when it is time to. */
size_t sl_doorway_tick(sl_doorway *d, double now_s);
/* Nobody comes in any more, and who has not greeted is ended. Returns how many the provider holds
 * that are not let in; with each of its looks it lets go of some. */
size_t sl_doorway_shut(sl_doorway *d);

#endif
