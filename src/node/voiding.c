/* voiding.c - see voiding.h. */
#include "node/voiding.h"

int sl_voiding_open(sl_node *n) {
    sl_state *s = &n->state;
    if (!n->settings.turns || !sl_algorithm_voids(n->algorithm))
        return 0;
    n->kept_x = s->vec->allocate(s->dimension);
    n->kept_m = s->m != NULL ? s->vec->allocate(s->dimension) : NULL;
    return n->kept_x != NULL && (n->kept_m != NULL || s->m == NULL) ? 0 : SL_ENOMEM;
}

void sl_voiding_close(sl_node *n) {
    n->settings.vec->release(n->kept_x);
    n->settings.vec->release(n->kept_m);
}

/* Else it changes the gradient only. */
static bool changes_model(const sl_node *n) {
    const sl_state *s = &n->state;
    return !n->algorithm->averages_gradient ||
           (s->first_exchange > 1 && s->exchange == s->first_exchange);
}

static void copy(const sl_node *n, float *to, const float *from) {
    if (to != NULL && from != NULL)
        n->settings.vec->copy(to, from, n->state.dimension * sizeof *to);
}

void sl_voiding_keep(sl_node *n) {
    if (n->kept_x == NULL || !changes_model(n))
        return;
    copy(n, n->kept_x, n->state.x);
    copy(n, n->kept_m, n->state.m);
}

static void give_back(sl_node *n) {
    if (n->kept_x == NULL || !changes_model(n))
        return;
    copy(n, n->state.x, n->kept_x);
    copy(n, n->state.m, n->kept_m);
}

void sl_voiding_undo(sl_node *n) {
    give_back(n);
    n->round.exchanging = n->round.measure = false;
    n->step.message = (sl_outbound){0};
    n->step.encoded = n->step.sent = 0;
}
