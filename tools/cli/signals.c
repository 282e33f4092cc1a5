/* signals.c - see signals.h. */
#include "cli/signals.h"

#include <stddef.h>

volatile sig_atomic_t stop_requested;
static void (*stop_hook)(void);

static void on_signal(int number) {
    (void)number;
    stop_requested++;
    if (stop_hook != NULL)
        stop_hook();
}

/* Without SA_RESTART, so that a wait ends. */
void catch_signals(void (*also)(void)) {
    stop_hook = also;
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGUSR1, &action, NULL);
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
