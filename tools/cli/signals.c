/* signals.c - see signals.h. */
#include "cli/signals.h"

#include <stddef.h>

volatile sig_atomic_t stop_requested;
static void (*stop_hook)(void), (*reload_hook)(void);
static bool has_parent;

static void on_signal(int number) {
    (void)number;
    stop_requested++;
    if (stop_hook != NULL)
        stop_hook();
}

static void on_reload(int number) {
    (void)number;
    reload_hook();
}

void catch_reload(void (*reloads)(void)) {
    reload_hook = reloads;
}

void catch_parent(void) {
    has_parent = true;
}

/* Without SA_RESTART, so that a wait ends. */
void catch_signals(void (*also)(void)) {
    stop_hook = also;
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(has_parent ? SIGNAL_END : SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    action.sa_handler = reload_hook != NULL ? on_reload : on_signal;
    sigaction(SIGHUP, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGUSR1, &action, NULL);
    if (has_parent)
        sigaction(SIGINT, &action, NULL);
}

static bool (*saving_hook)(save_wish wish);

static void on_saving(int number) {
    const save_wish wish = number == SIGUSR1   ? SAVE_GO_ON
                           : number == SIGUSR2 ? SAVE_END
                                               : SAVE_LEAVE;
    if (!saving_hook(wish) && wish != SAVE_GO_ON)
        on_signal(number);
}

void catch_saving(bool (*saves)(save_wish wish)) {
    saving_hook = saves;
    struct sigaction action = {.sa_handler = on_saving};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
}
