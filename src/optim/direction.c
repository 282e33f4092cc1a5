/* direction.c - see direction.h. */
#include "optim/direction.h"

#include <math.h>

static bool has_moments(const sl_optimizer_config *o) {
    return o->kind == SL_OPTIMIZER_ADAMW || o->kind == SL_OPTIMIZER_LAMB;
}

double sl_optimizer_momentum(const sl_optimizer_config *o) {
    return has_moments(o) ? o->beta1 : o->momentum;
}

size_t sl_direction_vectors(const sl_optimizer_config *o) {
    return has_moments(o) ? 2 : 0;
}

bool sl_direction_open(sl_direction *d) {
    if (!has_moments(d->optimizer))
        return true;
    d->m = d->vec->allocate(d->dimension);
    d->v = d->vec->allocate(d->dimension);
    return d->m != NULL && d->v != NULL;
}

void sl_direction_close(sl_direction *d) {
    if (d->vec != NULL) {
        d->vec->release(d->m);
        d->vec->release(d->v);
    }
    d->m = d->v = NULL;
}

static void scale(const sl_direction *d, float *v, double factor, size_t count) {
    d->vec->combine(v, (const float *const[]){v}, (const float[]){(float)factor}, 1, count);
}

void sl_direction_clip(const sl_direction *d, float *g) {
    const double most = d->optimizer->clip_norm;
    const double norm = most > 0 ? sqrt(d->vec->norm2_squared(g, d->dimension)) : 0;
    if (norm > most && most > 0)
        scale(d, g, most / norm, d->dimension);
}

static void take_moments(sl_direction *d, float *g, const float *x, size_t from, size_t end) {
    const sl_optimizer_config *o = d->optimizer;
    const double count = (double)d->steps;
    const sl_adam adam = {
        .beta1 = (float)o->beta1,
        .beta2 = (float)o->beta2,
        .m_new = (float)(1 - o->beta1),
        .v_new = (float)(1 - o->beta2),
        .m_scale = (float)(1 / (1 - pow(o->beta1, count))),
        .v_scale = (float)(1 / (1 - pow(o->beta2, count))),
        .epsilon = (float)o->epsilon,
        .weight_decay = (float)o->weight_decay,
    };
    d->vec->adam_direction(g + from, x + from, d->m + from, d->v + from, &adam, end - from);
}

/* g <- r (g + decay x) over one tensor; r = trust |x| / (|g| + decay |x|). */
static void trust_tensor(const sl_direction *d, float *g, const float *x, double decay,
                         size_t count) {
    const sl_optimizer_config *o = d->optimizer;
    const double trust = o->trust > 0 ? o->trust : o->kind == SL_OPTIMIZER_LARS ? 0.001 : 1;
    const double size = sqrt(d->vec->norm2_squared(x, count)),
                 step = sqrt(d->vec->norm2_squared(g, count)) + decay * size;
    const double r = size > 0 && step > 0 ? trust * size / step : 1;
    d->vec->combine(g, (const float *const[]){g, x}, (const float[]){(float)r, (float)(r * decay)},
                    decay > 0 ? 2 : 1, count);
}

static void trust_tensors(const sl_direction *d, float *g, const float *x, double decay,
                          size_t from, size_t end) {
    const size_t count = d->tensor_count > 0 ? d->tensor_count : 1;
    for (size_t t = 0, first = 0; t < count; t++) {
        const size_t behind = d->tensor_count > 0 ? d->tensor_ends[t] : d->dimension;
        if (first >= from && behind <= end)
            trust_tensor(d, g + first, x + first, decay, behind - first);
        first = behind;
    }
}

void sl_direction_take(sl_direction *d, float *g, const float *x, size_t from, size_t end) {
    if (from == end)
        return;
    d->steps += end == d->dimension;
    switch (d->optimizer->kind) {
    case SL_OPTIMIZER_SGD:
        break;
    case SL_OPTIMIZER_ADAMW:
        take_moments(d, g, x, from, end);
        break;
    case SL_OPTIMIZER_LARS:
        trust_tensors(d, g, x, d->optimizer->weight_decay, from, end);
        break;
    case SL_OPTIMIZER_LAMB:
        take_moments(d, g, x, from, end);
        trust_tensors(d, g, x, 0, from, end);
        break;
    }
}
