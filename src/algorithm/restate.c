/* restate.c - how a later view of a centralized algorithm begins. Such an algorithm needs the same
 * model on all nodes, but a loss may have ended a round for some only, and a joiner has no part in
 * what servers keep. So the view's first exchange is one of plain averages, whatever the algorithm:
 *
 *   x <- (1/n) sum_i x_i - gamma ((1/n) sum_i g_i + weight_decay x);  m <- (1/n) sum_i m_i
 *
 * after which all else that the algorithm keeps begins anew from x (sl_node_begin_anew). The
 * gradient does not go through the momentum, as each algorithm scales that in its own way.
 */
#include "algorithm/algorithms.h"

static bool has_momentum(const sl_state *s) {
    return sl_begins_view(s) && s->m != NULL;
}

static const sl_stage stages[] = {
    SL_AVERAGE_STAGES(gradient, sl_begins_view, NULL, true),
    SL_AVERAGE_STAGES(model, sl_begins_view, NULL, true),
    SL_AVERAGE_STAGES(momentum, has_momentum, NULL, true),
};
enum { STAGES = sizeof stages / sizeof *stages };

bool sl_algorithm_restates(const sl_algorithm *a) {
    return a->route == SL_ROUTE_ALL_REDUCE || a->route == SL_ROUTE_SERVER ||
           a->route == SL_ROUTE_ALL || a->route == SL_ROUTE_MERGE;
}

const sl_stage *sl_algorithm_stage(const sl_algorithm *a, size_t index) {
    if (index < a->stage_count)
        return &a->stages[index];
    index -= a->stage_count;
    return sl_algorithm_restates(a) && index < STAGES ? &stages[index] : NULL;
}

void sl_restate(sl_state *s, size_t from, size_t count) {
    if (s->sgd.learning_rate != 0)
        s->vec->sgd_step(s->x + from, s->x + from, s->g + from, NULL, &s->sgd, count);
}
