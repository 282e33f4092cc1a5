/* child.c - see child.h. */
#include "run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/complain.h"
#include "cli/log.h"
#include "cli/signals.h"

/* The signals that ask a run to stop. They are blocked during fork: the child would run the
 * parent's handlers, which are not made for it. */
static sigset_t stopping_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGNAL_END);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    return set;
}

/* In the child: executes the agent. Uses async-signal-safe calls only. A signal to stop that
 * arrived meanwhile ends it here. Ctrl-C signals the whole group, and the parent decides about it.
 */
static void become_agent(char *const argv[], int fd, pid_t parent) {
    const sigset_t stopping = stopping_signals();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* the parent ended before the line above */
        _exit(TOOL_FAILED);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_IGN); /* until it has read anything */
    signal(SIGNAL_END, SIG_DFL);
    signal(SIGUSR2, SIG_DFL);
    signal(SIGUSR1, SIG_IGN); /* until it can write checkpoints */
    sigprocmask(SIG_UNBLOCK, &stopping, NULL);
    fcntl(fd, F_SETFD, 0);
    execv("/proc/self/exe", argv);
    _exit(127);
}

int child_start(child *out, uint32_t rank, bool joins, const char *path,
                const sl_checkpoints *checkpoints, sl_error *error) {
    const bool resumes = checkpoints->resume && !joins;
    int pair[2];
    *out = (child){.pipe = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return sl_fail(error, SL_ENET, "agent %u: no socket pair: %s", rank, strerror(errno));
    char config[SL_PATH_MAX + 16], rank_text[16], fd_text[16], round_text[24];
    snprintf(config, sizeof config, "%s/config.json", path);
    snprintf(round_text, sizeof round_text, "%" PRIu64, checkpoints->round);
    snprintf(rank_text, sizeof rank_text, "%u", rank);
    snprintf(fd_text, sizeof fd_text, "%d", pair[1]);
    char *const argv[] = {(char *)"starling",
                          (char *)"agent",
                          config,
                          (char *)"--log",
                          (char *)(log_is_json() ? "json" : "text"),
                          (char *)"--rank",
                          rank_text,
                          (char *)"--report-fd",
                          fd_text,
                          (char *)(resumes ? "--resume" : "--out"),
                          (char *)path,
                          joins     ? (char *)"--join"
                          : resumes ? (char *)"--resume-round"
                                    : NULL,
                          resumes ? round_text : NULL,
                          NULL};
    setenv("OPENBLAS_NUM_THREADS", "1", 1); /* an agent uses one; OpenBLAS would start more */
    const sigset_t stopping = stopping_signals();
    sigprocmask(SIG_BLOCK, &stopping, NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become_agent(argv, pair[1], parent);
    int why = errno;
    sigprocmask(SIG_UNBLOCK, &stopping, NULL);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return sl_fail(error, SL_ENOMEM, "agent %u: no process: %s", rank, strerror(why));
    }
    *out = (child){pid, pair[0]};
    return 0;
}

/* A leak sanitizer reads memory as a debugger does. */
unsigned long child_starved(void) {
    char line[128];
    unsigned long count = 0;
    FILE *file = fopen("/proc/vmstat", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "oom_kill %lu", &count) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return count;
}

void child_hide_memory(void) {
#ifndef __SANITIZE_ADDRESS__
    prctl(PR_SET_DUMPABLE, 0);
#endif
}

void child_signal(const child *c, int number) {
    if (c->pid > 0)
        kill(c->pid, number);
}

bool child_look(child *c, int *status) {
    if (c->pid == 0 || waitpid(c->pid, status, WNOHANG | WUNTRACED | WCONTINUED) != c->pid)
        return false;
    if (!WIFSTOPPED(*status) && !WIFCONTINUED(*status))
        c->pid = 0;
    return true;
}

void child_hang_up(child *c) {
    if (c->pipe >= 0)
        close(c->pipe);
    c->pipe = -1;
}

void child_close(child *c) {
    child_signal(c, SIGKILL);
    while (c->pid > 0 && waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    c->pid = 0;
    child_hang_up(c);
}

void children_wait(const int *pipes, bool *ready, uint32_t count, int wait_ms) {
    struct pollfd watched[CHILDREN_MAX];
    for (uint32_t i = 0; i < count; i++)
        watched[i] = (struct pollfd){.fd = pipes[i], .events = POLLIN};
    const int found = poll(watched, count, wait_ms);
    for (uint32_t i = 0; i < count; i++)
        ready[i] = found > 0 && watched[i].revents != 0;
}
