/* resolver.c - see resolver.h.
 *
 * getaddrinfo cannot be cancelled: a thread whose answer nobody waits for any more is left behind,
 * and frees what it used when it ends.
 */
#include "launch/resolver.h"

#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

enum { LOOK_MS = 50 };
static const double tell_every_s = 5;

/* What thread and waiter share; the last of both frees it. */
typedef struct job {
    pthread_mutex_t mutex;
    int users;
    bool abandoned;
    int done_fd; /* signalled when the thread ends */
    int failure; /* EAI_* of `at`; 0: none */
    size_t at;   /* being looked up */
    size_t count;
    sl_lookup lookups[];
} job;

bool sl_lookup_numeric(sl_lookup *l) {
    const bool is_numeric = sl_address_parse(&l->address, l->host);
    l->found = l->found || is_numeric;
    return is_numeric;
}

bool sl_host_is_any(const char *host) {
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

int sl_address_check_trust(const struct sockaddr_storage *address, const char *host, uint32_t rank,
                           bool trusted_network, sl_error *error) {
    if (trusted_network || (address != NULL && sl_address_is_loopback(address)))
        return 0;
    return sl_fail(
        error, SL_EINVAL,
        "agent %u would listen on %s, beyond loopback, and connections would be neither "
        "encrypted nor authenticated: make a key (`starling keys make -o run.key`), give "
        "it to all agents, and say \"security\": {\"key\": \"run.key\"}; or, if everybody "
        "on that network is trusted, \"security\": {\"mode\": \"none\", "
        "\"trusted_network\": true} (security.key, security.trusted_network)",
        rank, host);
}

static bool look_up(sl_lookup *l, int *failure) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    *failure = getaddrinfo(l->host, NULL, &hints, &found);
    const struct addrinfo *best = NULL;
    for (const struct addrinfo *a = found; a != NULL; a = a->ai_next)
        if (a->ai_family == AF_INET && (best == NULL || best->ai_family != AF_INET))
            best = a;
        else if (a->ai_family == AF_INET6 && best == NULL)
            best = a;
    if (best != NULL)
        memcpy(&l->address, best->ai_addr, best->ai_addrlen);
    else if (*failure == 0)
        *failure = EAI_NONAME;
    if (found != NULL)
        freeaddrinfo(found);
    return best != NULL;
}

static void leave(job *j) {
    pthread_mutex_lock(&j->mutex);
    int users = --j->users;
    pthread_mutex_unlock(&j->mutex);
    if (users > 0)
        return;
    pthread_mutex_destroy(&j->mutex);
    close(j->done_fd);
    free(j);
}

/* Takes the next host if there is one and somebody waits for it. */
static bool proceed(job *j, size_t i) {
    pthread_mutex_lock(&j->mutex);
    bool goes_on = !j->abandoned && i < j->count;
    if (goes_on)
        j->at = i;
    pthread_mutex_unlock(&j->mutex);
    return goes_on;
}

static void *work(void *argument) {
    job *j = argument;
    int failure = 0;
    bool asks_again = false;
    for (size_t i = 0; proceed(j, i) && (failure == 0 || asks_again);) {
        sl_lookup l = j->lookups[i];
        l.found = l.found || look_up(&l, &failure);
        pthread_mutex_lock(&j->mutex);
        j->lookups[i] = l;
        j->failure = l.found ? 0 : failure;
        pthread_mutex_unlock(&j->mutex);
        asks_again = failure == EAI_AGAIN || (failure == EAI_NONAME && l.may_come);
        if (l.found)
            i++, failure = 0;
        else if (asks_again)
            sleep(1);
    }
    eventfd_write(j->done_fd, 1);
    leave(j);
    return NULL;
}

/* Starts a thread with signals blocked, which are for the threads of the program. */
static job *start(const sl_lookup *lookups, size_t count) {
    job *j = calloc(1, sizeof *j + count * sizeof *lookups);
    if (j == NULL)
        return NULL;
    memcpy(j->lookups, lookups, count * sizeof *lookups);
    j->count = count;
    j->users = 2;
    pthread_mutex_init(&j->mutex, NULL);
    j->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = j->done_fd >= 0 && pthread_create(&thread, NULL, work, j) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started) {
        pthread_detach(thread);
        return j;
    }
    if (j->done_fd >= 0)
        close(j->done_fd);
    pthread_mutex_destroy(&j->mutex);
    free(j);
    return NULL;
}

static void tell_waiting(job *j, const sl_lookup_wait *wait, double left_s) {
    sl_error text;
    pthread_mutex_lock(&j->mutex);
    sl_fail(&text, 0,
            "waiting for the address of host '%s'; %.0f s left "
            "(transport.connect_timeout_s): %s",
            j->lookups[j->at].host, left_s,
            j->failure != 0 ? gai_strerror(j->failure) : "no name server has answered");
    pthread_mutex_unlock(&j->mutex);
    wait->notice(wait->context, text.text);
}

/* True when the thread has ended. */
static bool await(job *j, const sl_lookup_wait *wait, bool *stopped) {
    const double began_s = wait->began_s > 0 ? wait->began_s : sl_clock_seconds();
    const double until_s = began_s + wait->timeout_s;
    double told_s = sl_clock_seconds();
    while (!*stopped && sl_clock_seconds() < until_s) {
        struct pollfd watched[2] = {{.fd = j->done_fd, .events = POLLIN},
                                    {.fd = wait->stop_fd, .events = POLLIN}};
        poll(watched, 2, LOOK_MS);
        if (watched[0].revents != 0)
            return true;
        *stopped = watched[1].revents != 0 || (wait->stop != NULL && *wait->stop != 0);
        if (wait->notice != NULL && sl_clock_seconds() - told_s >= tell_every_s) {
            told_s = sl_clock_seconds();
            tell_waiting(j, wait, until_s - told_s);
        }
    }
    return false;
}

static int judge(const job *j, bool done, bool stopped, double timeout_s, sl_error *error) {
    const char *host = j->lookups[j->at].host;
    if (stopped)
        return sl_fail(error, SL_ESTOPPED, "stopped while host '%s' was looked up", host);
    if (!done)
        return sl_fail(error, SL_ENET,
                       "host '%s' was not found within %g s (transport.connect_timeout_s): %s",
                       host, timeout_s,
                       j->failure != 0 ? gai_strerror(j->failure) : "no name server answered");
    return j->failure == 0 ? 0
                           : sl_fail(error, SL_EINVAL, "host '%s' is unknown: %s", host,
                                     gai_strerror(j->failure));
}

int sl_lookup_all(sl_lookup *lookups, size_t count, const sl_lookup_wait *wait, sl_error *error) {
    bool numeric = true, stopped = false;
    for (size_t i = 0; i < count; i++)
        numeric = (lookups[i].found || sl_lookup_numeric(&lookups[i])) && numeric;
    if (numeric)
        return 0;
    job *j = start(lookups, count);
    if (j == NULL)
        return sl_fail(error, SL_ENOMEM, "no thread could be started to look up hosts");
    bool done = await(j, wait, &stopped);
    pthread_mutex_lock(&j->mutex);
    j->abandoned = true;
    int result = judge(j, done, stopped, wait->timeout_s, error);
    if (result == 0)
        memcpy(lookups, j->lookups, count * sizeof *lookups);
    pthread_mutex_unlock(&j->mutex);
    leave(j);
    return result;
}
