/* mean_loss.c - see mean_loss.h. */
#include "algorithm/local/mean_loss.h"

#include "algorithm/algorithms.h"

uint64_t sl_loss_rounds(const sl_state *s) {
    return s->round - (uint64_t)s->own_numbers[SL_LOSS_LAST];
}

double sl_loss_own(const sl_state *s) {
    return s->own_numbers[SL_LOSS_SUM] / (double)sl_loss_rounds(s);
}

void sl_loss_note(sl_state *s) {
    s->own_numbers[SL_LOSS_SUM] += s->loss;
    s->own_numbers[SL_LOSS_HEARD] = sl_loss_own(s);
}

/* Of several servers, each of a shard, the last one's shard is never empty. */
static uint32_t leader(const sl_state *s) {
    return s->config->server == SL_SERVER_SHARDED ? s->nodes - 1 : (uint32_t)s->config->server;
}

double sl_loss_of_all(const sl_state *s) {
    return s->own_numbers[SL_LOSS_HEARD] / s->nodes;
}

void sl_loss_add_model(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    for (size_t j = 0; j < mix->k; j++)
        s->own_numbers[SL_LOSS_HEARD] += mix->parts[j].index == 0 ? mix->parts[j].scalar : 0;
    sl_add_model(s, mix, from, count);
}

void sl_loss_copy_model(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    if (mix->parts[0].message.sender == leader(s))
        s->own_numbers[SL_LOSS_MEAN] = mix->parts[0].scalar;
    sl_copy_model(s, mix, from, count);
}

double sl_loss_end(sl_state *s) {
    if (s->rank == leader(s))
        s->own_numbers[SL_LOSS_MEAN] = sl_loss_of_all(s);
    s->own_numbers[SL_LOSS_LAST] = (double)s->round;
    s->own_numbers[SL_LOSS_SUM] = 0;
    return s->own_numbers[SL_LOSS_MEAN];
}
