/* rendezvous.h - a rendezvous: rank 0 hears from all where they listen, and tells all. */
#ifndef SL_RENDEZVOUS_H
#define SL_RENDEZVOUS_H

#include "launch/greeting.h"
#include "starling/error.h"

enum { SL_RENDEZVOUS_LOOK_MS = 50, SL_MASTER_ADDRESSES_MAX = 4, SL_RENDEZVOUS_PORTS_MAX = 9 };

typedef struct sl_rendezvous {
    uint32_t size;
    uint64_t run;
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
/* Is somebody told every few seconds, and is it time? */
bool sl_rendezvous_notice_is_due(const sl_rendezvous *rendezvous, double *last_s);

/* Rank 0's side. */
typedef struct sl_master sl_master;
/* Listens at the first port that is free, on this host alone or everywhere. */
int sl_master_open(sl_master **out, const sl_rendezvous *rendezvous, bool loopback,
                   sl_error *error);
/* Hears from all others, in at most timeout_s, and tells them the roster: a line HOST:PORT for each
 * rank, malloc'ed. host, port: where rank 0's own agent listens; "": at the address that the others
 * have reached. */
int sl_master_meet(sl_master *master, const char *host, uint16_t port, char **roster,
                   sl_error *error);
void sl_master_close(sl_master **master);

/* The others' side: looks for rank 0 at all addresses and ports at once, again and again; the
 * first that says welcome is it. */
int sl_member_meet(const sl_rendezvous *rendezvous, const sl_greeting *greeting, char **roster,
                   sl_error *error);

#endif
