/* fleet.c - the agent processes of `starling run`; see fleet.h. */
#include "run/fleet.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "run/death.h"
#include "run/pipe.h"

/* How long after the agents' own deadlines they are killed. */
#define GRACE_SECONDS 5.0
enum { TICK_MS = 100, REAP_MS = 5 };

/* Of the signal handler, which the loop reads. */
static volatile sig_atomic_t leave_requested, save_requested, reload_requested;

static bool note_saving(save_wish wish) {
    if (wish == SAVE_GO_ON)
        save_requested++;
    else
        leave_requested++;
    return true;
}

static void note_reload(void) {
    reload_requested++;
}

/* joins: in the place of one that was lost. */
static int start_member(fleet *f, uint32_t rank, bool joins, sl_error *error) {
    fleet_member *m = &f->members[rank];
    const orders told = {.run_id = f->checkpoints->run_id, .port = m->port};
    const int result = child_start(&m->child, rank, joins, f->path, f->checkpoints, error);
    if (result != 0)
        return result;
    report_send_orders(m->child.pipe, &told); /* fleet_run notices later who is gone */
    if (f->key[0] != '\0')
        report_send_key(m->child.pipe, f->key);
    return 0;
}

static void signal_all(const fleet *f, int number) {
    for (uint32_t i = 0; i < f->count; i++)
        child_signal(&f->members[i].child, number);
}

void fleet_close(fleet *f) {
    signal_all(f, SIGKILL);
    for (uint32_t i = 0; i < f->count; i++)
        child_close(&f->members[i].child);
    explicit_bzero(f->key, sizeof f->key);
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
    patience += f->reconnect_s;
    kill_within(f, f->roster_sent ? patience + GRACE_SECONDS : 0);
}

/* Can the others do without an agent that ends badly? Not before all train. */
static bool can_lose(const fleet *f) {
    return f->goes_on && f->roster_sent && all_train(f) && !f->interrupted && !f->failed;
}

static uint32_t count_lost(const fleet *f) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->count; i++)
        count += f->members[i].lost;
    return count;
}

/* The last one to be lost is what the run has failed of. */
static bool lose(fleet *f, uint32_t rank, const sl_error *error) {
    fleet_member *m = &f->members[rank];
    m->lost = true;
    if (count_lost(f) == f->count)
        return false;
    if (!m->complained && f->handlers->lost(f->handlers->context, rank, error) != 0)
        run_failed(f);
    m->complained = true;
    return true;
}

/* Then it is not one agent's data: the others need not go on. */
static bool most_diverged(const fleet *f) {
    return 2 * f->diverged > f->count;
}

static void member_diverged(fleet *f) {
    const bool before = most_diverged(f);
    f->diverged++;
    if (!before && most_diverged(f))
        signal_all(f, SIGNAL_END);
}

static void member_failed(fleet *f, uint32_t rank, const sl_error *error) {
    fleet_member *m = &f->members[rank];
    m->stays_out = error->code == SL_EDIVERGED; /* so it would again: its data is the same */
    if (m->stays_out && f->goes_on)
        member_diverged(f);
    if (!most_diverged(f) && can_lose(f) && lose(f, rank, error))
        return;
    run_failed(f);
    const bool told = stop_requested || leave_requested || most_diverged(f);
    const bool asked = error->code == SL_ESTOPPED && told;
    if (!m->complained && !f->interrupted && !asked)
        f->handlers->failed(f->handlers->context, rank, error);
    m->complained = true;
}

static void send_roster(const fleet *f, uint32_t rank) {
    char text[CHILDREN_MAX * 24] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < f->count; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "127.0.0.1:%u\n", f->members[i].port);
    if (f->members[rank].child.pipe >= 0) /* fleet_run notices later who else is gone */
        report_send_roster(f->members[rank].child.pipe, text);
}

