/* records.c - lines of metrics and consensus: samples of each node, and a row for each recorded
 * round. Of many lines of a node each second, fourth, ... is kept. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "board/state.h"

enum { SAMPLES_MAX = 480 }; /* of a node; even */

static double number(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* ---- of all nodes ---- */

/* Rounds come nearly in order. */
static sl_recorded *row_of(sl_board_state *s, uint64_t round) {
    size_t at = s->record_count;
    while (at > 0 && s->records[at - 1].round > round)
        at--;
    if (at > 0 && s->records[at - 1].round == round)
        return &s->records[at - 1];
    if (!sl_board_grow((void **)&s->records, &s->record_room, s->record_count, sizeof *s->records))
        return NULL;
    memmove(&s->records[at + 1], &s->records[at], (s->record_count - at) * sizeof *s->records);
    s->record_count++;
    s->records[at] = (sl_recorded){.round = round, .averaged = NAN, .distance = NAN};
    return &s->records[at];
}

static void add(double *sum, uint32_t *count, double value) {
    if (isnan(value))
        return;
    *sum += value;
    ++*count;
}

static int take_round(sl_board_state *s, const json_t *line, uint64_t round, sl_error *error) {
    sl_recorded *row = row_of(s, round);
    if (row == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the run's rounds");
    add(&row->loss, &row->losses, number(line, "loss"));
    add(&row->accuracy, &row->accuracies, number(line, "accuracy"));
    add(&row->apart, &row->aparts, number(line, "neighbour_distance"));
    add(&row->bytes, &row->nodes, number(line, "bytes_sent"));
    return 0;
}

int sl_board_take_consensus(sl_board_state *s, const json_t *line, sl_error *error) {
    sl_recorded *row = row_of(s, (uint64_t)json_integer_value(json_object_get(line, "round")));
    if (row == NULL)
        return sl_fail(error, SL_ENOMEM, "out of memory for the run's rounds");
    row->averaged = number(line, "accuracy");
    row->distance = number(line, "consensus_distance");
    return 0;
}

/* ---- of one ---- */

static void thin(sl_board_node *n) {
    size_t kept = 0;
    for (size_t i = 1; i < n->sample_count; i += 2)
        n->samples[kept++] = n->samples[i];
    n->sample_count = kept;
    n->stride *= 2;
}

/* The newest stands at the end, whether it is kept or not. */
static bool add_sample(sl_board_node *n, const sl_sample *sample) {
    const bool replaces = n->sample_count > 0 && n->lines % n->stride != 0;
    if (n->sample_count == SAMPLES_MAX && !replaces)
        thin(n);
    if (!sl_board_grow((void **)&n->samples, &n->sample_room, n->sample_count, sizeof *n->samples))
        return false;
    n->sample_count -= replaces;
    n->samples[n->sample_count++] = *sample;
    n->lines++;
    return true;
}

static int take_node(sl_board_node *n, const json_t *line, uint64_t round, sl_error *error) {
    const json_t *seconds = json_object_get(line, "seconds");
    const sl_sample sample = {.round = round,
                              .time_s = number(line, "time"),
                              .total = number(seconds, "total"),
                              .gradient = number(seconds, "gradient"),
                              .encode = number(seconds, "encode"),
                              .exchange = number(seconds, "exchange"),
                              .wait = number(seconds, "wait"),
                              .combine = number(seconds, "combine")};
    if (isnan(sample.time_s) || isnan(sample.total))
        return sl_fail(error, SL_EFILE, "time: is missing");
    n->loss = number(line, "loss");
    n->accuracy = number(line, "accuracy");
    n->round = round > n->round ? round : n->round;
    n->bytes_sent = number(line, "bytes_sent");
    return add_sample(n, &sample) ? 0 : sl_fail(error, SL_ENOMEM, "out of memory for a node");
}

int sl_board_take_metrics(sl_board_state *s, const json_t *line, sl_error *error) {
    const json_t *round = json_object_get(line, "round"), *node = json_object_get(line, "node");
    if (!json_is_integer(round) || !json_is_integer(node) || json_integer_value(node) < 0)
        return sl_fail(error, SL_EFILE, "round or node: is missing");
    const uint64_t at = (uint64_t)json_integer_value(round),
                   rank = (uint64_t)json_integer_value(node);
    int result = take_round(s, line, at, error);
    if (result != 0 || rank >= s->node_count)
        return result;
    result = take_node(&s->nodes[rank], line, at, error);
    sl_board_set_clock(s, (uint32_t)rank);
    return result;
}
