/* voiding.c - exchanges in which all wait for all: those of all-reduces, servers and trees. One
 * that is cut never took place: its round ends with the model and momentum that it began with, and
 * a step of the node's own where rounds without exchanges have one.
 */
#include "node/state.h"

/* Else the exchange changes the gradient only. */
static bool changes_model(const sl_node *n) {
    const sl_state *s = &n->state;
    return !n->algorithm->averages_gradient ||
           (s->first_exchange > 1 && s->exchange == s->first_exchange);
}

static void copy(const sl_node *n, float *const to[2], float *const from[2]) {
    for (size_t i = 0; i < 2 && n->kept[0] != NULL && changes_model(n); i++)
        if (to[i] != NULL)
            n->settings.vec->copy(to[i], from[i], n->state.dimension * sizeof *to[i]);
}

void sl_voiding_keep(sl_node *n) {
    copy(n, n->kept, (float *const[]){n->state.x, n->state.m});
}

void sl_voiding_undo(sl_node *n) {
    copy(n, (float *const[]){n->state.x, n->state.m}, n->kept);
    n->round.exchanging = n->round.measure = false;
    n->step.message = (sl_outbound){0};
    n->step.encoded = n->step.sent = 0;
}
