/* fleet.c - the agent processes of `starling run`; see fleet.h. */
#include "run/fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long after the agents' own deadlines they are killed. */
#define GRACE_SECONDS 5.0
enum { TICK_MS = 100, REAP_MS = 5 };

/* The signals that ask a run to stop. They are blocked during fork: the child would run the
 * parent's handlers, which are not made for it. */
static sigset_t stopping_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
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
    signal(SIGHUP, SIG_DFL);
    signal(SIGUSR1, SIG_IGN); /* until it can write checkpoints */
    sigprocmask(SIG_UNBLOCK, &stopping, NULL);
    fcntl(fd, F_SETFD, 0);
    execv("/proc/self/exe", argv);
    _exit(127);
}

static int start_member(fleet *f, uint32_t rank, const char *path,
                        const sl_checkpoints *checkpoints, sl_error *error) {
    int pair[2];
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
                          (char *)"--rank",
                          rank_text,
                          (char *)"--report-fd",
                          fd_text,
                          (char *)(checkpoints->resume ? "--resume" : "--out"),
                          (char *)path,
                          checkpoints->resume ? (char *)"--resume-round" : NULL,
                          round_text,
                          NULL};
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
    f->members[rank].pid = pid;
    f->members[rank].fd = pair[0];
    report_send_run_id(pair[0], checkpoints->run_id); /* fleet_run notices later that it is gone */
    return 0;
}

/* Of the signal handler, which the loop reads. */
static volatile sig_atomic_t leave_requested, save_requested;

static bool note_saving(bool leave) {
    if (leave)
        leave_requested++;
    else
        save_requested++;
    return true;
}

int fleet_open(fleet *out, const trial *t, const char *path, const sl_checkpoints *checkpoints,
               const fleet_handlers *handlers, sl_error *error) {
    const sl_experiment *experiment = t->experiment;
    fleet *f = out;
    *f = (fleet){.count = t->nodes, .dimension = t->task.dimension, .handlers = handlers};
    f->saves = experiment->checkpoint.every > 0;
    f->timeout_s = experiment->transport.timeout_s;
    f->connect_timeout_s = experiment->transport.connect_timeout_s;
    for (uint32_t i = 0; i < FLEET_MAX; i++)
        f->members[i].fd = -1;
    setenv("OPENBLAS_NUM_THREADS", "1",
           1); /* an agent uses one thread; OpenBLAS would start more */
    int result = 0;
    for (uint32_t i = 0; i < f->count && result == 0; i++)
        result = start_member(f, i, path, checkpoints, error);
    if (result != 0)
        fleet_close(f);
    return result;
}

static void signal_all(const fleet *f, int number) {
    for (uint32_t i = 0; i < f->count; i++)
        if (f->members[i].pid > 0)
            kill(f->members[i].pid, number);
}

