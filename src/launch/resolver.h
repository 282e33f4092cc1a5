/* resolver.h - the addresses of hosts. Looking up a name may take long, so a thread does it. */
#ifndef SL_RESOLVER_H
#define SL_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/address.h"
#include "starling/error.h"

enum { SL_HOST_MAX = 256 };

typedef struct sl_lookup {
    char host[SL_HOST_MAX]; /* a name, or an IPv4 or IPv6 address */
    bool found;
    bool may_come; /* unknown today, it may be known in a second: it is asked for again */
    struct sockaddr_storage address; /* out: port 0 */
} sl_lookup;

/* Fills in a numeric address, without a thread; false: it is a name. */
bool sl_lookup_numeric(sl_lookup *lookup);
/* How to wait for names. */
typedef struct sl_lookup_wait {
    double timeout_s, began_s;                       /* since when; of sl_clock_seconds(); 0: now */
    int stop_fd;                                     /* ends soon once it is readable; -1: none */
    const volatile int *stop;                        /* or once it is not 0; may be NULL */
    void (*notice)(void *context, const char *text); /* which name fails; NULL: untold */
    void *context;
} sl_lookup_wait;
/* Looks up those that are not found yet: the first IPv4 address of a name, or else its first IPv6
 * address. SL_EINVAL: a host is unknown; SL_ENET: no answer in time;
 * SL_ESTOPPED. */
int sl_lookup_all(sl_lookup *lookups, size_t count, const sl_lookup_wait *wait, sl_error *error);
/* All addresses of a host, to listen on: "0.0.0.0" or "::". */
bool sl_host_is_any(const char *host);
/* Whoever reaches an agent can read the model and change it: beyond this host an agent listens only
 * on request. address: NULL if it is one of several hosts; host: as the user wrote it. */
int sl_address_check_trust(const struct sockaddr_storage *address, const char *host, uint32_t rank,
                           bool trusted_network, sl_error *error);

#endif
