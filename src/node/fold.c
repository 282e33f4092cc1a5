/* fold.c - see fold.h. */
#include "node/fold.h"

#include <stdlib.h>

void sl_fold_close(sl_fold *f) {
    free(f->lost);
    free(f->to);
    free(f->weights);
    free(f->given);
    *f = (sl_fold){0};
}

int sl_fold_lose(sl_fold *f, uint32_t slot, uint32_t count) {
    if (f->lost == NULL) {
        f->lost = calloc(count, sizeof *f->lost);
        f->to = calloc(count, sizeof *f->to);
        f->weights = calloc(count, sizeof *f->weights);
        f->given = calloc(count, sizeof *f->given);
    }
    if (f->lost == NULL || f->to == NULL || f->weights == NULL || f->given == NULL) {
        sl_fold_close(f);
        return SL_ENOMEM;
    }
    f->lost[slot] = true;
    return 0;
}

bool sl_fold_lacks(const sl_fold *f, uint32_t slot) {
    return f->lost != NULL && f->lost[slot];
}

static bool is_by_column(const sl_route *route) {
    return route->algorithm->matrix == SL_MATRIX_COLUMN;
}

void sl_fold_apply(sl_fold *f, const sl_route *route, const uint32_t *peers, uint32_t count,
                   sl_exchange_step *step) {
    if (f->lost == NULL)
        return;
    const bool by_column = is_by_column(route);
    double kept = 0;
    uint32_t left = 0;
    for (uint32_t i = 0; i < step->in.count; i++) {
        const bool lost = f->lost[sl_peer_index(peers, count, step->in.peers[i])];
        f->weights[i] = lost ? 0 : step->in.weights[i];
        kept += lost && !by_column ? step->in.weights[i] : 0;
    }
    for (uint32_t i = 0; i < step->out.count; i++) {
        const bool lost = f->lost[sl_peer_index(peers, count, step->out.peers[i])];
        kept += lost && by_column ? step->out.weights[i] : 0;
        if (!lost) {
            f->given[left] = by_column ? step->out.weights[i] : 0;
            f->to[left++] = step->out.peers[i];
        }
    }
    step->self_weight = (float)(step->self_weight + kept);
    step->in.weights = f->weights;
    step->out = (sl_row){.count = left, .peers = f->to, .weights = f->given};
}
