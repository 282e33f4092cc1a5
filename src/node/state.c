/* state.c - see state.h. */
#include "node/state.h"

#include <math.h>

#include "vec/asked.h"

/* Of a loaded node, which has not begun, the one that ended last: others may start before it. */
uint64_t sl_node_exchange(const sl_node *n) {
    return n->state.round > 0 ? n->state.exchange : n->life.ended_exchange;
}

sl_message sl_node_message(const sl_node *n, uint32_t sender, uint64_t exchange, uint32_t step) {
    return (sl_message){
        .seed = n->settings.seed, .exchange = exchange, .sender = sender, .stage = step};
}

uint32_t sl_node_place(const sl_codec_set *set, uint32_t part) {
    return set->order != NULL ? set->order[part] : part;
}

sl_range sl_node_part_range(const sl_codec_set *set, size_t base, uint32_t part) {
    sl_range range;
    sl_codec_part_range(set->codec, sl_node_place(set, part), &range.from, &range.count);
    range.from += base;
    return range;
}

bool sl_node_is_final(const sl_node *n, sl_range range) {
    return range.count == 0 || range.from >= n->round.final;
}

void sl_node_sweep(sl_node *n, void (*hook)(sl_state *s, size_t from, size_t count),
                   sl_range range) {
    const size_t block = n->settings.vec->block;
    for (size_t done = 0, count; hook != NULL && done < range.count; done += count) {
        count = range.count - done < block ? range.count - done : block;
        hook(&n->state, range.from + done, count);
    }
}

/* Only a W with negative entries can make a sum larger than what is summed. */
static bool may_be_unstable(const sl_node *n) {
    bool negative = n->state.in.self < 0;
    for (uint32_t i = 0; i < n->state.in.count; i++)
        negative = negative || n->state.in.weights[i] < 0;
    return negative;
}

int sl_node_diverged(const sl_node *n, const char *what, sl_error *error) {
    return sl_fail_node(
        error, SL_EDIVERGED, n->settings.rank, n->state.round,
        "%s; training diverged (learning rate %g%s): lower optimizer.learning_rate, add "
        "optimizer.schedule.warmup_rounds%s%s",
        what, (double)n->state.sgd.learning_rate,
        n->state.step_size > 0 ? ", and a consensus step" : "",
        n->settings.plan->config.compressor.kind != SL_COMPRESSOR_IDENTITY
            ? ", lower consensus_step or eta, or compress less"
            : "",
        may_be_unstable(n) ? ", or change topology.weights, which are negative in part" : "");
}

int sl_node_spoil(sl_node *n, const char *what, sl_error *error) {
    n->life.spoiled = n->settings.turns;
    return sl_node_diverged(n, what, error);
}

void sl_node_begin_anew(sl_node *n) {
    sl_state *s = &n->state;
    for (size_t i = 0; i < SL_ALGORITHM_VECTORS_MAX; i++)
        if (s->extra[i] != NULL)
            s->vec->fill(s->extra[i], 0, s->dimension);
    for (size_t i = 0; i < n->own_number_count; i++)
        s->own_numbers[i] = 0;
    if (n->algorithm->start != NULL)
        n->algorithm->start(s, s->dimension);
}

/* ---- gradients of no use ---- */

enum { SETBACK_ROUNDS = 100 };

bool sl_node_has_spoiled_gradient(const sl_node *n) {
    return !sl_vec_are_finite(n->settings.vec, n->state.g + n->round.final,
                              n->settings.dimension - n->round.final);
}

bool sl_node_is_spoiled(const sl_node *n, double loss) {
    return n->life.spoiled || !isfinite(loss) || sl_node_has_spoiled_gradient(n);
}

bool sl_setbacks_add(sl_setbacks *setbacks, uint64_t round) {
    const bool third = setbacks->before > 0 && round - setbacks->before < SETBACK_ROUNDS;
    *setbacks = (sl_setbacks){.before = setbacks->last, .last = round};
    return third;
}
