/* signals.h - the signals that ask a command to end, or to write a checkpoint. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Non-zero once a signal has asked us to stop; signals are caught from the first call of
 * catch_signals on. SIGUSR1 is ignored. */
extern volatile sig_atomic_t stop_requested;
void catch_signals(void (*also)(void));
/* Of programs that write checkpoints: SIGTERM and SIGUSR1 call `saves`, the first with true: to end
 * after the checkpoint. If that returns false, SIGTERM asks to stop. */
void catch_saving(bool (*saves)(bool leave));

#endif