static void send_roster_if_complete(fleet *f) {
    for (uint32_t i = 0; i < f->count; i++)
        if (f->members[i].port == 0)
            return;
    for (uint32_t i = 0; i < f->count; i++)
        send_roster(f, i);
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

/* The last one to go ends the run, as one that is asked to. */
static void member_left(fleet *f, uint32_t rank, const sl_error *how) {
    f->members[rank].stays_out = f->restart != SL_RESTART_ALWAYS;
    if (!lose(f, rank, how))
        note_saved(f, how);
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
        if (m->joins && f->roster_sent)
            send_roster(f, rank);
        else if (!f->roster_sent && !f->failed)
            send_roster_if_complete(f);
        return 0;
    case REPORT_ROUND:
        m->trains = true;
        h->round(h->context, rank, r->round);
        return 0;
    case REPORT_RECORD:
    case REPORT_PARAMETERS:
        return h->report(h->context, rank, r);
    case REPORT_ASIDE:
        lose(f, rank, &r->error); /* it returns by itself */
        return 0;
    case REPORT_RETURNED:
        m->lost = m->complained = m->joins = false;
        h->returned(h->context, rank, r->round);
        return 0;
    case REPORT_NOTICE:
        h->notice(h->context, rank, r->error.text);
        return 0;
    case REPORT_FAILED:
        m->ended = true;
        if (r->error.code == SL_ESAVED)
            note_saved(f, &r->error);
        else if (r->error.code == SL_ELEFT)
            member_left(f, rank, &r->error);
        else
            member_failed(f, rank, &r->error);
        return 0;
    case REPORT_FINISHED:
        m->ended = m->finished = true;
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
    ssize_t got = pipe_take(m->child.pipe, at, missing);
    if (got <= 0)
        return (int)got;
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
    if (state < 0)
        child_hang_up(&f->members[rank].child);
    return 0;
}

static void tell_status(fleet *f, uint32_t rank) {
    const fleet_member *m = &f->members[rank];
    const death d = {.status = m->status,
                     .began = f->roster_sent,
                     .stopped = m->stopped,
                     .killed = m->killed,
                     .ended = m->ended,
                     .starved = child_starved() > f->starved};
    sl_error error;
    death_tell(&d, &error);
    member_failed(f, rank, &error);
}

static bool ended_well(int status) {
    return status == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == TOOL_SAVED);
}

/* Tells of those that have ended badly without a word: whom this run has killed, or the others.
 * Returns false if the word of one of them may still be in its pipe. */
static bool tell_ended(fleet *f, bool killed) {
    bool all = true;
    for (uint32_t i = 0; i < f->count; i++) {
        const fleet_member *m = &f->members[i];
        const bool well = m->ended && ended_well(m->status);
        if (m->child.pid != 0 || m->killed != killed || well || m->complained)
            continue;
        if (m->child.pipe < 0)
            tell_status(f, i);
        else
            all = false;
    }
    return all;
}

/* Finds agents that have ended or were stopped. */
static void reap(fleet *f) {
    for (uint32_t i = 0; i < f->count; i++) {
        fleet_member *m = &f->members[i];
        int status;
        if (!child_look(&m->child, &status))
            continue;
        if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
            m->stopped = WIFSTOPPED(status);
            m->stopped_s = now_seconds();
            continue;
        }
        m->status = status;
        m->killed = f->killed;
        if (!ended_well(status) && !can_lose(f)) /* its report of the failure may wait behind a
                                    round that will never be complete */
            run_failed(f);
    }
    if (tell_ended(f, false)) /* the cause comes first */
        tell_ended(f, true);
}

/* Are all that live stopped by signals? */
static bool all_stopped(const fleet *f) {
    uint32_t alive = 0, stopped = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        alive += f->members[i].child.pid > 0;
        stopped += f->members[i].child.pid > 0 && f->members[i].stopped;
    }
    return alive > 0 && stopped == alive;
}

/* Nobody has done anything for as long as an agent may be silent: all are stopped, have made their
 * last report and do not exit, or have a report that waits for one of these. If all are stopped and
 * nobody is through, they may go on at any time. */
static bool is_stuck(fleet *f) {
    uint32_t through = 0, moving = 0, alive = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        const fleet_member *m = &f->members[i];
        const bool lives = m->child.pid > 0;
        alive += lives;
        through += m->ended || !lives;
        moving += lives && !m->stopped && !m->ended && f->handlers->ready(f->handlers->context, i);
    }
    if (moving > 0 || f->still_since == 0)
        f->still_since = now_seconds();
    const bool late = now_seconds() - f->still_since > f->timeout_s + GRACE_SECONDS;
    return late && alive > 0 && (through > 0 || !all_stopped(f));
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

