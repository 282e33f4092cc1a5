/* recorded.c - see recorded.h. */
#include "sim/recorded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void close_round(sl_recorded_round *round) {
    free(round->records);
    free(round->weights);
    free(round->models);
    free(round);
}

void sl_recorded_close(sl_recorded *r) {
    while (r->first_round != NULL) {
        sl_recorded_round *next = r->first_round->next;
        close_round(r->first_round);
        r->first_round = next;
    }
    free(r->first);
}

static sl_recorded_round *open_round(const sl_recorded *r, uint64_t number) {
    sl_recorded_round *round = calloc(1, sizeof *round);
    if (round == NULL)
        return NULL;
    round->round = number;
    round->records = calloc(r->nodes, sizeof *round->records);
    round->weights = calloc(r->nodes, sizeof *round->weights);
    round->models = malloc(r->nodes * r->task->dimension * sizeof *round->models);
    if (round->records != NULL && round->weights != NULL && round->models != NULL)
        return round;
    close_round(round);
    return NULL;
}

/* Among those that are open; NULL: out of memory. */
static sl_recorded_round *find(sl_recorded *r, uint64_t number) {
    sl_recorded_round **at = &r->first_round;
    while (*at != NULL && (*at)->round < number)
        at = &(*at)->next;
    if (*at != NULL && (*at)->round == number)
        return *at;
    sl_recorded_round *round = open_round(r, number);
    if (round != NULL) {
        round->next = *at;
        *at = round;
    }
    return round;
}

static const float *model_of(const sl_recorded *r, const sl_recorded_round *round, uint32_t rank) {
    return round->models + rank * r->task->dimension;
}

static uint32_t ends(const sl_recorded *r, uint32_t rank, uint64_t round) {
    if (r->first != NULL)
        return round >= r->first[rank];
    return r->does != NULL ? r->does[rank * (r->task->rounds + 1) + round] : 1;
}

static int report_parameters(const sl_recorded *r, const sl_recorded_round *round) {
    int result = 0;
    if (r->observer->parameters == NULL ||
        !sl_record_parameters_due(&r->experiment->record, round->round))
        return 0;
    for (uint32_t i = 0; i < r->nodes && result == 0; i++)
        if (ends(r, i, round->round) > 0)
            result = r->observer->parameters(r->observer->context, round->round, i,
                                             model_of(r, round, i), round->weights[i]);
    return result;
}

int sl_recorded_report(const sl_recorded *r, const sl_record *record, const float *x) {
    if (r->observer->record == NULL)
        return 0;
    sl_record evaluated = *record;
    evaluated.evaluation = sl_record_evaluates(&r->experiment->record, r->nodes, record->rank)
                               ? r->task->evaluate(r->task->context, x)
                               : (sl_evaluation){NAN, NAN};
    return r->observer->record(r->observer->context, &evaluated, x);
}

static bool is_recorded(const sl_recorded *r, uint64_t round) {
    return !r->by_time && r->observer->record != NULL && round < r->task->rounds &&
           sl_record_due(&r->experiment->record, round, r->task->rounds);
}

static bool is_complete(const sl_recorded *r, const sl_recorded_round *round) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->nodes; i++)
        count += ends(r, i, round->round);
    return round->ended == count;
}

void sl_recorded_tell_members(sl_recorded *r, uint64_t round) {
    uint32_t count = 0;
    bool same = true;
    for (uint32_t i = 0; i < r->nodes && r->ranks != NULL; i++) {
        const bool is_there = ends(r, i, round) > 0;
        same = same && is_there == (ends(r, i, r->told) > 0);
        if (is_there)
            r->ranks[count++] = i;
    }
    if (same || r->observer->members == NULL)
        return;
    r->told = round;
    r->observer->members(r->observer->context, round, r->ranks, count);
}

static int report_records(sl_recorded *r, const sl_recorded_round *round) {
    int result = 0;
    if (is_recorded(r, round->round))
        sl_recorded_tell_members(r, round->round);
    for (uint32_t i = 0; i < r->nodes && result == 0 && is_recorded(r, round->round); i++)
        if (ends(r, i, round->round) > 0)
            result = sl_recorded_report(r, &round->records[i], model_of(r, round, i));
    return result;
}

int sl_recorded_flush(sl_recorded *r) {
    int result = 0;
    while (r->first_round != NULL && is_complete(r, r->first_round) && result == 0) {
        sl_recorded_round *round = r->first_round;
        result = report_parameters(r, round);
        if (result == 0)
            result = report_records(r, round);
        r->first_round = round->next;
        close_round(round);
    }
    return result;
}

void sl_recorded_let(sl_recorded *r, uint32_t rank, uint64_t first) {
    for (sl_recorded_round *round = r->first_round; round != NULL; round = round->next)
        if (first == UINT64_MAX && round->records[rank].round.round == round->round) {
            round->records[rank].round.round = 0;
            round->ended--;
        }
    r->first[rank] = first;
}

int sl_recorded_take(sl_recorded *r, const sl_record *record, const float *x, double weight,
                     sl_error *error) {
    const uint64_t number = record->round.round;
    if (number < r->from ||
        (!is_recorded(r, number) && !sl_record_parameters_due(&r->experiment->record, number)))
        return 0;
    sl_recorded_round *round = find(r, number);
    if (round == NULL)
        return sl_fail(error, SL_ENOMEM, "simulator: out of memory for the models of %u nodes",
                       r->nodes);
    round->records[record->rank] = *record;
    round->weights[record->rank] = weight;
    memcpy(round->models + record->rank * r->task->dimension, x, r->task->dimension * sizeof *x);
    round->ended++;
    return sl_recorded_flush(r);
}
