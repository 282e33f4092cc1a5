/* recording.c - see recording.h. */
#include "session/recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "starling/folder.h"

struct sl_recording {
    sl_experiment *experiment;
    const char *path; /* of the folder */
    void (*evaluate)(void *context, const float *x, uint64_t dimension, double *loss,
                     double *accuracy);
    void *context;
    sl_folder *folder;
    uint32_t nodes, arrived; /* arrived: nodes that have recorded the round under way */
    size_t dimension;
    uint64_t every, written; /* rounds from one record to the next; the last that was written */
    sl_record *records;      /* (nodes) the last of each */
    const float **models;    /* (nodes) borrowed */
    float *mean;             /* (dimension) */
    sl_consensus consensus;
    double began, began_utc;
    bool finished;
};

int sl_recording_open(sl_recording **out, sl_experiment *experiment,
                      const sl_session_options *options, sl_error *error) {
    const uint32_t nodes = sl_topology_nodes(experiment->topology);
    sl_recording *r = calloc(1, sizeof *r);
    if (r == NULL)
        return sl_fail(error, SL_ENOMEM, "simulate: out of memory for its run folder");
    *r = (sl_recording){.experiment = experiment,
                        .path = options->out,
                        .evaluate = options->evaluate,
                        .context = options->context,
                        .nodes = nodes,
                        .every = experiment->record.every,
                        .records = calloc(nodes, sizeof *r->records),
                        .models = calloc(nodes, sizeof *r->models),
                        .began = sl_clock_seconds(),
                        .began_utc = (double)time(NULL)};
    experiment->rounds = 1; /* a folder's experiment has some; the end says how many */
    int result = r->records != NULL && r->models != NULL
                     ? sl_folder_open(&r->folder, r->path, experiment, true, error)
                     : sl_fail(error, SL_ENOMEM, "simulate: out of memory for %u records", nodes);
    experiment->record.every = 1;
    if (result == 0)
        *out = r;
    else
        sl_recording_close(&r, NULL);
    return result;
}

int sl_recording_begin(sl_recording *r, size_t dimension, sl_error *error) {
    if (r->finished)
        return sl_fail(error, SL_EINVAL,
                       "options.out: is the folder of one run, and all peers join again; leave it "
                       "out");
    const sl_tensor whole = {.name = "x", .shape = {dimension}, .axes = 1};
    r->dimension = dimension;
    r->mean = calloc(dimension, sizeof *r->mean);
    if (r->mean == NULL)
        return sl_fail(error, SL_ENOMEM, "simulate: out of memory for %zu parameters", dimension);
    return sl_folder_layout(r->folder, &whole, 1, error);
}

static sl_evaluation score(const sl_recording *r, const float *x) {
    sl_evaluation e = {NAN, NAN};
    if (r->evaluate != NULL)
        r->evaluate(r->context, x, r->dimension, &e.loss, &e.accuracy);
    return e;
}

static int write_nodes(sl_recording *r, sl_error *error) {
    int result = 0;
    for (uint32_t i = 0; i < r->nodes && result == 0; i++) {
        sl_record *mine = &r->records[i];
        mine->evaluation = sl_record_evaluates(&r->experiment->record, r->nodes, i)
                               ? score(r, r->models[i])
                               : (sl_evaluation){NAN, NAN};
        mine->round.loss = NAN; /* the caller's own */
        mine->time_s = sl_clock_seconds() - r->began;
        result = sl_folder_metrics(r->folder, mine, error);
    }
    return result;
}

static int write_round(sl_recording *r, sl_error *error) {
    const uint64_t round = r->records[0].round.round;
    int result = write_nodes(r, error);
    r->consensus.distance = sl_consensus_distance(r->models, r->nodes, r->dimension, r->mean);
    r->consensus.mean_model = score(r, r->mean);
    r->consensus.bytes_sent = 0;
    for (uint32_t i = 0; i < r->nodes; i++)
        r->consensus.bytes_sent += (double)r->records[i].bytes_sent / r->nodes;
    if (result == 0)
        result = sl_folder_consensus(r->folder, round, &r->consensus, error);
    if (result == 0 && r->evaluate != NULL)
        result = sl_folder_best(r->folder, -1, round, &r->consensus.mean_model, r->mean,
                                r->dimension, error);
    r->written = round;
    return result;
}