/* All agents are asked; for a checkpoint each asks the others. SIGTERM to one would let it go
 * alone.
 */
static void pass_on(fleet *f) {
    if (leave_requested > 0 && f->saves && !f->leaving) {
        f->leaving = true;
        signal_all(f, SIGUSR2);
    } else if (leave_requested > f->leaving) { /* again, or there are no checkpoints */
        leave_requested = f->leaving;
        stop_requested++;
    }
    if (save_requested != f->saves_asked) {
        f->saves_asked = save_requested;
        signal_all(f, SIGUSR1);
    }
    if (reload_requested != f->reloads_asked) {
        f->reloads_asked = reload_requested;
        signal_all(f, SIGHUP);
    }
}

/* The others go on without who is stopped for so long. It may return. */
static void lose_stopped(fleet *f) {
    for (uint32_t i = 0; i < f->count && !all_stopped(f); i++) {
        const fleet_member *m = &f->members[i];
        sl_error error;
        if (!m->stopped || m->lost || m->ended || m->child.pid <= 0 ||
            now_seconds() - m->stopped_s <= f->timeout_s || count_lost(f) + 1 >= f->count)
            continue;
        sl_fail(&error, SL_EPEER, "was stopped by a signal for longer than membership.grace_s");
        lose(f, i, &error);
    }
}

/* The others have ended without who is stopped. */
static bool end_stopped(const fleet *f) {
    bool any = false;
    for (uint32_t i = 0; i < f->count; i++) {
        const fleet_member *m = &f->members[i];
        if (m->stopped && !m->ended && m->child.pid > 0) {
            child_signal(&m->child, SIGKILL);
            any = true;
        }
    }
    return any;
}

static bool is_dead(const fleet_member *m) {
    return m->child.pid == 0 && m->child.pipe < 0;
}

/* Not if the others are about to end. */
static bool may_start_again(const fleet *f) {
    for (uint32_t i = 0; i < f->count; i++)
        if (f->members[i].finished)
            return false;
    return f->restart != SL_RESTART_NEVER && can_lose(f) && !f->leaving;
}

/* As it was before, but for its port, and that the others go on without it. */
static void start_again(fleet *f, uint32_t rank) {
    fleet_member *m = &f->members[rank];
    sl_error error;
    *m = (fleet_member){.child = m->child,
                        .again = m->again,
                        .port = m->port,
                        .trains = true,
                        .lost = true,
                        .joins = true};
    f->handlers->restarted(f->handlers->context, rank, NULL);
    if (start_member(f, rank, true, &error) != 0)
        f->handlers->lost(f->handlers->context, rank, &error);
}

/* It was lost when the checkpoint was written. */
static void start_absent(fleet *f, uint32_t rank) {
    sl_error error;
    sl_fail(&error, SL_EPEER, "it was no member when the checkpoint was written");
    lose(f, rank, &error);
    start_again(f, rank);
}

/* A key of this run alone is in its agents' memory, and in this process's while it may start more
 * of them. */
static int start_members(fleet *f, const sl_experiment *experiment, sl_error *error) {
    const bool makes = sl_security_is_unsaid(&experiment->security);
    int result = makes ? sl_run_key_text(f->key, error) : 0;
    sl_checkpoint_view view = {0};
    if (result == 0 && f->checkpoints->resume)
        result = sl_checkpoint_view_at(&view, f->checkpoints->folder, f->checkpoints->round, error);
    for (uint32_t i = 0; i < f->count && result == 0; i++) {
        if (sl_checkpoint_view_has(&view, i))
            result = start_member(f, i, false, error);
        else
            start_absent(f, i);
    }
    if (f->restart == SL_RESTART_NEVER)
        explicit_bzero(f->key, sizeof f->key);
    else if (makes)
        child_hide_memory();
    return result;
}

