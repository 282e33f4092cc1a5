/* board.c - where the records of all nodes come together; see board.h.
 *
 * Records of one round arrive in any order, but never those of two rounds of one node: whoever
 * calls waits (`waiting`) until the round is complete. So no model has to be copied.
 */
#include "run/board.h"

#include <stdlib.h>
#include <string.h>

#include "compare/forecast.h"

int board_open(board *out, const trial *t, const char *driver, const char *path, progress *view,
               sl_error *error) {
    uint32_t nodes = t->nodes;
    size_t dimension = t->task.dimension;
    board b = {.trial = t, .progress = view, .driver = driver, .began = now_seconds()};
    b.records = calloc(nodes, sizeof *b.records);
    b.waiting = calloc(nodes, sizeof *b.waiting);
    b.models = calloc(nodes, sizeof *b.models);
    b.mean = calloc(dimension, sizeof *b.mean);
    int result = 0;
    if (b.records == NULL || b.waiting == NULL || b.models == NULL || b.mean == NULL)
        result = sl_fail(error, SL_ENOMEM,
                         "out of memory for the records of %u nodes and a model of %zu parameters",
                         nodes, dimension);
    if (result == 0)
        result = sl_folder_open(&b.folder, path, t->experiment, true, error);
    if (result != 0) {
        board_close(&b);
        return result;
    }
    *out = b;
    return 0;
}

void board_close(board *b) {
    sl_folder_close(&b->folder, NULL);
    sl_timeline_close(&b->timeline);
    free(b->records);
    free(b->waiting);
    free(b->models);
    free(b->mean);
    free(b->milestones);
    b->milestones = NULL;
    b->records = NULL;
    b->waiting = NULL;
    b->models = NULL;
    b->mean = NULL;
}

static int remember(board *b, double bytes_per_node, sl_error *error) {
    if (b->milestone_count == b->milestone_room) {
        size_t room = b->milestone_room ? 2 * b->milestone_room : 32;
        milestone *milestones = realloc(b->milestones, room * sizeof *milestones);
        if (milestones == NULL)
            return sl_fail(error, SL_ENOMEM, "out of memory for %zu recorded rounds", room);
        b->milestones = milestones;
        b->milestone_room = room;
    }
    b->milestones[b->milestone_count++] =
        (milestone){b->records[0].round.round, b->consensus, bytes_per_node};
    return 0;
}

static int show(board *b, sl_error *error) {
    uint32_t nodes = b->trial->nodes;
    measured m = {.round = b->records[0].round.round,
                  .accuracy_mean_model = b->consensus.mean_model.accuracy};
    m.consensus = b->consensus.distance;
    for (uint32_t i = 0; i < nodes; i++) {
        m.loss += b->records[i].round.loss / nodes;
        m.accuracy += b->records[i].evaluation.accuracy / nodes;
        m.bytes_per_node += (double)b->records[i].bytes_sent / nodes;
    }
    progress_measured(b->progress, &m);
    return remember(b, m.bytes_per_node, error);
}

static int write_models(const board *b, sl_error *error) {
    int result = 0;
    for (uint32_t i = 0; i < b->trial->nodes && result == 0; i++)
        result = sl_folder_model(b->folder, i, "", b->models[i], b->trial->task.dimension, error);
    return result;
}

static int complete_round(board *b, sl_error *error) {
    const sl_task *task = &b->trial->task;
    b->consensus.distance =
        sl_consensus_distance(b->models, b->trial->nodes, task->dimension, b->mean);
    b->consensus.mean_model = task->evaluate(task->context, b->mean);
    b->has_consensus = true;
    memset(b->waiting, 0, b->trial->nodes * sizeof *b->waiting);
    b->waiting_count = 0;
    uint64_t round = b->records[0].round.round;
    int result = show(b, error);
    if (result == 0)
        result = sl_folder_consensus(b->folder, round, &b->consensus, error);
    if (result == 0)
        result = sl_folder_remember(b->folder, round, &b->consensus.mean_model, b->mean,
                                    task->dimension, error);
    if (result == 0)
        result = sl_folder_best(b->folder, -1, round, &b->consensus.mean_model, b->mean,
                                task->dimension, error);
    if (result == 0 && round == task->rounds)
        result = write_models(b, error);
    return result;
}

int board_record(board *b, const sl_record *record, const float *x, sl_error *error) {
    int result = sl_folder_metrics(b->folder, record, error);
    if (result != 0)
        return result;
    b->records[record->rank] = *record;
    b->models[record->rank] = x;
    if (b->incomplete)
        return 0;
    b->waiting[record->rank] = true;
    return ++b->waiting_count == b->trial->nodes ? complete_round(b, error) : 0;
}

static int predict(const board *b, double *seconds, sl_error *error) {
    if (b->timeline == NULL)
        return 0;
    node_cost cost = forecast_measured(b->records, b->trial->nodes);
    sl_platform platform = forecast_platform(&b->trial->experiment->network, &cost);
    return sl_timeline_seconds(seconds, b->timeline, &platform, 0, error);
}

int board_finish(board *b, sl_summary *out, sl_error *error) {
    sl_summary summary = {
        .driver = b->driver,
        .rounds = b->trial->task.rounds,
        .nodes = b->trial->nodes,
        .record_count = b->trial->nodes,
        .records = b->records,
        .has_consensus = b->has_consensus,
        .consensus = b->consensus,
        .seconds = now_seconds() - b->began,
    };
    int result = predict(b, &summary.predicted_seconds, error);
    if (result == 0)
        result = sl_folder_model(b->folder, -1, "", b->mean, b->trial->task.dimension, error);
    if (result == 0)
        result = sl_folder_summary(b->folder, &summary, error);
    if (result == 0)
        result = sl_folder_close(&b->folder, error);
    progress_clear(b->progress);
    if (result == 0)
        *out = summary;
    return result;
}
