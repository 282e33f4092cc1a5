/* known.c - see known.h. */
#include "algorithm/centralized/known.h"

#include "algorithm/mix.h"

void sl_known_read_news(void *state, size_t from, size_t count, float *out) {
    const sl_state *s = state;
    sl_subtract(s, out, s->g + from, s->extra[SL_KNOWN] + from, count);
}

void sl_known_take_own_in_mean(sl_state *s, const sl_part *mine) {
    if (mine->weight > 0)
        sl_part_add(mine, 1 / (float)s->nodes, s->extra[SL_KNOWN_MEAN]);
}

void sl_known_take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, 1, s->extra[SL_KNOWN]);
    sl_known_take_own_in_mean(s, mine);
}

void sl_known_take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_mix_add(mix, 1 / (float)s->nodes, s->extra[SL_KNOWN_MEAN]);
}

void sl_known_load_mean(sl_state *s, size_t from, size_t count) {
    sl_copy(s, s->g + from, s->extra[SL_KNOWN_MEAN] + from, count);
}

void sl_known_begin(sl_state *s, size_t dimension) {
    sl_copy(s, s->extra[SL_KNOWN_BEFORE], s->x, dimension);
}

double sl_known_moved(sl_state *s) {
    const size_t count = s->config->depth;
    s->own_numbers[s->exchange % count] =
        s->vec->distance_squared(s->x, s->extra[SL_KNOWN_BEFORE], s->dimension);
    sl_known_begin(s, s->dimension);
    double moved = 0;
    for (size_t k = 0; k < count; k++)
        moved += s->config->xi * s->own_numbers[k];
    return moved;
}
