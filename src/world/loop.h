/* loop.h - the agent's event loop, and what wakes it from another thread. Only loop.c includes
 * libevent's headers.
 *
 * libevent 2.1 has no prepare hook, so the agent owns the outer loop: it drains the fabric, then
 * makes one pass of this loop, blocking or not.
 */
#ifndef SL_LOOP_H
#define SL_LOOP_H

#include <stdbool.h>

#include "starling/error.h"

typedef struct sl_loop sl_loop;
typedef void (*sl_loop_handler)(void *context);

int sl_loop_open(sl_loop **out, sl_error *error);
void sl_loop_close(sl_loop **loop);
/* Calls the handler (NULL: just wake up) whenever fd is readable. */
int sl_loop_watch(sl_loop *loop, int fd, sl_loop_handler handler, void *context, sl_error *error);
/* Calls the handler every interval_ms. */
int sl_loop_tick(sl_loop *loop, int interval_ms, sl_loop_handler handler, void *context,
                 sl_error *error);
/* One pass over what is ready; blocks until something is, if asked to, at most limit_ms (0: no
 * limit). */
int sl_loop_pass(sl_loop *loop, bool block, int limit_ms, sl_error *error);

/* A descriptor that becomes readable when it is signalled. Negative: none is left. */
int sl_signal_open(void);
void sl_signal_close(int fd);
/* From any thread, and in a signal handler. */
void sl_signal_give(int fd);
/* It is not readable any more. */
void sl_signal_take(int fd);

#endif
