/* answer.h - what a server says, as bytes. */
#ifndef SL_HTTP_ANSWER_H
#define SL_HTTP_ANSWER_H

#include <stdbool.h>

#include "http/http.h"

/* Beside those of request.h. */
enum { SL_ANSWER_UNKNOWN = 404, SL_ANSWER_MEMORY = 500, SL_ANSWER_FULL = 503 };

/* The sentence of a refusal; of SL_ANSWER_UNKNOWN, another one is better. */
sl_http_answer sl_http_refusal(int status);
/* Appends head and body, which then is the buffer's; of a stream, the head alone. False: out of
 * memory, and the body is freed. */
bool sl_http_answer_append(struct evbuffer *out, const sl_http_answer *answer, bool head_only);
bool sl_http_stream_append(struct evbuffer *out);

#endif
