/* replicas.c - see replicas.h. */
#include "algorithm/gossip/replicas.h"

bool sl_replicas_are_summed(const sl_state *s) {
    return s->config->replicas == SL_REPLICAS_SUM;
}

void sl_replicas_take(sl_state *s, const sl_mix *mix) {
    if (sl_replicas_are_summed(s)) {
        sl_mix_add(mix, 1, s->replicas[0]);
        return;
    }
    for (size_t j = 0; j < mix->k; j++)
        sl_part_add(&mix->parts[j], 1, s->replicas[mix->parts[j].neighbour]);
}

void sl_replicas_add_to(sl_terms *sum, const sl_state *s, float factor, size_t from) {
    if (s->alone)
        return;
    if (sl_replicas_are_summed(s)) {
        sl_terms_add(sum, s->replicas[0] + from, factor);
        return;
    }
    for (uint32_t j = 0; j < s->in.count; j++)
        sl_terms_add(sum, s->replicas[j] + from, factor * (float)s->in.weights[j]);
}