void fleet_close(fleet *f) {
    signal_all(f, SIGKILL);
    for (uint32_t i = 0; i < f->count; i++) {
        fleet_member *m = &f->members[i];
        while (m->pid > 0 && waitpid(m->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        m->pid = 0;
        if (m->fd >= 0)
            close(m->fd);
        m->fd = -1;
    }
}

static void kill_within(fleet *f, double seconds) {
    double at = now_seconds() + seconds;
    if (f->kill_at == 0 || at < f->kill_at)
        f->kill_at = at;
}

/* Have all agents begun a round? Then none still waits for a neighbour to connect. */
static bool all_train(const fleet *f) {
    for (uint32_t i = 0; i < f->count; i++)
        if (!f->members[i].trains)
            return false;
    return true;
}

/* Called when the run can no longer succeed. */
static void run_failed(fleet *f) {
    f->failed = true;
    /* Before the roster is sent, no agent waits for another. While they connect, each waits for up
     * to the longer time. */
    double patience = all_train(f) ? f->timeout_s : fmax(f->timeout_s, f->connect_timeout_s);
    kill_within(f, f->roster_sent ? patience + GRACE_SECONDS : 0);
}

static void member_failed(fleet *f, uint32_t rank, const sl_error *error) {
    fleet_member *m = &f->members[rank];
    run_failed(f);
    if (!m->complained && !f->interrupted && error->code != SL_ESTOPPED)
        f->handlers->failed(f->handlers->context, rank, error);
    m->complained = true;
}

static void send_roster_if_complete(fleet *f) {
    for (uint32_t i = 0; i < f->count; i++)
        if (f->members[i].port == 0)
            return;
    char text[FLEET_MAX * 24] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < f->count; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "127.0.0.1:%u\n", f->members[i].port);
    for (uint32_t i = 0; i < f->count; i++)
        report_send_roster(f->members[i].fd, text); /* fleet_run notices later who is gone */
    f->roster_sent = true;
    if (!f->interrupted)
        f->kill_at = 0;
}

static bool carries_model(const report *r) {
    return r->type == REPORT_RECORD || r->type == REPORT_PARAMETERS;
}

static void note_saved(fleet *f, const sl_error *how) {
    f->saved++;
    f->saved_how = *how;
}

static int take_report(fleet *f, uint32_t rank) {
    fleet_member *m = &f->members[rank];
    const report *r = &m->report;
    const fleet_handlers *h = f->handlers;
    m->got = 0;
    m->report.error.text[sizeof m->report.error.text - 1] = '\0';
    switch ((report_type)r->type) {
    case REPORT_LISTENING:
        m->port = r->port;
        if (!f->roster_sent && !f->failed)
            send_roster_if_complete(f);
        return 0;
    case REPORT_ROUND:
        m->trains = true;
        h->round(h->context, rank, r->round);
        return 0;
    case REPORT_RECORD:
    case REPORT_PARAMETERS:
        return h->report(h->context, rank, r);
    case REPORT_NOTICE:
        h->notice(h->context, rank, r->error.text);
        return 0;
    case REPORT_FAILED:
        m->ended = true;
        if (r->error.code == SL_ESAVED)
            note_saved(f, &r->error);
        else
            member_failed(f, rank, &r->error);
        return 0;
    case REPORT_FINISHED:
        m->ended = true;
        return 0;
    }
    return sl_fail(&f->error, SL_EPROTO, "agent %u: sent a report of unknown type %u", rank,
                   r->type);
}

/* Returns 1 if the report is complete, 0 if more is to come, a negative code if the agent's end is
 * closed. */
static int receive_some(fleet *f, uint32_t rank) {
    fleet_member *m = &f->members[rank];
    char *at = (char *)&m->report + m->got;
    size_t missing = sizeof m->report - m->got;
    if (m->got >= sizeof m->report) {
        size_t floats_got = m->got - sizeof m->report;
        at = (char *)f->handlers->model(f->handlers->context, rank) + floats_got;
        missing = f->dimension * sizeof(float) - floats_got;
    }
    ssize_t got = recv(m->fd, at, missing, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (got <= 0)
        return -1;
    m->got += (size_t)got;
    size_t whole = sizeof m->report;
    if (m->got >= whole && carries_model(&m->report))
        whole += f->dimension * sizeof(float);
    return m->got == whole;
}

static int listen_to(fleet *f, uint32_t rank) {
    int state = receive_some(f, rank);
    if (state > 0)
        return take_report(f, rank);
    if (state < 0) {
        close(f->members[rank].fd);
        f->members[rank].fd = -1;
    }
    return 0;
}

static void tell_status(fleet *f, uint32_t rank) {
    const fleet_member *m = &f->members[rank];
    sl_error error;
    if (WIFSIGNALED(m->status) && m->stopped)
        sl_fail(&error, SL_EPEER, "was stopped by a signal and did not go on; ended with SIGKILL");
    else if (WIFSIGNALED(m->status) && f->killed && !f->roster_sent)
        sl_fail(&error, SL_EPEER, "was ended, because the run failed before it began");
    else if (WIFSIGNALED(m->status) && f->killed)
        sl_fail(&error, SL_EPEER, "did not end in time; ended with SIGKILL");
    else if (WIFSIGNALED(m->status))
        sl_fail(&error, SL_EPEER, "killed by signal %d (%s)", WTERMSIG(m->status),
                strsignal(WTERMSIG(m->status)));
    else if (m->ended)
        sl_fail(&error, SL_EPEER, "trained to the end, and then ended with exit code %d",
                WEXITSTATUS(m->status));
    else
        sl_fail(&error, SL_EPEER, "ended with exit code %d and said nothing",
                WEXITSTATUS(m->status));
    member_failed(f, rank, &error);
}

static bool ended_well(int status) {
    return status == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == TOOL_SAVED);
}

/* Finds agents that have ended or were stopped. */
static void reap(fleet *f) {
    for (uint32_t i = 0; i < f->count; i++) {
        fleet_member *m = &f->members[i];
        int status;
        if (m->pid == 0 || waitpid(m->pid, &status, WNOHANG | WUNTRACED | WCONTINUED) != m->pid)
            continue;
        if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
            m->stopped = WIFSTOPPED(status);
            continue;
        }
        m->status = status;
        m->pid = 0;
        if (!ended_well(status)) /* its report of the failure may wait behind a round that will
                                    never be complete */
            run_failed(f);
    }
    for (uint32_t i = 0; i < f->count; i++) {
        const fleet_member *m = &f->members[i];
        bool well = m->ended && ended_well(m->status);
        if (m->pid == 0 && m->fd < 0 && !well && !m->complained)
            tell_status(f, i);
    }
}

