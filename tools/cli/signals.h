/* signals.h - the signals that ask a command to end, or to write a checkpoint. */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Non-zero once a signal has asked us to stop; signals are caught from the first call of
 * catch_signals on. SIGUSR1 is ignored. */
extern volatile sig_atomic_t stop_requested;
void catch_signals(void (*also)(void));
/* Before catch_signals: SIGHUP calls `reloads`, and does not ask to stop. */
void catch_reload(void (*reloads)(void));
/* The same, of an agent of `starling run`: a key at the terminal reaches all, and `run` decides.
 * Its word to end is another signal, as SIGHUP asks to read files again. */
enum { SIGNAL_END = SIGQUIT };
void catch_parent(void);
/* What a program that writes checkpoints is asked for. */
typedef enum save_wish {
    SAVE_GO_ON, /* SIGUSR1: a checkpoint */
    SAVE_END,   /* SIGUSR2: one, and to end after it, with all others of the run */
    SAVE_LEAVE  /* SIGTERM: likewise; an agent that the others can do without goes alone */
} save_wish;
/* These signals call `saves`. If that returns false, the last two ask to stop. */
void catch_saving(bool (*saves)(save_wish wish));

#endif
