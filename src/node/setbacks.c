/* setbacks.c - gradients of no use; see node.h. */
#include <math.h>

#include "node/state.h"
#include "starling/node.h"
#include "vec/asked.h"

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
