/* observer.c - which rounds are recorded, and the consensus distance; see starling/observer.h. */
#include "starling/observer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const uint64_t records_of_a_run = 20;

bool sl_is_minority(uint32_t began, uint32_t gone) {
    return 2 * (uint64_t)(began - gone) < began;
}

uint64_t sl_record_every(const sl_record_config *config, uint64_t rounds) {
    if (config->every > 0)
        return config->every;
    return rounds > records_of_a_run ? rounds / records_of_a_run : 1;
}

bool sl_record_due(const sl_record_config *config, uint64_t round, uint64_t rounds) {
    return round == rounds || round % sl_record_every(config, rounds) == 0;
}

uint32_t sl_record_evaluated(const sl_record_config *config, uint32_t nodes) {
    if (config->evaluate > 0)
        return config->evaluate < nodes ? config->evaluate : nodes;
    return nodes > SL_RECORD_NODES_ALL ? SL_RECORD_NODES_SAMPLE : nodes;
}

bool sl_record_evaluates(const sl_record_config *config, uint32_t nodes, uint32_t rank) {
    uint64_t count = sl_record_evaluated(config, nodes);
    return (rank + 1) * count / nodes > rank * count / nodes;
}

bool sl_record_parameters_due(const sl_record_config *config, uint64_t round) {
    for (size_t i = 0; i < config->parameters_at_count; i++)
        if (config->parameters_at[i] == round)
            return true;
    return false;
}

void sl_record_take_round(sl_record *record, const sl_round *round, size_t header_bytes) {
    record->round = *round;
    record->bytes_sent += round->payload_bytes_sent + round->frames_sent * header_bytes;
    record->bytes_received += round->payload_bytes_received + round->frames_received * header_bytes;
    record->messages_sent += round->messages_sent;
    record->messages_silent += round->messages_silent;
    record->doubtful += round->doubtful;
}

bool sl_record_doubts(const sl_record *r, char text[SL_DOUBT_TEXT_MAX]) {
    if (r->round.doubtful == 0 || r->doubtful != r->round.doubtful)
        return false;
    snprintf(text, SL_DOUBT_TEXT_MAX,
             "warning: node %u, round %" PRIu64 ": %" PRIu64
             " received elements lie so far from its own that they were perhaps decoded wrongly; "
             "raise algorithm.theta",
             r->rank, r->round.round, r->round.doubtful);
    return true;
}

void sl_record_pieces(sl_record *r, sl_piece out[SL_RECORD_PIECES]) {
    const sl_piece all[SL_RECORD_PIECES] = {
        {.name = "bytes_sent", .whole = &r->bytes_sent},
        {.name = "bytes_received", .whole = &r->bytes_received},
        {.name = "all_messages_sent", .whole = &r->messages_sent},
        {.name = "all_messages_silent", .whole = &r->messages_silent},
        {.name = "seconds.total", .real = &r->times.total},
        {.name = "seconds.gradient", .real = &r->times.gradient},
        {.name = "seconds.encode", .real = &r->times.encode},
        {.name = "seconds.exchange", .real = &r->times.exchange},
        {.name = "seconds.wait", .real = &r->times.wait},
        {.name = "seconds.combine", .real = &r->times.combine},
    };
    memcpy(out, all, sizeof all);
}

double sl_consensus_distance(const float *const *models, uint32_t nodes, size_t dimension,
                             float *mean) {
    double total = 0;
    for (size_t k = 0; k < dimension; k++) {
        double sum = 0, squares = 0;
        for (uint32_t i = 0; i < nodes; i++)
            sum += models[i][k];
        double average = sum / nodes;
        for (uint32_t i = 0; i < nodes; i++) {
            double difference = models[i][k] - average;
            squares += difference * difference;
        }
        total += squares;
        mean[k] = (float)average;
    }
    return sqrt(total / nodes);
}

static sl_log_outcome outcome_of(int code) {
    if (code == 0)
        return SL_LOG_DONE;
    if (code == SL_ESAVED)
        return SL_LOG_SAVED;
    if (code == SL_ELEFT)
        return SL_LOG_LEFT;
    return code == SL_ESTOPPED ? SL_LOG_STOPPED : SL_LOG_FAILED;
}

sl_log_entry sl_log_end(uint64_t round, const sl_error *error) {
    sl_log_entry end = {.kind = SL_LOG_END, .round = round, .outcome = outcome_of(error->code)};
    if (error->code != 0)
        snprintf(end.why, sizeof end.why, "%s", error->text);
    return end;
}