int sl_recording_take(sl_recording *r, const sl_record *record, const float *x, sl_error *error) {
    r->records[record->rank] = *record;
    r->models[record->rank] = x;
    if (++r->arrived < r->nodes)
        return 0;
    r->arrived = 0;
    return record->round.round % r->every == 0 ? write_round(r, error) : 0;
}

int sl_recording_parameters(sl_recording *r, uint64_t round, uint32_t rank, const float *x,
                            double push_sum_weight, sl_error *error) {
    return sl_folder_parameters(r->folder, round, rank, x, r->dimension, push_sum_weight, error);
}

int sl_recording_finish(sl_recording *r, sl_error *error) {
    const uint64_t rounds = r->records[0].round.round;
    int result = rounds > 0 && rounds != r->written ? write_round(r, error) : 0;
    r->finished = true;
    r->experiment->rounds = rounds > 0 ? rounds : 1;
    r->experiment->record.every = r->every;
    for (uint32_t i = 0; i < r->nodes && rounds > 0 && result == 0; i++)
        result = sl_folder_model(r->folder, i, "", r->models[i], r->dimension, error);
    if (result == 0 && rounds > 0)
        result = sl_folder_model(r->folder, -1, "", r->mean, r->dimension, error);
    return result;
}

/* Rounds that all peers have ended; another one may have begun. */
static int predict(double *seconds, const sl_network_config *n, const sl_timeline *timeline,
                   uint64_t rounds, sl_error *error) {
    const sl_platform platform = {.bandwidth_mbit = n->bandwidth_mbit,
                                  .latency_ms = n->latency_ms,
                                  .compute_ms = n->gradient_ms,
                                  .speeds = n->speed_count > 0 ? n->speeds : NULL,
                                  .links = n->links.rows > 0 ? &n->links : NULL};
    const bool asked =
        n->bandwidth_mbit > 0 || n->latency_ms > 0 || n->gradient_ms > 0 || n->links.rows > 0;
    *seconds = 0;
    return asked ? sl_timeline_seconds(seconds, timeline, &platform, rounds, error) : 0;
}

int sl_recording_summarise(sl_recording *r, const sl_timeline *timeline, sl_error *error) {
    const uint64_t rounds = r->records[0].round.round;
    sl_summary summary = {.driver = "simulate",
                          .rounds = rounds,
                          .nodes = r->nodes,
                          .record_count = r->nodes,
                          .records = r->records,
                          .has_consensus = rounds > 0,
                          .consensus = r->consensus,
                          .seconds = sl_clock_seconds() - r->began};
    int result =
        predict(&summary.predicted_seconds, &r->experiment->network, timeline, rounds, error);
    if (result == 0)
        result = sl_folder_summary(r->folder, &summary, error);
    return result == 0 ? sl_folder_close(&r->folder, error) : result;
}

static void tell_end(const sl_recording *r, const char *why) {
    sl_run_end end = {.driver = "simulate",
                      .why = r->finished   ? why
                             : why != NULL ? why
                                           : "it did not begin",
                      .began = r->began_utc,
                      .ended = (double)time(NULL)};
    for (uint32_t i = 0; r->records != NULL && i < r->nodes; i++) {
        end.sent += r->records[i].bytes_sent;
        end.received += r->records[i].bytes_received;
    }
    r->experiment->record.every = r->every;
    sl_folder_end(r->path, r->experiment, &end, NULL);
}

void sl_recording_close(sl_recording **recording, const char *why) {
    sl_recording *r = *recording;
    if (r == NULL)
        return;
    if (r->folder != NULL || r->finished)
        tell_end(r, why);
    sl_folder_close(&r->folder, NULL);
    free(r->records);
    free(r->models);
    free(r->mean);
    free(r);
    *recording = NULL;
}
