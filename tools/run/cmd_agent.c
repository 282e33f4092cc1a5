/* cmd_agent.c - `starling agent`: one peer.
 *
 * By hand or by a launcher it finds its peers itself (starling/launch.h) and keeps a run folder of
 * its own; started by `starling run` it reports to that process instead (reporter.h), which is told
 * its port, hands out the roster and writes the one run folder.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/log.h"
#include "run/agent_options.h"
#include "run/agent_page.h"
#include "run/beginning.h"
#include "run/child.h"
#include "run/live_view.h"
#include "run/missing.h"
#include "run/node_table.h"
#include "run/reloads.h"
#include "run/reporter.h"
#include "run/resume.h"
#include "run/run_info.h"
#include "run/run_page.h"
#include "run/service.h"
#include "run/trace_file.h"

typedef struct peer {
    const options *o;
    service *supervisor; /* by hand */
    options own;         /* o, with what the folder says of how it begins */
    bool insists;        /* the command says how it begins */
    bool again; /* its folder has what its process before recorded, of no use to go on from */
    trial trial;
    uint32_t rank;
    orders told;                 /* by `starling run`; by hand the run id only */
    sl_launch *launch;           /* by hand */
    bool meets;                  /* it is meeting the others, or has failed to */
    sl_credentials *credentials; /* NULL: it proves nothing */
    sl_agent *agent;
    agent_page page;
    sl_roster *roster;
    reloads reloads;
    const char *outcome; /* of a run that has not come to its end; NULL: a failure, or a signal */
    sl_checkpoints checkpoints;
    char checkpoint_folder[SL_PATH_MAX];
    sl_event_log *log;
    sl_trace *trace;         /* NULL: none is wanted */
    sl_folder *folder;       /* by hand */
    run_info info;           /* by hand */
    double opened_s;         /* by hand: when it opened the run folder */
    char path[SL_PATH_MAX];  /* of the run folder */
    sl_record last;          /* by hand: for the summary */
    missing missing;         /* by hand */
    live_view view;          /* by hand */
    pthread_mutex_t viewing; /* one user of `view` */
    reporter reporter;       /* of an agent of `starling run` */
    sl_observer observer;
    sl_error error; /* of the observer: the agent only passes its code on */
    int code; /* of a run that has come to its end, or to that of a part; else its error says */
} peer;

static sl_agent *volatile agent_to_stop; /* for the signal handler */

static void stop_agent(void) {
    if (agent_to_stop != NULL)
        sl_agent_stop(agent_to_stop);
}

static bool save_agent(save_wish wish) {
    if (agent_to_stop == NULL)
        return false;
    if (wish == SAVE_LEAVE)
        sl_agent_leave(agent_to_stop);
    else
        sl_agent_checkpoint(agent_to_stop, wish == SAVE_END);
    return true;
}

static bool reports(const peer *p) {
    return p->o->report_fd >= 0;
}

/* ---- what an agent by hand observes ---- */

static void on_notice(void *context, const char *text) {
    peer *p = context;
    pthread_mutex_lock(&p->viewing);
    live_view_clear(&p->view);
    log_notice(p->launch != NULL || p->o->has_rank ? (int64_t)p->rank : NOBODY, text);
    pthread_mutex_unlock(&p->viewing);
}

/* From the first round on; what is there is kept until it does. */
static bool begins_again(const peer *p) {
    return p->again && !p->o->join;
}

static int open_files(peer *p, sl_error *error) {
    const sl_experiment *e = p->trial.experiment;
    const sl_checkpoints *c = &p->checkpoints;
    size_t tensor_count;
    const sl_tensor *tensors = sl_learner_layout(p->trial.learner, &tensor_count);
    double seconds = 0;
    const uint64_t last = c->resume ? c->round : p->o->join ? UINT64_MAX : 0;
    int result = c->resume || p->again
                     ? sl_folder_resume(&p->folder, p->path, e, p->rank, &last, &seconds, error)
                     : sl_folder_open(&p->folder, p->path, e, false, error);
    if (result == 0)
        result = sl_folder_layout(p->folder, tensors, tensor_count, error);
    if (result == 0)
        result = run_info_begin(&p->info, p->path, "agent", p->rank, c, error);
    p->opened_s = now_seconds() - seconds;
    return result;
}

/* On the loop's thread, and on the one that writes checkpoints. */
static void on_log(void *context, const sl_log_entry *entry) {
    peer *p = context;
    if (begins_again(p) && p->folder == NULL && open_files(p, &p->error) != 0)
        sl_agent_stop(p->agent);
    sl_event_log_write(p->log, entry);
    log_entry(entry);
}

