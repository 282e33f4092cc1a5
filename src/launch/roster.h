/* roster.h - what only the library may ask a roster; see starling/roster.h. */
#ifndef SL_ROSTER_H
#define SL_ROSTER_H

#include "launch/resolver.h"

#include "starling/roster.h"

/* As sl_roster_resolve; waits as it is told. */
int sl_roster_find_addresses(sl_roster *roster, const sl_lookup_wait *wait, sl_error *error);

/* A file, a list with commas, or a pattern with {rank}, whose names may not be known yet. Of
 * `count` ranks; a file or a list may name up to `joiners` more. Hosts without ports, as launchers
 * list them (hostfile.h), get a rank for each slot, at `port` and the next ones. */
int sl_roster_find(sl_roster **out, const char *what, uint32_t count, uint32_t joiners,
                   uint16_t port, sl_error *error);
/* Its lines may be of loopback beside those of other hosts, as where a host's name is 127.0.1.1 on
 * itself: there they say that it is this host. */
void sl_roster_be(sl_roster *roster, uint32_t rank);
/* Where this rank listens, as others do not find it at its own address; NULL: at its line's. After
 * it was looked up. */
const char *sl_roster_everywhere(const sl_roster *roster);
/* Of the places of the first `count` ranks, as they are written. */
uint64_t sl_roster_hash(const sl_roster *roster, uint32_t count);
/* The identity of the run that it is of; 0: none but what the agent was opened with. */
void sl_roster_name_run(sl_roster *roster, uint64_t run_id);
uint64_t sl_roster_run(const sl_roster *roster);
/* Nobody may be that rank: `revoked` stands in the place of its fingerprint. */
bool sl_roster_revokes(const sl_roster *roster, uint32_t rank);
/* For errors: the file, and the line of a rank that it has. */
const char *sl_roster_name(const sl_roster *roster);
int sl_roster_line(const sl_roster *roster, uint32_t rank);
/* ---- roster_change.c: fingerprints, and one that was read anew beside the one before ---- */

/* Each rank has to have one, or be revoked. */
int sl_roster_check_fingerprints(const sl_roster *roster, sl_error *error);

/* SL_EFILE: its lines have moved: a rank has a fingerprint that was another rank's. */
int sl_roster_check_change(const sl_roster *now, const sl_roster *before, sl_error *error);
/* "ranks 4, 5 are new; the certificate of rank 3 is another one", or that nothing is new. */
void sl_roster_tell_change(const sl_roster *now, const sl_roster *before, char *out, size_t bytes);

/* None of them is revoked, which says nothing where there are no certificates. */
int sl_roster_check_unrevoked(const sl_roster *roster, sl_error *error);
/* "HOST:PORT" or "[IPV6]:PORT"; where: for errors. */
int sl_place_parse(char host[SL_HOST_MAX], uint16_t *port, const char *text, unsigned port_min,
                   const char *where, sl_error *error);

#endif