/* Are all remaining agents stopped? Then no report can come. */
static bool only_stopped_left(const fleet *f) {
    uint32_t stopped = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->members[i].pid > 0 && !f->members[i].stopped)
            return false;
        stopped += f->members[i].pid > 0;
    }
    return stopped > 0;
}

static void tell_silent(fleet *f) {
    sl_error error;
    for (uint32_t i = 0; i < f->count; i++) {
        if (f->members[i].port != 0)
            continue;
        sl_fail(&error, SL_EPEER, "%s within %g s (transport.connect_timeout_s)",
                f->members[i].stopped ? "was stopped by a signal, and did not listen"
                                      : "did not listen",
                f->connect_timeout_s);
        member_failed(f, i, &error);
    }
}

/* All agents are asked; each passes it on. */
static void ask_for_checkpoints(fleet *f) {
    if (leave_requested > 0 && f->saves && !f->leaving) {
        f->leaving = true;
        signal_all(f, SIGTERM);
    } else if (leave_requested > f->leaving) { /* again, or there are no checkpoints */
        leave_requested = f->leaving;
        stop_requested++;
    }
    if (save_requested != f->saves_asked) {
        f->saves_asked = save_requested;
        signal_all(f, SIGUSR1);
    }
}

static void enforce_deadlines(fleet *f) {
    ask_for_checkpoints(f);
    if (stop_requested && !f->interrupted) {
        f->interrupted = true;
        signal_all(f, SIGHUP);
        f->kill_at = now_seconds() + GRACE_SECONDS;
    }
    bool hopeless = (f->failed || f->interrupted) && only_stopped_left(f);
    bool impatient = stop_requested > 1; /* a second Ctrl-C */
    bool late = f->kill_at > 0 && now_seconds() >= f->kill_at;
    if (!hopeless && !impatient && !late)
        return;
    if (late && !f->roster_sent && !f->failed)
        tell_silent(f);
    f->killed = true;
    signal_all(f, SIGKILL);
}

/* Waits for reports from agents that may be read, and handles them. `open`: the number of agents
 * that may still report or must be reaped. */
static int pass(fleet *f, uint32_t *open) {
    struct pollfd watched[FLEET_MAX];
    uint32_t ranks[FLEET_MAX], count = 0, alive = 0;
    int wait_ms = TICK_MS;
    for (uint32_t i = 0; i < f->count; i++) {
        const fleet_member *m = &f->members[i];
        alive += m->pid > 0 || m->fd >= 0;
        if (m->pid > 0 && (m->fd < 0 || m->ended))
            wait_ms = REAP_MS;
        if (m->fd < 0 || !f->handlers->ready(f->handlers->context, i))
            continue;
        watched[count] = (struct pollfd){.fd = m->fd, .events = POLLIN};
        ranks[count++] = i;
    }
    *open = alive;
    if (alive == 0)
        return 0;
    int result = 0;
    if (poll(watched, count, wait_ms) > 0)
        for (uint32_t i = 0; i < count && result == 0; i++)
            if (watched[i].revents != 0)
                result = listen_to(f, ranks[i]);
    return result;
}

static int run_all(fleet *f, sl_error *error) {
    kill_within(f, f->connect_timeout_s + GRACE_SECONDS);
    uint32_t open = f->count;
    int result = 0;
    while (open > 0 && result == 0) {
        result = pass(f, &open);
        reap(f);
        enforce_deadlines(f);
        f->handlers->tick(f->handlers->context);
    }
    if (result != 0) {
        if (f->error.code != 0)
            *error = f->error;
        return result;
    }
    if (f->interrupted || (f->leaving && f->failed && f->saved == 0))
        return sl_fail(error, SL_ESTOPPED, "stopped on request");
    if (f->saved > 0 && f->saved == f->count) {
        *error = f->saved_how;
        return error->code;
    }
    return f->failed ? sl_fail(error, SL_EPEER, "the run failed") : 0;
}

int fleet_run(fleet *f, sl_error *error) {
    leave_requested = save_requested = 0;
    catch_saving(note_saving);
    int result = run_all(f, error);
    catch_signals(NULL); /* SIGTERM stops again */
    return result;
}
