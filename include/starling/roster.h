/* roster.h - host and port of every rank. */
#ifndef STARLING_ROSTER_H
#define STARLING_ROSTER_H

#include <stdint.h>
#include <sys/socket.h>

#include "starling/api.h"
#include "starling/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_roster sl_roster;
/* One line per rank, in order: "HOST:PORT" or "RANK HOST:PORT", where HOST is a name, an IPv4
 * address, or an IPv6 address in brackets; then maybe the fingerprint of that node's certificate,
 * "sha256:...", or "revoked": nobody may be that rank; empty lines and lines that begin with # are
 * skipped. No address may be there twice. Errors name file and line. */
SL_API int sl_roster_load(sl_roster **out, const char *path, sl_error *error);
SL_API int sl_roster_parse(sl_roster **out, const char *text, const char *where, sl_error *error);
/* Looks up all names, on a thread of its own: the first IPv4 address of each, or else its first
 * IPv6 address. Takes at most timeout_s, and ends soon with SL_ESTOPPED once *stop (may be NULL) is
 * not 0. SL_EINVAL: a host is unknown. sl_agent_run does it if nobody has. */
SL_API int sl_roster_resolve(sl_roster *roster, double timeout_s, const volatile int *stop,
                             sl_error *error);
/* Of a rank, with its port; ss_family is 0 until its name was looked up. */
SL_API struct sockaddr_storage sl_roster_address(const sl_roster *roster, uint32_t rank);
SL_API void sl_roster_close(sl_roster **roster);
SL_API uint32_t sl_roster_count(const sl_roster *roster);
SL_API const char *sl_roster_host(const sl_roster *roster, uint32_t rank);
/* Of the certificate that a rank has to show; "": the roster names none; "revoked". */
SL_API const char *sl_roster_fingerprint(const sl_roster *roster, uint32_t rank);
SL_API uint16_t sl_roster_port(const sl_roster *roster, uint32_t rank);

#ifdef __cplusplus
}
#endif
#endif
