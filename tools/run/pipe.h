/* pipe.h - bytes between `starling run` and an agent, both ways. tests/world/ implements this
 * header once more. */
#ifndef PIPE_H
#define PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Sends all of it. Blocks. SL_ESTOPPED: the other end is closed. */
int pipe_send(int pipe, const void *data, size_t bytes);
/* Sends what is as short as a report, whole or not at all; waits for room at most wait_ms. */
bool pipe_try(int pipe, const void *data, size_t bytes, int wait_ms);
/* Receives as many. Blocks. SL_ESTOPPED: the other end is closed, or a signal asks to stop. */
int pipe_receive(int pipe, void *data, size_t bytes);
/* Receives what is there, at most so many; 0: nothing is now; negative: the other end is closed. */
ssize_t pipe_take(int pipe, void *data, size_t bytes);

#endif
