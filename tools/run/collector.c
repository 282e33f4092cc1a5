/* collector.c - collects the records of all nodes; see collector.h.
 *
 * Records of one round arrive in any order. A node's next record waits (`waiting`) until the round
 * is complete. So models are never copied. Agents at their own times would wait for each other so,
 * perhaps for ever: a round is complete when all have told of it or a later one, with the models
 * that they told of last.
 */
#include "run/collector.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/forecast.h"

/* By node; UINT64_MAX: it is in no checkpoint. */
static int find_rounds(uint64_t *rounds, const trial *t, const sl_checkpoints *c, sl_error *error) {
    sl_checkpoint_view view;
    const bool apart = sl_experiment_is_asynchronous(t->experiment);
    int result = apart ? sl_checkpoint_view_at(&view, c->folder, c->round, error) : 0;
    for (uint32_t i = 0; i < t->nodes && result == 0; i++) {
        rounds[i] = apart ? UINT64_MAX : c->round;
        if (apart && sl_checkpoint_view_has(&view, i))
            result = sl_checkpoint_begins(&rounds[i], c->folder, (sl_checkpoint_file){c->round, i},
                                          error);
    }
    return result;
}

static int open_folder(collector *c, const char *path, sl_error *error) {
    const sl_experiment *e = c->trial->experiment;
    double seconds = 0;
    c->from_first = UINT64_MAX;
    if (!c->checkpoints->resume)
        return sl_folder_open(&c->folder, path, e, true, error);
    int result = find_rounds(c->from, c->trial, c->checkpoints, error);
    for (uint32_t i = 0; i < c->trial->nodes && result == 0; i++) {
        const uint64_t from = c->from[i];
        c->from_first = from < c->from_first ? from : c->from_first;
        c->from_last = from != UINT64_MAX && from > c->from_last ? from : c->from_last;
    }
    if (result == 0 && c->from_last > c->trial->task.rounds)
        result =
            sl_fail(error, SL_EINVAL,
                    "--resume: checkpoint %llu is of rounds up to %llu, and the experiment has "
                    "%llu rounds; give more with --set rounds",
                    (unsigned long long)c->checkpoints->round, (unsigned long long)c->from_last,
                    (unsigned long long)c->trial->task.rounds);
    if (result == 0)
        result = sl_folder_resume(&c->folder, path, e, -1, c->from, &seconds, error);
    c->began -= seconds;
    return result;
}

int collector_open(collector *out, const trial *t, const char *driver, const char *path,
                   const sl_checkpoints *checkpoints, live_view *view, sl_error *error) {
    uint32_t nodes = t->nodes;
    size_t dimension = t->task.dimension;
    collector c = {.trial = t,
                   .view = view,
                   .driver = driver,
                   .checkpoints = checkpoints,
                   .began = now_seconds()};
    c.records = calloc(nodes, sizeof *c.records);
    c.waiting = calloc(nodes, sizeof *c.waiting);
    c.models = calloc(nodes, sizeof *c.models);
    c.present = calloc(nodes, sizeof *c.present);
    c.members = calloc(nodes, sizeof *c.members);
    c.since = calloc(nodes, sizeof *c.since);
    c.from = calloc(nodes, sizeof *c.from);
    const bool apart = sl_experiment_is_asynchronous(t->experiment) && strcmp(driver, "run") == 0;
    if (apart)
        c.copies = calloc(nodes, dimension * sizeof *c.copies);
    c.mean = calloc(dimension, sizeof *c.mean);
    int result = 0;
    for (; c.members != NULL && c.member_count < nodes; c.member_count++)
        c.members[c.member_count] = c.member_count;
    if (c.records == NULL || c.waiting == NULL || c.models == NULL || c.present == NULL ||
        c.members == NULL || c.since == NULL || c.from == NULL || c.mean == NULL ||
        (apart && c.copies == NULL))
        result = sl_fail(error, SL_ENOMEM,
                         "out of memory for the records of %u nodes and a model of %zu parameters",
                         nodes, dimension);
    if (result == 0)
        result = open_folder(&c, path, error);
    size_t tensor_count;
    const sl_tensor *tensors = sl_learner_layout(t->learner, &tensor_count);
    if (result == 0)
        result = sl_folder_layout(c.folder, tensors, tensor_count, error);
    if (result == 0)
        result = run_info_begin(&c.info, path, driver, -1, checkpoints, error);
    if (result != 0) {
        collector_close(&c);
        return result;
    }
    *out = c;
    return 0;
}

