/* weights.c - see weights.h. */
#include "node/weights.h"

#include <stdlib.h>

int sl_weights_open(sl_node *n) {
    sl_state *s = &n->state;
    const sl_codec_set *set = sl_codecs_find(&n->codecs, s->dimension, n->algorithm->stages, 1);
    n->push_sum_weight = 1;
    if (n->algorithm->matrix != SL_MATRIX_COLUMN)
        return 0;
    s->weight_count = sl_codec_parts(set->codec);
    s->weighed = sl_node_part_range(set->codec, 0, 0).count;
    s->push_sum_weights = calloc(s->weight_count, sizeof *s->push_sum_weights);
    s->next_push_sum_weights = calloc(s->weight_count, sizeof *s->next_push_sum_weights);
    if (s->push_sum_weights == NULL || s->next_push_sum_weights == NULL)
        return SL_ENOMEM;
    sl_weights_spread(n);
    return 0;
}

void sl_weights_close(sl_node *n) {
    free(n->state.push_sum_weights);
    free(n->state.next_push_sum_weights);
}

void sl_weights_begin(sl_node *n) {
    n->push_sum_weight = 1;
    sl_weights_spread(n);
}

void sl_weights_note(sl_node *n) {
    const sl_state *s = &n->state;
    uint32_t alike = 0;
    while (alike < s->weight_count && s->push_sum_weights[alike] == s->push_sum_weights[0])
        alike++;
    if (s->weight_count > 0)
        n->push_sum_weight = alike == s->weight_count ? s->push_sum_weights[0] : 0;
}

void sl_weights_spread(sl_node *n) {
    for (uint32_t k = 0; k < n->state.weight_count && n->push_sum_weight > 0; k++)
        n->state.push_sum_weights[k] = n->push_sum_weight;
}

uint32_t sl_weights_alike(const sl_node *n, const sl_group *g, uint32_t count) {
    const double *own = n->state.push_sum_weights + g->combined;
    uint32_t alike = 1;
    for (bool same = true; alike < count; alike += same) {
        same = own[alike] == own[0];
        for (uint32_t i = g->first; i < g->first + g->count && same; i++) {
            const sl_arrival *first = sl_queue_first(n->incoming[i].queue),
                             *next = sl_queue_at(n->incoming[i].queue, alike);
            same = next == NULL || next->scalar == first->scalar;
        }
        if (!same)
            break;
    }
    return alike;
}

double sl_node_push_sum_weight(const sl_node *n) {
    const sl_state *s = &n->state;
    double sum = 0;
    if (n->push_sum_weight > 0)
        return n->push_sum_weight;
    for (uint32_t k = 0; k < s->weight_count; k++) {
        const size_t from = k * s->weighed, left = s->dimension - from;
        sum += s->push_sum_weights[k] * (double)(left < s->weighed ? left : s->weighed);
    }
    return sum / (double)s->dimension;
}
