/* death.c - see death.h. */
#include "run/death.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static void tell_signal(const death *d, sl_error *out) {
    const int number = WTERMSIG(d->status);
    if (d->stopped)
        sl_fail(out, SL_EPEER, "was stopped by a signal and did not go on; ended with SIGKILL");
    else if (d->killed && !d->began)
        sl_fail(out, SL_EPEER, "was ended, because the run failed before it began");
    else if (d->killed)
        sl_fail(out, SL_EPEER, "did not end in time; ended with SIGKILL");
    else
        sl_fail(out, SL_EPEER, "killed by signal %d (%s)%s", number, strsignal(number),
                d->starved && number == SIGKILL
                    ? ", probably by the kernel, which was out of memory in this run; starling "
                      "check says how much the agents need"
                    : "");
}

void death_tell(const death *d, sl_error *out) {
    if (WIFSIGNALED(d->status))
        tell_signal(d, out);
    else if (d->ended)
        sl_fail(out, SL_EPEER, "trained to the end, and then ended with exit code %d",
                WEXITSTATUS(d->status));
    else
        sl_fail(out, SL_EPEER, "ended with exit code %d and said nothing", WEXITSTATUS(d->status));
}
