/* asking.h - what agents say of themselves, through their sockets in a run folder, or at a port:
 * the JSON of starling/monitor.h. */
#ifndef STARLING_ASKING_H
#define STARLING_ASKING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "starling/api.h"
#include "starling/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The socket of a rank, in the folder: "status-5.sock". */
#define SL_MONITOR_NAME_MAX 32
SL_API void sl_monitor_name(char out[SL_MONITOR_NAME_MAX], uint32_t rank);

/* An agent that has a socket in the folder. */
typedef struct sl_asked {
    uint32_t rank;
    pid_t pid;  /* of who listens there; 0: that is not known, as at a port */
    char *said; /* JSON, as in starling/monitor.h; NULL: nothing in time */
} sl_asked;

/* Where an agent answers that may have no socket in the folder. */
typedef struct sl_asked_port {
    uint32_t rank;
    struct sockaddr_storage address;
} sl_asked_port;

/* Asks all at once, for at most patience_s, those at ports (port_count) too. Left out is who has
 * ended, and who does not answer at a port. *out (*count) is by rank, then ports, to be freed with
 * sl_asked_free. SL_EFILE: the folder cannot be read. */
SL_API int sl_ask_folder(sl_asked **out, size_t *count, const char *folder,
                         const sl_asked_port *ports, size_t port_count, double patience_s,
                         sl_error *error);
/* The same of the one agent at HOST:PORT; also another of its pages, as "/board" beside "/status",
 * where there is one. SL_EINVAL: that is none, or the host is unknown. */
SL_API int sl_ask_place(sl_asked **out, size_t *count, const char *place, const char *path,
                        double patience_s, sl_error *error);
SL_API void sl_asked_free(sl_asked *all, size_t count);

#ifdef __cplusplus
}
#endif
#endif