int fleet_open(fleet *out, const trial *t, const char *path, const sl_checkpoints *checkpoints,
               const fleet_handlers *handlers, sl_error *error) {
    const sl_experiment *experiment = t->experiment;
    fleet *f = out;
    *f = (fleet){.count = t->nodes,
                 .dimension = t->task.dimension,
                 .handlers = handlers,
                 .path = path,
                 .checkpoints = checkpoints,
                 .restart = experiment->membership.restart,
                 .starved = child_starved()};
    f->saves = experiment->checkpoint.every > 0;
    f->goes_on = experiment->membership.on_loss == SL_ON_LOSS_CONTINUE;
    f->timeout_s = f->goes_on ? experiment->membership.grace_s : experiment->transport.timeout_s;
    f->reconnect_s = experiment->transport.reconnect_s;
    f->connect_timeout_s = experiment->transport.connect_timeout_s;
    for (uint32_t i = 0; i < CHILDREN_MAX; i++)
        f->members[i].child.pipe = -1;
    const int result = start_members(f, experiment, error);
    if (result != 0)
        fleet_close(f);
    return result;
}

/* Starts those again that are lost, and whose process has ended. */
static void start_lost(fleet *f) {
    const double now = now_seconds();
    sl_error error;
    for (uint32_t i = 0; i < f->count; i++) {
        fleet_member *m = &f->members[i];
        if (!m->lost || m->stays_out || !is_dead(m))
            continue;
        if (restarts_take(&m->again, now)) {
            start_again(f, i);
        } else if (m->again.due_s == 0 && !restarts_plan(&m->again, now)) {
            m->stays_out = true;
            sl_fail(&error, SL_EPEER, "it was started %d times within %d s, and has ended again",
                    RESTARTS_MAX, RESTARTS_WITHIN_S);
            f->handlers->restarted(f->handlers->context, i, &error);
        }
    }
}

/* All others have ended: there is nobody to join. */
static void end_joiners(fleet *f) {
    for (uint32_t i = 0; i < f->count; i++)
        if (f->members[i].child.pid > 0 && !f->members[i].lost)
            return;
    for (uint32_t i = 0; i < f->count; i++) {
        fleet_member *m = &f->members[i];
        if (m->child.pid <= 0 || !m->joins || m->complained)
            continue;
        m->complained = true;
        child_signal(&m->child, SIGNAL_END);
        kill_within(f, GRACE_SECONDS);
    }
}

static void enforce_deadlines(fleet *f) {
    pass_on(f);
    if (can_lose(f)) {
        lose_stopped(f);
        end_joiners(f);
    }
    if (may_start_again(f))
        start_lost(f);
    if (stop_requested && !f->interrupted) {
        f->interrupted = true;
        signal_all(f, SIGNAL_END);
        f->kill_at = now_seconds() + GRACE_SECONDS;
    }
    if (is_stuck(f) && !f->failed && !(can_lose(f) && end_stopped(f)))
        run_failed(f);                   /* reports that waited are taken, and who can, ends */
    bool impatient = stop_requested > 1; /* a second Ctrl-C */
    bool hopeless = (f->failed || f->interrupted) && all_stopped(f);
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
    int pipes[CHILDREN_MAX];
    bool readable[CHILDREN_MAX];
    uint32_t ranks[CHILDREN_MAX], count = 0, alive = 0;
    int wait_ms = TICK_MS;
    for (uint32_t i = 0; i < f->count; i++) {
        const fleet_member *m = &f->members[i];
        const child *c = &m->child;
        alive += c->pid > 0 || c->pipe >= 0;
        if (c->pid > 0 && (c->pipe < 0 || m->ended))
            wait_ms = REAP_MS;
        if (c->pipe < 0 || !f->handlers->ready(f->handlers->context, i))
            continue;
        pipes[count] = c->pipe;
        ranks[count++] = i;
    }
    *open = alive;
    if (alive == 0)
        return 0;
    int result = 0;
    children_wait(pipes, readable, count, wait_ms);
    for (uint32_t i = 0; i < count && result == 0; i++)
        if (readable[i])
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
    if (f->saved > 0 && f->saved + count_lost(f) >= f->count) {
        *error = f->saved_how;
        return error->code;
    }
    return f->failed ? sl_fail(error, SL_EPEER, "the run failed") : 0;
}

int fleet_run(fleet *f, sl_error *error) {
    leave_requested = save_requested = reload_requested = 0;
    catch_reload(note_reload);
    catch_signals(NULL);
    catch_saving(note_saving);
    int result = run_all(f, error);
    catch_reload(NULL);
    catch_signals(NULL); /* SIGTERM stops again, and so does SIGHUP */
    return result;
}
