/* jobs.c - see jobs.h.
 *
 * Each process is a group of its own: a key at the terminal reaches this one only, and a signal
 * that asks to stop is passed on once, however it came.
 */
#include "compare/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/complain.h"
#include "cli/signals.h"

static void wake(int number) {
    (void)number;
}

void jobs_open(jobs *j, size_t slots) {
    sigset_t waited;
    *j = (jobs){.slots = slots, .signals_passed = stop_requested};
    struct sigaction action = {.sa_handler = wake};
    sigemptyset(&action.sa_mask);
    sigaction(SIGCHLD, &action, NULL);
    sigemptyset(&waited);
    sigaddset(&waited, SIGINT);
    sigaddset(&waited, SIGTERM);
    sigaddset(&waited, SIGHUP);
    sigaddset(&waited, SIGCHLD);
    sigprocmask(SIG_BLOCK, &waited, &j->before);
}

void jobs_close(jobs *j) {
    size_t number;
    int status;
    while (j->busy > 0)
        jobs_wait(j, &number, &status);
    sigprocmask(SIG_SETMASK, &j->before, NULL);
    signal(SIGCHLD, SIG_DFL);
}

static void become_worker(const jobs *j, pid_t parent) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it ended before the line above */
        _exit(TOOL_FAILED);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &j->before, NULL);
}

int jobs_start(jobs *j, size_t number, int (*work)(void *context, size_t number), void *context,
               sl_error *error) {
    size_t slot = 0;
    while (j->pids[slot] != 0)
        slot++;
    fflush(stdout);
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        become_worker(j, parent);
        const int code = work(context, number);
        fflush(stdout);
        _exit(code);
    }
    if (pid < 0)
        return sl_fail(error, SL_ENOMEM, "no process for a run: %s", strerror(errno));
    j->pids[slot] = pid;
    j->pieces[slot] = number;
    j->busy++;
    return 0;
}

static void pass_signals_on(jobs *j) {
    for (; j->signals_passed < stop_requested; j->signals_passed++)
        for (size_t i = 0; i < j->slots; i++)
            if (j->pids[i] != 0)
                kill(j->pids[i], SIGINT);
}

void jobs_wait(jobs *j, size_t *number, int *status) {
    for (;;) {
        pass_signals_on(j);
        for (size_t i = 0; i < j->slots; i++)
            if (j->pids[i] != 0 && waitpid(j->pids[i], status, WNOHANG) == j->pids[i]) {
                j->pids[i] = 0;
                j->busy--;
                *number = j->pieces[i];
                return;
            }
        sigsuspend(&j->before);
    }
}