static void add_up_bytes(collector *c) {
    c->info.sent = c->info.received = 0;
    for (uint32_t i = 0; c->records != NULL && i < c->trial->nodes; i++) {
        c->info.sent += c->records[i].bytes_sent;
        c->info.received += c->records[i].bytes_received;
    }
}

void collector_explain(collector *c, const sl_error *cause) {
    if (c->cause.code == 0)
        c->cause = *cause;
}

static const char *outcome_of(const collector *c) {
    return c->saved                        ? "saved"
           : stop_requested                ? "stopped"
           : c->cause.code == SL_EDIVERGED ? OUTCOME_DIVERGED
                                           : "failed";
}

void collector_close(collector *c) {
    const bool diverged = c->cause.code == SL_EDIVERGED && c->cause.round > 0;
    add_up_bytes(c);
    c->info.diverged_in = diverged ? (uint64_t)c->cause.round : 0;
    run_info_end(&c->info, outcome_of(c), c->cause.code != 0 ? c->cause.text : NULL, NULL);
    sl_folder_close(&c->folder, NULL);
    sl_timeline_close(&c->timeline);
    free(c->records);
    free(c->waiting);
    free(c->models);
    free(c->present);
    free(c->members);
    free(c->since);
    free(c->from);
    free(c->copies);
    free(c->losses);
    free(c->mean);
    c->records = NULL;
    c->waiting = NULL;
    c->models = NULL;
    c->present = NULL;
    c->members = NULL;
    c->since = NULL;
    c->losses = NULL;
    c->mean = NULL;
}

/* The last record of a member. */
static const sl_record *record_of(const collector *c, uint32_t k) {
    return &c->records[c->members[k]];
}

static void show(collector *c, uint64_t round) {
    uint32_t nodes = c->member_count;
    measured m = {.round = round,
                  .accuracy_mean_model = c->consensus.mean_model.accuracy,
                  .bytes_per_node = c->consensus.bytes_sent};
    m.consensus = c->consensus.distance;
    uint32_t evaluated = 0;
    for (uint32_t i = 0; i < nodes; i++)
        evaluated += !isnan(record_of(c, i)->evaluation.accuracy);
    m.accuracy = evaluated > 0 ? 0 : NAN;
    for (uint32_t i = 0; i < nodes; i++) {
        const sl_evaluation *e = &record_of(c, i)->evaluation;
        m.loss += record_of(c, i)->round.loss / nodes;
        m.accuracy += isnan(e->accuracy) ? 0 : e->accuracy / evaluated;
    }
    live_view_measured(c->view, &m);
}

static int write_models(const collector *c, sl_error *error) {
    int result = 0;
    for (uint32_t k = 0; k < c->member_count && result == 0; k++)
        result = sl_folder_model(c->folder, c->members[k], "", c->models[c->members[k]],
                                 c->trial->task.dimension, error);
    return result;
}

/* The members' models, closed up. */
static const float **members_models(collector *c) {
    for (uint32_t k = 0; k < c->member_count; k++)
        c->present[k] = c->models[c->members[k]];
    return c->present;
}