static void on_act(void *context, const sl_act *act) {
    const peer *p = context;
    sl_event_log_act(p->log, act);
}

static void on_span(void *context, const sl_span *span) {
    const peer *p = context;
    if (p->trace != NULL)
        sl_trace_add(p->trace, span);
}

static void on_round(void *context, uint32_t rank, uint64_t round) {
    peer *p = context;
    (void)rank;
    pthread_mutex_lock(&p->viewing);
    live_view_round(&p->view, round - 1);
    live_view_tick(&p->view);
    pthread_mutex_unlock(&p->viewing);
}

static void on_alive(void *context) {
    peer *p = context;
    service_alive(p->supervisor, p->agent, p->trial.task.rounds);
}

static int on_record(void *context, const sl_record *record, const float *x) {
    peer *p = context;
    p->last = *record;
    p->info.sent = record->bytes_sent;
    p->info.received = record->bytes_received;
    p->last.time_s = now_seconds() - p->opened_s;
    int result = sl_folder_metrics(p->folder, &p->last, &p->error);
    if (result == 0)
        result = sl_folder_remember(p->folder, record->round.round, &record->evaluation, x,
                                    p->trial.task.dimension, &p->error);
    if (result == 0)
        result = sl_folder_best(p->folder, record->rank, record->round.round, &record->evaluation,
                                x, p->trial.task.dimension, &p->error);
    if (result == 0 && record->round.round == p->trial.task.rounds)
        result =
            sl_folder_model(p->folder, record->rank, "", x, p->trial.task.dimension, &p->error);
    measured m = {
        .round = record->round.round,
        .loss = record->round.loss,
        .accuracy = record->evaluation.accuracy,
        .accuracy_mean_model = NAN,
        .consensus = NAN,
        .bytes_per_node = (double)record->bytes_sent,
    };
    pthread_mutex_lock(&p->viewing);
    live_view_measured(&p->view, &m);
    pthread_mutex_unlock(&p->viewing);
    return result;
}

static int on_parameters(void *context, uint64_t round, uint32_t rank, const float *x,
                         double weight) {
    peer *p = context;
    return sl_folder_parameters(p->folder, round, rank, x, p->trial.task.dimension, weight,
                                &p->error);
}

/* ---- opening ---- */

/* Which node this is, and from what; nothing is asked of the network yet. */
static int find_rank(peer *p, sl_error *error) {
    const options *o = p->o;
    const sl_experiment *e = p->trial.experiment;
    const sl_launch_settings settings = {.has_rank = o->has_rank,
                                         .rank = o->rank,
                                         .joiners = e->membership.joiners,
                                         .roster = o->roster,
                                         .master = o->master,
                                         .listen = o->listen,
                                         .run_id = o->run_id,
                                         .port = (uint16_t)o->port,
                                         .experiment = sl_experiment_hash(e),
                                         .certificates = sl_security_mode_of(&e->security) ==
                                                         SL_SECURITY_CERTIFICATES,
                                         .authority = e->security.ca[0] != '\0',
                                         .trusted_network = sl_security_goes_out(&e->security),
                                         .timeout_s = e->transport.connect_timeout_s,
                                         .stop = &stop_requested,
                                         .notice = on_notice,
                                         .context = p};
    if (reports(p))
        return report_wait_orders(o->report_fd, &p->told, error);
    int result = sl_launch_find(&p->launch, &settings, p->trial.nodes, error);
    if (result != 0)
        return result;
    p->rank = sl_launch_rank(p->launch);
    p->told.run_id = sl_launch_run_id(p->launch);
    return 0;
}

/* The agents have agreed, and nothing is recorded yet. */
static int on_resumed(void *context, uint64_t round) {
    peer *p = context;
    char text[64];
    p->checkpoints.round = round;
    snprintf(text, sizeof text, "goes on from the checkpoint of round %llu",
             (unsigned long long)round);
    on_notice(p, text);
    return open_files(p, &p->error);
}

/* In the run's folder; `path` is there. Of agents by hand each has its own, and its own id. */
static int find_checkpoints(peer *p, sl_error *error) {
    const options *o = p->o;
    p->checkpoints = (sl_checkpoints){.folder = p->checkpoint_folder,
                                      .run_id = p->told.run_id,
                                      .resume = o->resume != NULL,
                                      .round = o->resume_round};
    sl_checkpoint_folder(p->trial.experiment, p->path, p->checkpoint_folder);
    if (o->resume == NULL || reports(p))
        return 0;
    return run_info_read_id(&p->checkpoints.run_id, NULL, o->resume, p->rank, error);
}

