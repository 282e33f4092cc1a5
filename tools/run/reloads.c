/* reloads.c - see reloads.h. */
#include "run/reloads.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>

static sem_t asked;

static void ask(void) {
    sem_post(&asked);
}

void reloads_catch(void) {
    sem_init(&asked, 0, 0);
    catch_reload(ask);
}

/* Those that came while one was under way are one. */
static void wait_for_some(void) {
    while (sem_wait(&asked) != 0 && errno == EINTR)
        continue;
    while (sem_trywait(&asked) == 0)
        continue;
}

static void *run(void *context) {
    const reloads *r = context;
    char said[SL_AGENT_RELOAD_MAX];
    for (wait_for_some(); !r->over; wait_for_some())
        sl_agent_reload(r->agent, r->launch, said, NULL);
    return NULL;
}

/* Signals are for others. */
int reloads_open(reloads *out, sl_agent *agent, sl_launch *launch, sl_error *error) {
    sigset_t all, before;
    *out = (reloads){.agent = agent, .launch = launch};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    out->runs = pthread_create(&out->thread, NULL, run, out) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return out->runs ? 0 : sl_fail(error, SL_ENOMEM, "no thread could be started");
}

void reloads_close(reloads *r) {
    if (!r->runs)
        return;
    r->over = true;
    sem_post(&asked);
    pthread_join(r->thread, NULL);
    r->runs = false;
}