static int complete_round(collector *c, uint64_t round, sl_error *error) {
    const sl_task *task = &c->trial->task;
    c->consensus.distance =
        sl_consensus_distance(members_models(c), c->member_count, task->dimension, c->mean);
    c->consensus.mean_model = task->evaluate(task->context, c->mean);
    c->consensus.bytes_sent = c->consensus.virtual_s = 0;
    c->has_consensus = true;
    for (uint32_t k = 0; k < c->member_count; k++) {
        c->consensus.virtual_s = fmax(c->consensus.virtual_s, record_of(c, k)->virtual_s);
        c->consensus.bytes_sent += (double)record_of(c, k)->bytes_sent / c->member_count;
        c->waiting[c->members[k]] = false;
    }
    c->waiting_count = 0;
    show(c, round);
    int result = sl_folder_consensus(c->folder, round, &c->consensus, error);
    if (result == 0)
        result = sl_folder_remember(c->folder, round, &c->consensus.mean_model, c->mean,
                                    task->dimension, error);
    if (result == 0)
        result = sl_folder_best(c->folder, -1, round, &c->consensus.mean_model, c->mean,
                                task->dimension, error);
    if (result == 0 && round == task->rounds)
        result = write_models(c, error);
    return result;
}

static bool is_member(const collector *c, uint32_t rank) {
    uint32_t k = 0;
    while (k < c->member_count && c->members[k] != rank)
        k++;
    return k < c->member_count;
}

static void admit(collector *c, uint32_t rank) {
    uint32_t k = c->member_count++;
    for (; k > 0 && c->members[k - 1] > rank; k--)
        c->members[k] = c->members[k - 1];
    c->members[k] = rank;
    c->since[rank] = 0;
    c->absent--;
}

/* The first record of a round has come: who came back by then takes part in it. One that was
 * recorded before counts, if it is of this round. */
static void begin_round(collector *c, uint64_t round) {
    c->round = round;
    for (uint32_t i = 0; i < c->trial->nodes && c->comers > 0; i++)
        if (c->since[i] > 0 && c->since[i] <= round) {
            admit(c, i);
            c->comers--;
            c->waiting[i] = c->waiting[i] && c->records[i].round.round == round;
            c->waiting_count += c->waiting[i];
        }
}

/* Who is not a member, or not yet. True: its record waits until the others come to its round, or
 * for nothing. It begins no round while there are others: their records of earlier ones may still
 * be on their way. */
static bool is_apart(collector *c, uint32_t rank, uint64_t round) {
    if (c->since[rank] == 0 || round < c->since[rank])
        return true;
    if (c->member_count == 0 || (round == c->round && c->waiting_count > 0))
        return false;
    c->waiting[rank] = round > c->round;
    return true;
}

/* Have all told of a later round than the last line's? */
static int complete_copies(collector *c, sl_error *error) {
    uint64_t first = UINT64_MAX;
    for (uint32_t k = 0; k < c->member_count; k++) {
        if (c->models[c->members[k]] == NULL)
            return 0;
        first = record_of(c, k)->round.round < first ? record_of(c, k)->round.round : first;
    }
    if (c->member_count == 0 || first <= c->round)
        return 0;
    c->round = first;
    return complete_round(c, first, error);
}

static int take_copy(collector *c, uint32_t rank, const float *x, sl_error *error) {
    const size_t d = c->trial->task.dimension;
    float *copy = c->copies + rank * d;
    if (!is_member(c, rank)) {
        if (c->since[rank] == 0)
            return 0;
        c->comers--;
        admit(c, rank);
    }
    memcpy(copy, x, d * sizeof *x);
    c->models[rank] = copy;
    return complete_copies(c, error);
}

int collector_record(collector *c, const sl_record *record, const float *x, sl_error *error) {
    const uint32_t rank = record->rank;
    sl_record *mine = &c->records[rank];
    *mine = *record;
    mine->time_s = now_seconds() - c->began;
    int result = sl_folder_metrics(c->folder, mine, error);
    if (result != 0)
        return result;
    if (c->copies != NULL)
        return take_copy(c, rank, x, error);
    c->models[rank] = x;
    const uint64_t round = record->round.round;
    if (round < c->round) /* which was complete without it */
        return 0;
    if (c->incomplete || (c->absent > 0 && !is_member(c, rank) && is_apart(c, rank, round)))
        return 0;
    if (c->waiting_count == 0 || round == c->round)
        begin_round(c, round);
    c->waiting[rank] = true;
    return ++c->waiting_count == c->member_count ? complete_round(c, round, error) : 0;
}

