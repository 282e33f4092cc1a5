/* warm_up.c - see warm_up.h. */
#include "algorithm/centralized/warm_up.h"

#include <math.h>
#include <stdio.h>

#include "algorithm/algorithms.h"

enum { LOOKS_MAX = 25 };

/* Its own numbers: the round that it ended after, or 0; |v|_1; |u|_1 when it was looked at. */
enum { LAST, SIZE, LOOKS, NUMBERS = LOOKS + LOOKS_MAX };
_Static_assert(NUMBERS <= SL_ALGORITHM_NUMBERS_MAX, "checkpoints have room for so many");

size_t sl_warm_up_numbers(const sl_algorithm_config *c) {
    return c->warmup_ratio > 0 ? NUMBERS : 0;
}

static uint64_t memory_of(const sl_algorithm_config *c) {
    return (uint64_t)fmax(1, round(1 / (1 - c->beta2)));
}

static uint64_t rounded_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

/* Rounds from one look to the next, and looks in D rounds. */
static uint64_t stride_of(const sl_algorithm_config *c) {
    return rounded_up(memory_of(c), LOOKS_MAX);
}

static uint64_t looks_of(const sl_algorithm_config *c) {
    return rounded_up(memory_of(c), stride_of(c));
}

uint64_t sl_warm_up_earliest(const sl_algorithm_config *c) {
    return (looks_of(c) + 1) * stride_of(c);
}

bool sl_warm_up_is_on(const sl_state *s) {
    const bool is_over = s->config->warmup_ratio > 0 && s->own_numbers[LAST] > 0 &&
                         (double)s->round > s->own_numbers[LAST];
    return !is_over && sl_turn_of_view(s) <= s->config->warmup_rounds;
}

/* Compares with what was there D rounds ago, in whose place it goes. */
static void look(sl_state *s, uint64_t number) {
    const sl_algorithm_config *c = s->config;
    const double now = s->own_numbers[SIZE] / (1 - pow(c->beta2, (double)sl_turn_of_view(s)));
    double *place = &s->own_numbers[LOOKS + number % looks_of(c)];
    if (number > looks_of(c) && *place > 0 && now >= c->warmup_ratio * *place)
        s->own_numbers[LAST] = (double)s->round;
    *place = now;
}

void sl_warm_up_note(sl_state *s) {
    const double beta = s->config->beta2;
    if (s->config->warmup_ratio <= 0)
        return;
    s->own_numbers[SIZE] =
        beta * s->own_numbers[SIZE] + (1 - beta) * s->vec->norm2_squared(s->g, s->dimension);
    if (sl_turn_of_view(s) % stride_of(s->config) == 0)
        look(s, sl_turn_of_view(s) / stride_of(s->config));
}

void sl_warm_up_warn(const sl_algorithm_config *c, char *out, size_t bytes) {
    if (c->warmup_rounds < memory_of(c))
        snprintf(out, bytes,
                 "algorithm.warmup_rounds is %llu, and v needs about 1/(1 - beta2) = %llu rounds "
                 "before it stands still: the steps may be too long; usual is 15 %% of the run",
                 (unsigned long long)c->warmup_rounds, (unsigned long long)memory_of(c));
}

void sl_warm_up_defaults(sl_algorithm_config *c) {
    if (c->warmup_rounds == SL_COUNT_AUTO && c->warmup_ratio <= 0)
        c->warmup_rounds = 1;
}
