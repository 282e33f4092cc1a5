/* stays.c - how long a node's message stays as it is where it stands, so that it can be sent again.
 */
#include "node/outgoing.h"

static bool is_apart(sl_range a, sl_range b) {
    return a.count == 0 || b.count == 0 || a.from + a.count <= b.from || b.from + b.count <= a.from;
}

/* Does the one follow the other, with no hook between them but for sums that are here? */
static bool go_together(const sl_stage *a, const sl_stage *b) {
    return a == b || (b->gather && a->wanted == b->wanted && a->vector == b->vector &&
                      a->over == NULL && b->meet == NULL && b->speaks == NULL);
}

static bool is_only(const sl_row *row, const sl_row *other) {
    return row->count == 1 && other->count == 1 && row->peers[0] == other->peers[0];
}

/* A ring goes on like that, and nobody in it answers. */
static bool goes_round(const sl_exchange_step *step, const sl_exchange_step *next) {
    return is_only(&step->in, &next->in) && is_only(&step->out, &next->out) &&
           !is_only(&step->in, &step->out);
}

sl_stay sl_outgoing_stays(const sl_node *n) {
    const sl_route *r = &n->view.route;
    const sl_exchange_step *step = &n->step.what;
    const uint32_t number = n->step.number;
    sl_exchange_step last = *step, next;
    sl_stay stays = SL_STAY_NONE;
    if (sl_rooms_published(n) != SL_ROOM_NONE)
        return SL_STAY_ROOM;
    if (!n->settings.vec->on_host || !sl_codec_sends_vector(n->step.outgoing->codec, step->stage))
        return SL_STAY_NONE;
    for (uint32_t t = number + 1;
         sl_route_step(r, n->state.exchange, t, &next) && go_together(last.stage, next.stage) &&
         is_apart(step->published, next.prepared);
         t++) {
        if (is_only(&step->out, &next.in))
            return SL_STAY_ANSWER;
        if (!is_apart(step->published, next.coming))
            break;
        if (t == number + 1 && next.published.count > 0)
            stays = SL_STAY_STEP;
        if (goes_round(&last, &next))
            break;
        last = next;
    }
    return stays;
}