static int load_credentials(peer *p, sl_error *error) {
    const sl_security_config *c = &p->trial.experiment->security;
    int result = reports(p) && sl_security_is_unsaid(c)
                     ? report_wait_key(p->o->report_fd, &p->credentials, error)
                     : sl_security_load(&p->credentials, c, p->rank, error);
    if (p->credentials != NULL)
        child_hide_memory();
    return result;
}

static int open_agent(peer *p, sl_error *error) {
    if (!p->trial.experiment->record.trace)
        p->observer.span = NULL;
    sl_agent_settings settings = {
        .experiment = p->trial.experiment,
        .task = p->trial.task,
        .rank = p->rank,
        .place = reports(p) ? p->rank : sl_launch_place(p->launch),
        .host = "127.0.0.1",
        .port = p->told.port,
        .run_id = p->told.run_id,
        .credentials = p->credentials,
        .observer = p->observer,
        .checkpoints = &p->checkpoints,
        .yields = !p->insists && !reports(p),
        .joins = p->o->join,
    };
    int result = 0;
    p->reporter.dimension = p->trial.task.dimension;
    if (!reports(p))
        result = sl_launch_listen(p->launch, &settings.host, &settings.port, error);
    if (result == 0)
        result = sl_agent_open(&p->agent, &settings, error);
    catch_signals(stop_agent);
    catch_saving(save_agent);
    return result;
}

static int find_others(peer *p, sl_error *error) {
    p->meets = true;
    int result = sl_launch_meet(p->launch, sl_agent_port(p->agent), &p->roster, error);
    p->meets = result != 0;
    return result;
}

static void choose_path(peer *p) {
    char suffix[32];
    snprintf(suffix, sizeof suffix, "-rank%u", p->rank);
    choose_folder(p->o, p->trial.experiment, suffix, p->path);
    log_of(p->path, p->rank);
}

/* The same command begins, and goes on: where the folder holds a run of this rank that has not come
 * to its end, and checkpoints of it, the agent goes on from these, unless the others train. Without
 * checkpoints it begins again: its lines will be the same. */
static int find_beginning(peer *p, sl_error *error) {
    beginning from;
    choose_path(p);
    if (reports(p) || p->o->resume != NULL)
        return 0;
    p->own.join =
        p->o->join || p->rank >= p->trial.nodes; /* a further rank joins those that began */
    int result = beginning_find(&from, p->path, p->trial.experiment, p->rank, error);
    if (result != 0 || from.ended || (!from.recorded && !from.saved))
        return result;
    p->own.resume = p->path;
    p->again = p->o->join || !from.saved;
    if (!p->again)
        return 0;
    result = resume_compare(&p->trial, p->o, error);
    p->own.resume = NULL;
    return result;
}

/* Refuses a folder with files of an earlier run, before anybody connects. */
static int check_own_folder(peer *p, sl_error *error) {
    if (reports(p) && p->o->resume == NULL && p->o->out == NULL)
        return sl_fail(error, SL_EINVAL, "--report-fd: is for `starling run` only");
    if (p->o->resume != NULL || p->again || reports(p)) /* the folder is its parent's */
        return 0;
    return sl_folder_check(p->path, p->trial.experiment, p->rank, error);
}

static int open_folder(peer *p, sl_error *error) {
    int result = p->checkpoints.resume || begins_again(p) ? 0 : open_files(p, error);
    if (result != 0)
        return result;
    live_view_open(&p->view, p->trial.task.rounds, p->o->wide);
    if (!p->o->has_rank && p->trial.nodes > 1)
        live_view_share(&p->view, p->rank); /* a launcher has one terminal for all */
    if (!p->o->has_rank)
        tell_line("%s", sl_launch_describe(p->launch));
    tell_line("%s, rank %u of %u, %s", p->trial.experiment->name, p->rank, p->trial.nodes,
              sl_learner_describe(p->trial.learner));
    say_weights(p->trial.experiment);
    tell_line("%llu rounds; listening on port %u; run folder %s",
              (unsigned long long)p->trial.task.rounds, sl_agent_port(p->agent), p->path);
    if (p->trial.nodes == 1 && p->trial.experiment->membership.joiners == 0)
        tell_line("warning: this run has one node, which trains alone and exchanges nothing");
    fflush(stdout);
    return 0;
}

static sl_monitor_subject subject_of(const peer *p) {
    return (sl_monitor_subject){.agent = p->agent,
                                .experiment = p->trial.experiment,
                                .run_id = p->told.run_id,
                                .rank = p->rank,
                                .nodes = p->trial.nodes,
                                .has_loss = true};
}

