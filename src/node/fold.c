/* fold.c - see fold.h. */
#include "node/fold.h"

#include <stdlib.h>

void sl_fold_close(sl_fold *f) {
    free(f->lost);
    for (size_t i = 0; i < 2; i++) {
        free(f->peers[i]);
        free(f->weights[i]);
    }
    *f = (sl_fold){0};
}

static int allocate(sl_fold *f, uint32_t count) {
    f->lost = calloc(count, sizeof *f->lost);
    bool complete = f->lost != NULL;
    for (size_t i = 0; i < 2; i++) {
        f->peers[i] = calloc(count, sizeof *f->peers[i]);
        f->weights[i] = calloc(count, sizeof *f->weights[i]);
        complete = complete && f->peers[i] != NULL && f->weights[i] != NULL;
    }
    return complete ? 0 : SL_ENOMEM;
}

int sl_fold_open(sl_fold *f, const sl_node_view *view, const sl_route *route) {
    const uint32_t rank = route->rank, count = route->peer_count;
    for (uint32_t i = 0; i < view->broken_count; i++) {
        const sl_pair edge = view->broken[i];
        const uint32_t other = edge.low == rank ? edge.high : edge.low,
                       slot = sl_route_slot(route, other);
        if ((edge.low != rank && edge.high != rank) || slot == count)
            continue;
        if (f->lost == NULL && allocate(f, count) != 0)
            return SL_ENOMEM;
        f->lost[slot] = true;
    }
    return 0;
}

bool sl_fold_lacks(const sl_fold *f, uint32_t slot) {
    return f->lost != NULL && f->lost[slot];
}

/* The row without the lost, whose weight is *kept. */
static sl_row reduce(const sl_fold *f, const sl_route *route, const sl_row *row, size_t way,
                     double *kept) {
    sl_row out = {.self = row->self, .peers = f->peers[way], .weights = f->weights[way]};
    *kept = 0;
    for (uint32_t i = 0; i < row->count; i++) {
        if (f->lost[sl_route_slot(route, row->peers[i])]) {
            *kept += row->weights[i];
            continue;
        }
        f->peers[way][out.count] = row->peers[i];
        f->weights[way][out.count++] = row->weights[i];
    }
    return out;
}

void sl_fold_apply(sl_fold *f, const sl_route *route, sl_exchange_step *step) {
    double not_given, not_got;
    if (f->lost == NULL)
        return;
    step->in = reduce(f, route, &step->in, 0, &not_got);
    step->out = reduce(f, route, &step->out, 1, &not_given);
    const bool by_column = route->algorithm->matrix == SL_MATRIX_COLUMN;
    step->self_weight = (float)(step->self_weight + (by_column ? not_given : not_got));
}
