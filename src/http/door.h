/* door.h - the listening socket of a server: in a folder, or at a port; see http.h. */
#ifndef SL_HTTP_DOOR_H
#define SL_HTTP_DOOR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "http/http.h"
#include "launch/resolver.h"

typedef struct sl_http_door {
    int folder, listener; /* descriptors; -1: none */
    char name[NAME_MAX + 1];
    char own_name[SL_HOST_MAX]; /* of this host, as requests name it; empty: any may do */
    bool bound;                 /* the name is a socket */
} sl_http_door;

/* Also after an error it is to be closed. */
int sl_http_door_open(sl_http_door *door, const sl_http_place *place, sl_error *error);
void sl_http_door_close(sl_http_door *door);

#endif
