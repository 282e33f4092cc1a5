/* choco.c - see choco.h. */
#include "algorithm/gossip/choco.h"

#include "algorithm/own_keys.h"

enum { HAT = 0 };

bool sl_choco_has_moved(const sl_state *s, uint64_t round, const sl_sgd *step) {
    const sl_algorithm_config *c = s->config;
    if (c->trigger <= 0)
        return true;
    const double gamma = step->learning_rate,
                 near = c->trigger * pow((double)round, c->trigger_growth) * gamma * gamma;
    return !(s->vec->distance_squared(s->x, s->extra[HAT], s->dimension) <= near);
}

void sl_choco_defaults(sl_algorithm_config *c) {
    sl_default(&c->trigger, 0);
}

bool sl_choco_restates(const sl_state *s) {
    return sl_begins_view(s);
}

bool sl_choco_differs(const sl_state *s) {
    return !sl_choco_restates(s);
}

void sl_choco_read_difference(void *state, size_t from, size_t count, float *out) {
    const sl_state *s = state;
    sl_subtract(s, out, s->x + from, s->extra[HAT] + from, count);
}

void sl_choco_take_own(sl_state *s, const sl_part *mine) {
    sl_part_add(mine, 1, s->extra[HAT]);
}

void sl_choco_take_theirs(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    (void)from;
    (void)count;
    sl_replicas_take(s, mix);
}

void sl_choco_take_model(sl_state *s, size_t from, size_t count) {
    sl_copy(s, s->extra[HAT] + from, s->x + from, count);
}

void sl_choco_mix(sl_state *s, size_t from, size_t count) {
    sl_terms sum = sl_terms_begin(s, s->x + from, count);
    sl_terms_add(&sum, s->x + from, 1);
    sl_replicas_add_to(&sum, s, s->step_size, from);
    sl_terms_add(&sum, s->extra[HAT] + from, -s->step_size * sl_given(s));
    sl_terms_end(&sum);
}

const sl_key sl_choco_keys[] = {
    {SL_ROW_CONSENSUS_STEP, .help = "step size of the mixing, 0 = derived from the compressor"},
    {SL_ROW_TRIGGER, .help = "a message is silent if its square is at most this times that of "
                             "the learning rate, auto = 0"},
    {SL_OWN_REAL(trigger_growth, 0, SL_BELOW_1), .fallback = "0",
     .help = "the trigger grows with the round to this power, 1 - epsilon of SPARQ-SGD"},
    SL_KEYS_END,
};
