/* request.h - the head of an HTTP request, as anybody may send it.
 *
 * Nothing is written: so of a request matter its method, its path, and which host it means. A
 * browser that was misled by a name server sends a name of its own there, and is refused: else any
 * web page could read what is said on loopback.
 */
#ifndef SL_HTTP_REQUEST_H
#define SL_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

enum {
    SL_REQUEST_BYTES_MAX = 4096,
    /* what a request comes to: 0, or an HTTP status */
    SL_REQUEST_UNFINISHED = 0,
    SL_REQUEST_OK = 200,
    SL_REQUEST_BAD = 400,
    SL_REQUEST_FOREIGN = 403, /* it means another host */
    SL_REQUEST_WRITES = 405,
    SL_REQUEST_HAS_BODY = 413,
    SL_REQUEST_LONG = 431,
    SL_REQUEST_VERSION = 505
};

typedef struct sl_request {
    const char *bytes; /* (count) that have come */
    size_t count;
    const char *host; /* the name of this one, beside addresses and localhost; NULL: any may do */
} sl_request;

/* What it is after; places in its bytes. */
typedef struct sl_wanted {
    size_t path, path_bytes, query, query_bytes; /* query: what follows a '?' */
    bool head_only;                              /* the answer is to have no body */
} sl_wanted;

/* What follows the head is not looked at. *asked: of SL_REQUEST_OK; head_only of all that has come
 * whole. */
int sl_request_judge(const sl_request *request, sl_wanted *asked);

#endif
