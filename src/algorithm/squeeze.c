/* squeeze.c - see squeeze.h. */
#include "algorithm/squeeze.h"

bool sl_is_compressed(const sl_algorithm_config *config) {
    return config->compressor.kind != SL_COMPRESSOR_IDENTITY;
}

bool sl_sums_sparse(const sl_algorithm_config *config) {
    return sl_is_compressed(config) && config->all_reduce != SL_ALL_REDUCE_RING;
}

bool sl_sends_to_all(const sl_algorithm_config *config) {
    return !sl_sums_sparse(config);
}

static bool keeps_fresh(const sl_algorithm_config *config) {
    return sl_compressor_reads_fresh(config->compressor.kind);
}

size_t sl_squeeze_vectors(const sl_algorithm_config *config) {
    return config->directions == SL_DIRECTIONS_BOTH || keeps_fresh(config) ? 2 : 1;
}

bool sl_squeeze_is_both(const sl_state *s) {
    return s->config->directions == SL_DIRECTIONS_BOTH;
}

bool sl_squeeze_is_up(const sl_state *s) {
    return !sl_squeeze_is_both(s);
}

static bool feeds_back(const sl_state *s) {
    return s->config->error_feedback == SL_SWITCH_ON;
}

void sl_squeeze_load(sl_state *s, size_t from, size_t count) {
    float *v = s->extra[SL_SQUEEZE_SENT] + from, *u = s->g + from;
    s->vec->combine(v, (const float *const[]){u, v}, (const float[]){1, 1}, feeds_back(s) ? 2 : 1,
                    count);
    if (keeps_fresh(s->config))
        sl_copy(s, s->extra[SL_SQUEEZE_FRESH] + from, u, count);
    s->vec->fill(u, 0, count);
    if (sl_squeeze_is_both(s) && !feeds_back(s))
        s->vec->fill(s->extra[SL_SQUEEZE_SERVED] + from, 0, count);
}

const float *sl_squeeze_sent(const sl_state *s) {
    return s->extra[SL_SQUEEZE_SENT];
}

const float *sl_squeeze_fresh(const sl_state *s) {
    return keeps_fresh(s->config) ? s->extra[SL_SQUEEZE_FRESH] : NULL;
}

const float *sl_squeeze_served(const sl_state *s) {
    return s->extra[SL_SQUEEZE_SERVED];
}

static float *sum(const sl_state *s) {
    return sl_squeeze_is_both(s) ? s->extra[SL_SQUEEZE_SERVED] : s->g;
}

static void add_own(sl_state *s, const sl_part *mine) {
    if (mine->weight > 0)
        sl_part_add(mine, 1 / (float)s->nodes, sum(s));
}

void sl_squeeze_take(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, -1, s->extra[SL_SQUEEZE_SENT]);
}

void sl_squeeze_take_and_add(sl_state *s, const sl_part *mine) {
    sl_squeeze_take(s, mine);
    add_own(s, mine);
}

void sl_squeeze_send(sl_state *s, const sl_part *mine) {
    if (feeds_back(s))
        sl_squeeze_take(s, mine);
}

void sl_squeeze_send_and_add(sl_state *s, const sl_part *mine) {
    sl_squeeze_send(s, mine);
    add_own(s, mine);
}

void sl_squeeze_add(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1 / (float)s->nodes, sum(s));
}

void sl_squeeze_serve(sl_state *s, const sl_part *mine) {
    if (feeds_back(s))
        sl_part_add(mine, -1, s->extra[SL_SQUEEZE_SERVED]);
    sl_part_add(mine, 1, s->g);
}

void sl_squeeze_follow(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1, s->g);
}

void sl_squeeze_add_sum(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1, s->g);
}

void sl_squeeze_take_sum(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    s->vec->fill(s->g + from, 0, count);
    sl_mix_add(mix, 1, s->g);
}

const char *const sl_direction_names[] = {"up", "both", NULL};
const sl_key sl_squeeze_keys[] = {
    SL_ROWS_SQUEEZE,
    SL_KEYS_END,
};