static void open_monitor(peer *p) {
    const sl_monitor_subject subject = subject_of(p);
    sl_error error;
    if (sl_monitor_open(&p->page.monitor, &subject, p->path, &error) != 0) {
        char text[SL_ERROR_TEXT_MAX + 64];
        snprintf(text, sizeof text, "warning: `starling status` will not see this agent: %s",
                 error.text);
        p->observer.notice(p->observer.context, text);
    }
}

/* That of `starling run` may be its parent's. */
static int open_page(peer *p, sl_error *error) {
    const sl_monitor_subject subject = subject_of(p);
    const bool is_for_run = reports(p) && run_page_takes(p->trial.experiment->monitor.listen);
    return is_for_run ? 0 : agent_page_listen(&p->page, &subject, p->path, error);
}

static void show_neighbours(peer *p) {
    const sl_monitor_subject subject = subject_of(p);
    if (!reports(p))
        agent_page_show_neighbours(&p->page, &subject, p->roster);
}

/* Nobody has asked it to leave: for `starling run` it is lost. The same command goes on. */
static int cut_off(peer *p, sl_error *error) {
    p->outcome = "cut off";
    p->code = TOOL_SAVED;
    return error->code = SL_EPEER;
}

static int train(peer *p, sl_error *error) {
    double began = now_seconds();
    int result = reloads_open(&p->reloads, p->agent, p->launch, error);
    if (result != 0)
        return result;
    open_monitor(p);
    result = sl_event_log_open(&p->log, p->path, p->rank, p->observer.notice, p->observer.context,
                               error);
    if (p->trial.experiment->record.trace)
        trace_file_open(&p->trace, p->path, p->rank);
    p->reporter.log = p->log;
    p->reporter.trace = p->trace;
    if (result == 0)
        result = sl_agent_run(p->agent, p->roster, error);
    if (result != SL_ETRAINS) /* its loop, which says that it lives, is over */
        service_close(p->supervisor);
    if (result != 0 && p->error.code != 0)
        *error = p->error;
    if (result == SL_ELEFT && sl_agent_lacked_quorum(p->agent))
        return cut_off(p, error);
    if (result != 0 || reports(p))
        return result;
    live_view_clear(&p->view);
    sl_summary summary = {.driver = "agent",
                          .rounds = p->trial.task.rounds,
                          .nodes = p->trial.nodes,
                          .record_count = 1,
                          .records = &p->last,
                          .seconds = now_seconds() - began};
    sl_agent_members(p->agent, &summary.members, &summary.member_count, &summary.minority);
    summary.missing = missing_find(&p->missing, p->agent, &p->trial);
    result = sl_folder_summary(p->folder, &summary, error);
    if (result == 0)
        result = sl_folder_close(&p->folder, error);
    if (result == 0)
        result = run_info_end(&p->info, "done", summary.missing, error);
    if (result == 0)
        p->code = node_table_end(&summary, p->o->wide);
    return result;
}

/* why: it has not come to its end; NULL: it has. */
static void close_peer(peer *p, const char *why) {
    live_view_clear(&p->view);
    agent_to_stop = NULL;
    agent_page_close(&p->page);
    reloads_close(&p->reloads);
    sl_agent_close(&p->agent);
    sl_event_log_close(&p->log);
    trace_file_close(&p->trace);
    sl_credentials_close(&p->credentials);
    if (p->outcome == NULL)
        p->outcome = stop_requested ? "stopped" : "failed";
    run_info_end(&p->info, p->outcome, why, NULL);
    sl_folder_close(&p->folder, NULL);
    sl_roster_close(&p->roster);
    sl_launch_close(&p->launch);
    trial_close(&p->trial);
}

/* Refuses whatever can be refused before it starts. */
static int prepare(peer *p, sl_error *error) {
    int result = beginning_check_join(p->o, error);
    if (result == 0)
        result = trial_open(&p->trial, p->o, error);
    if (result == 0)
        result = trial_find_path(&p->trial, p->o, error);
    if (result == 0 && !reports(p))
        trial_warn(&p->trial);
    if (result == 0)
        result = find_rank(p, error);
    if (result == 0)
        result = find_beginning(p, error);
    if (result == 0)
        result = resume_compare(&p->trial, p->o, error);
    if (result == 0)
        result = check_own_folder(p, error);
    if (result == 0)
        result = find_checkpoints(p, error);
    if (result == 0)
        result = load_credentials(p, error);
    if (result == 0)
        result = open_agent(p, error);
    if (result == 0)
        result = open_page(p, error);
    if (result == 0) /* it may look for names, then for agents */
        service_ready(p->supervisor, 2 * p->trial.experiment->transport.connect_timeout_s);
    if (result == 0 && !reports(p))
        result = find_others(p, error);
    if (result == 0 && !reports(p))
        result = open_folder(p, error);
    if (result == 0)
        show_neighbours(p);
    if (result == 0) {
        agent_to_stop = p->agent;
        if (stop_requested)
            stop_agent();
    }
    return result;
}

