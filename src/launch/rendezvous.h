/* rendezvous.h - a rendezvous: rank 0 hears from all where they listen, and tells all. */
#ifndef SL_RENDEZVOUS_H
#define SL_RENDEZVOUS_H

#include "launch/greeting.h"
#include "starling/error.h"

enum {
    SL_RENDEZVOUS_LOOK_MS = 50,
    SL_MASTER_ADDRESSES_MAX = 4,
    SL_RENDEZVOUS_PORTS_MAX = 9,
    SL_IDENTITY_BYTES = 32, /* the first line of a roster that is told, at most */
};

typedef struct sl_rendezvous {
    uint32_t rank, size;
    uint64_t run;   /* equal in all processes of one job */
    bool is_named;  /* and in those of no other */
    uint64_t nonce; /* of this process */
    sl_origin origin;
    double age_s; /* of this process, as it began to look */
    struct sockaddr_storage
        addresses[SL_MASTER_ADDRESSES_MAX]; /* (address_count) where rank 0 may be */
    uint32_t address_count;
    uint16_t ports_from, ports_to; /* one of which it takes */
    char where[SL_HOST_MAX + 128]; /* the same for messages */
    double timeout_s;
    const volatile int *stop;
    void (*notice)(void *context, const char *text);
    void *context;
} sl_rendezvous;

/* The longest text of a roster. */
size_t sl_rendezvous_text_max(const sl_rendezvous *rendezvous);
bool sl_rendezvous_is_stopped(const sl_rendezvous *rendezvous);
/* What this process says to rank 0; port: where its agent listens, at `host`. */
sl_greeting sl_rendezvous_greeting(const sl_rendezvous *rendezvous, const char *host,
                                   uint16_t port);
/* Is somebody told every few seconds, and is it time? */
bool sl_rendezvous_notice_is_due(const sl_rendezvous *rendezvous, double *last_s);

/* Rank 0's side. */
typedef struct sl_master sl_master;
/* Listens at the first port that is free, on this host alone or everywhere. SL_EINVAL: another job
 * that calls itself as this one does waits here. */
int sl_master_open(sl_master **out, const sl_rendezvous *rendezvous, bool loopback,
                   sl_error *error);
/* Hears from all others, in at most timeout_s, and tells them the roster: the run's identity, which
 * is drawn here, and a line HOST:PORT for each rank; malloc'ed. host, port: where rank 0's own
 * agent listens; "": at the address that the others have reached. */
int sl_master_meet(sl_master *master, const char *host, uint16_t port, char **roster,
                   sl_error *error);
/* The line of the identity, and its length; and the other way: the rest of the text, or NULL, if it
 * does not begin with such a line. */
int sl_identity_write(char out[SL_IDENTITY_BYTES], uint64_t identity);
const char *sl_identity_read(const char *roster, uint64_t *identity);
void sl_master_close(sl_master **master);

/* The others' side: looks for rank 0 at all addresses and ports at once, again and again; the
 * first that says welcome is it. SL_EINVAL: it says why this process is not one of its own. */
int sl_member_meet(const sl_rendezvous *rendezvous, const sl_greeting *greeting, char **roster,
                   sl_error *error);

#endif
