/* door.c - see door.h.
 *
 * A name of an abstract socket belongs to a network name space, as ports do, is taken by one
 * process at once, and goes with it. So two rank 0 of equal greetings never listen at two ports,
 * from where their processes would go to either.
 */
#include "launch/door.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

static const double ask_s = 1;

/* 0: it is ours, or there are no such names; EADDRINUSE. */
static int take_name(int *out, uint64_t run) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1,
                                "starling rendezvous %016" PRIx64, run);
    const socklen_t bytes = (socklen_t)(sizeof name.sun_family + 1 + (size_t)length);
    *out = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*out < 0 || bind(*out, (const struct sockaddr *)&name, bytes) == 0)
        return 0;
    const int failure = errno;
    close(*out);
    *out = -1;
    return failure == EADDRINUSE ? EADDRINUSE : 0;
}

/* Whoever has the name says why this process is none of its own, unless it has just met all. */
static int ask(const sl_rendezvous *rendezvous, sl_error *error) {
    sl_rendezvous asks = *rendezvous;
    asks.timeout_s = ask_s;
    asks.notice = NULL;
    const sl_greeting greeting = sl_rendezvous_greeting(&asks, "", asks.ports_from);
    char *roster = NULL;
    const int result = sl_member_meet(&asks, &greeting, &roster, error);
    free(roster);
    return result;
}

int sl_door_open(int *out, const sl_rendezvous *rendezvous, sl_error *error) {
    const double until_s = sl_clock_seconds() + rendezvous->timeout_s;
    *out = -1;
    while (take_name(out, rendezvous->run) != 0) {
        const int result = ask(rendezvous, error);
        if (result == SL_EINVAL || result == SL_ESTOPPED || result == SL_ENOMEM)
            return result;
        if (sl_clock_seconds() > until_s)
            return sl_fail(error, SL_ENET,
                           "rank 0 of another job is about to wait at %s, and has not said for "
                           "whom within %g s: give this one a MASTER_PORT or a STARLING_RUN_ID of "
                           "its own",
                           rendezvous->where, rendezvous->timeout_s);
    }
    return 0;
}