static int exit_code(int result, bool started) {
    if (result == SL_ESAVED || result == SL_ELEFT)
        return TOOL_SAVED;
    if (result == SL_ESTOPPED)
        return TOOL_INTERRUPTED;
    return started ? TOOL_FAILED : TOOL_USAGE;
}

/* *others_train: it has recorded nothing, and may join them. */
static int be_peer(const options *o, bool insists, service *supervisor, bool *others_train) {
    peer p = {.own = *o,
              .supervisor = supervisor,
              .insists = insists,
              .rank = o->rank,
              .viewing = PTHREAD_MUTEX_INITIALIZER,
              .reporter = REPORTER_OF(o->report_fd)};
    p.o = &p.own;
    p.observer = (sl_observer){.context = &p,
                               .record = on_record,
                               .parameters = on_parameters,
                               .round = on_round,
                               .notice = on_notice,
                               .alive = on_alive,
                               .resumed = on_resumed,
                               .log = on_log,
                               .act = on_act,
                               .span = on_span};
    if (reports(&p))
        p.observer = reporter_observer(&p.reporter);
    sl_error error = {0};
    reloads_catch();
    if (reports(&p))
        catch_parent();
    catch_signals(stop_agent);
    int result = prepare(&p, &error);
    bool started = result == 0 || (p.meets && result != SL_EINVAL);
    if (result == 0 && reports(&p))
        result = reporter_join(&p.reporter, sl_agent_port(p.agent), &p.roster, &error);
    if (result == 0)
        result = train(&p, &error);
    if (p.outcome == NULL)
        p.outcome = result == SL_ESAVED ? "saved" : result == SL_ELEFT ? "left" : NULL;
    *others_train = result == SL_ETRAINS;
    live_view_clear(&p.view);
    if (*others_train)
        tell_line("agent %lld trains already, and this one joins it", (long long)error.peer);
    if (reports(&p)) {
        reporter_end(&p.reporter, result, &error);
    } else if (result != 0 && !*others_train) {
        if (result == SL_ESAVED)
            complain("%s; go on with --resume %s", error.text, p.path);
        else if (p.folder != NULL && result != SL_ELEFT)
            complain_of_run(error.text, p.folder, p.rank, p.path);
        else
            complain("%s", error.text);
    }
    close_peer(&p, result != 0 ? error.text : NULL);
    return result == 0 || p.code != 0 ? p.code : exit_code(result, started);
}

/* ---- the command ---- */

static int run(void *request, char *const *operands, size_t count) {
    options *o = request;
    sl_error error;
    char config[SL_PATH_MAX + 16];
    bool others_train = false;
    options_take_files(o, operands, count);
    if (resume_choose_file(o, "agent", config, &error) != 0) {
        complain("%s", error.text);
        return TOOL_USAGE;
    }
    service supervisor;
    service_open(&supervisor, o->report_fd < 0);
    int code = be_peer(o, o->resume != NULL || o->join, &supervisor, &others_train);
    if (others_train) {
        options joining = *o;
        joining.join = true;
        code = be_peer(&joining, true, &supervisor, &others_train);
    }
    service_close(&supervisor);
    return code;
}

const command agent_command = {
    .name = "agent",
    .summary = "be one peer of a run that spans several shells or hosts",
    OPERAND_FILE_OR_RUN,
    .text = "One peer of a run that spans several shells or hosts: start one for each rank, with "
            "the same experiment. Rank and peers are found from what has started it (torchrun, "
            "srun, mpirun, an indexed job of Kubernetes), from STARLING_RANK, STARLING_ROSTER or "
            "STARLING_MASTER, or from options, which win. Peers compare their experiments before "
            "they train. The same command again goes on: from the checkpoints in --out of a run "
            "that has not ended, or with the others, where they train. The exit code is 3 if all "
            "rounds are done, but members of the first roster were lost that did not come back "
            "and had not left on request.",
    .options = agent_options,
    .sections = {{"events of --log json", log_events_help}},
    REQUEST_OPTIONS,
    .run = run,
};