static int add_loss(collector *c, const sl_loss *loss, sl_error *error) {
    sl_loss *losses = realloc(c->losses, (c->loss_count + 1) * sizeof *losses);
    if (losses == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for %u losses", c->loss_count + 1);
    c->losses = losses;
    c->losses[c->loss_count++] = *loss;
    return 0;
}

/* What it has recorded of a round that is not complete is not among the round's mean. *completes:
 * the others have recorded theirs. False: it was no member, and was not to become one. */
static bool take_out(collector *c, uint32_t rank, bool *completes) {
    uint32_t left = 0;
    for (uint32_t k = 0; k < c->member_count; k++)
        if (c->members[k] != rank)
            c->members[left++] = c->members[k];
    const bool counted = left < c->member_count;
    if (!counted && c->since[rank] == 0)
        return false;
    c->comers -= c->since[rank] > 0;
    c->since[rank] = 0;
    c->absent += counted;
    c->member_count = left;
    c->waiting_count -= counted && c->waiting[rank];
    c->waiting[rank] = false;
    for (uint32_t i = 0; i < c->trial->nodes && left == 0; i++)
        c->waiting[i] = false; /* there is nobody to wait for */
    *completes = !c->incomplete && left > 0 && c->waiting_count == left;
    return true;
}

int collector_lose(collector *c, const sl_loss *loss, sl_error *error) {
    bool completes;
    if (!take_out(c, loss->rank, &completes))
        return 0;
    const int result = add_loss(c, loss, error);
    if (result == 0 && c->copies != NULL)
        return complete_copies(c, error);
    return result == 0 && completes ? complete_round(c, c->round, error) : result;
}

/* Or sooner than was said before. */
static void let_in_from(collector *c, uint32_t rank, uint64_t round) {
    c->comers += c->since[rank] == 0;
    c->since[rank] = c->since[rank] == 0 || round < c->since[rank] ? round : c->since[rank];
}

static sl_loss *last_loss(collector *c, uint32_t rank) {
    for (uint32_t i = c->loss_count; i-- > 0;)
        if (c->losses[i].rank == rank)
            return &c->losses[i];
    return NULL;
}

void collector_restart(collector *c, uint32_t rank) {
    sl_loss *loss = last_loss(c, rank);
    if (loss == NULL)
        return;
    loss->restarts++;
    loss->restarted_s = now_seconds() - c->began;
}

void collector_return(collector *c, uint32_t rank, uint64_t round) {
    if (is_member(c, rank) || c->since[rank] > 0)
        return;
    let_in_from(c, rank, round);
    sl_loss *loss = last_loss(c, rank);
    if (loss != NULL)
        loss->returned = round;
}

/* Which of these nodes go and come. */
static int note_changes(collector *c, uint64_t round, sl_error *error) {
    int result = 0;
    for (uint32_t i = 0; i < c->trial->nodes && result == 0; i++) {
        sl_loss *before = last_loss(c, i);
        const bool was_there = before == NULL || before->returned > 0,
                   is_there = is_member(c, i) || c->since[i] > 0;
        sl_loss loss = {.rank = i,
                        .round = round,
                        .left = sl_faults_leaves(&c->trial->experiment->faults, round, i)};
        snprintf(loss.why, sizeof loss.why, "%s",
                 c->trial->experiment->faults.count > 0 ? "faults says so"
                                                        : "as in the run that is repeated");
        if (was_there && !is_there && i < sl_topology_nodes(c->trial->experiment->topology))
            result = add_loss(c, &loss, error);
        else if (!was_there && is_there)
            before->returned = round;
    }
    return result;
}

int collector_members(collector *c, uint64_t round, const uint32_t *ranks, uint32_t count,
                      sl_error *error) {
    uint32_t k = 0;
    for (uint32_t i = 0; i < c->trial->nodes; i++) {
        const bool is_there = k < count && ranks[k] == i;
        k += is_there;
        if (!is_there)
            take_out(c, i, &(bool){false});
        else if (!is_member(c, i))
            let_in_from(c, i, round);
    }
    return note_changes(c, round, error);
}

static int predict(const collector *c, double *seconds, sl_error *error) {
    *seconds = c->consensus.virtual_s;
    if (c->timeline == NULL)
        return 0;
    node_cost cost = forecast_measured(c->records, c->trial->nodes, &c->trial->task);
    sl_platform platform = forecast_platform(c->trial->experiment, &cost);
    return sl_timeline_seconds(seconds, c->timeline, &platform, 0, error);
}

int collector_spans(const collector *c, void (*take)(void *context, const sl_span *span),
                    void *context, sl_error *error) {
    node_cost cost = forecast_measured(c->records, c->trial->nodes, &c->trial->task);
    sl_platform platform = forecast_platform(c->trial->experiment, &cost);
    return sl_timeline_spans(c->timeline, &platform, take, context, error);
}

/* Of a run that is compared; the summary comes after it. */
static int keep_timeline(const collector *c, sl_error *error) {
    char path[TIMELINE_PATH_MAX];
    if (c->timeline == NULL || c->compared_at == NULL)
        return 0;
    timeline_path(path, c->compared_at);
    return sl_timeline_write(c->timeline, path, error);
}

/* Who began the run is lost, and did not leave. A simulation loses whom it is told to. */
static const char *find_missing(collector *c) {
    const uint64_t rounds = c->trial->task.rounds;
    for (uint32_t i = 0; i < c->trial->nodes && strcmp(c->driver, "sim") != 0; i++) {
        const sl_loss *loss = is_member(c, i) || c->since[i] > 0 ? NULL : last_loss(c, i);
        if (loss != NULL && !loss->left && c->records[i].round.round < rounds)
            missing_add(&c->missing, i, loss->round, rounds);
    }
    return missing_text(&c->missing, c->trial->nodes);
}

/* Who was lost before it recorded anything, or never came, has no line. */
static size_t close_up_records(collector *c) {
    size_t count = 0;
    for (uint32_t i = 0; i < c->trial->nodes; i++)
        if (c->records[i].round.round > 0)
            c->records[count++] = c->records[i];
    memset(c->records + count, 0, (c->trial->nodes - count) * sizeof *c->records);
    return count;
}

int collector_finish(collector *c, sl_summary *out, sl_error *error) {
    const char *gone = find_missing(c);
    sl_summary summary = {
        .driver = c->driver,
        .rounds = c->trial->task.rounds,
        .nodes = c->trial->nodes,
        .records = c->records,
        .has_consensus = c->has_consensus,
        .consensus = c->consensus,
        .seconds = now_seconds() - c->began,
        .losses = c->losses,
        .loss_count = c->loss_count,
        .members = c->members,
        .member_count = c->loss_count > 0 ? c->member_count : 0,
        .missing = gone,
        .minority = sl_is_minority(c->trial->nodes, c->missing.count),
    };
    int result = predict(c, &summary.predicted_seconds, error);
    summary.record_count = close_up_records(c);
    if (result == 0)
        result = sl_folder_model(c->folder, -1, "", c->mean, c->trial->task.dimension, error);
    if (result == 0)
        result = keep_timeline(c, error);
    if (result == 0)
        result = sl_folder_summary(c->folder, &summary, error);
    if (result == 0)
        result = sl_folder_close(&c->folder, error);
    add_up_bytes(c);
    if (result == 0)
        result = run_info_end(&c->info, "done", summary.missing, error);
    live_view_clear(c->view);
    if (result == 0)
        *out = summary;
    return result;
}
