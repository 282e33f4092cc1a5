/* stable_steps.c - see stable_steps.h. */
#include "cli/stable_steps.h"

#include <math.h>
#include <stdio.h>

/* So much more is worth another W. */
static const double lazy_pays = 1.2;

static void name_bound(stable_steps *out, const trial *t, const sl_stability *s) {
    const bool compresses = t->plan.config.compressor.kind != SL_COMPRESSOR_IDENTITY;
    char by[64] = "", lazy[64] = "";
    if (s->apart < s->mean)
        snprintf(by, sizeof by, ", by the eigenvalue %.4g of W", s->lambda);
    if (s->lazy > lazy_pays * s->most)
        snprintf(lazy, sizeof lazy, "; with topology.weights \"lazy\" < %.4g", s->lazy);
    snprintf(out->bound, sizeof out->bound, "learning rate * curvature < %.4g%s%s%s", s->most,
             compresses ? " without compression" : "", by, lazy);
}

/* Has each node the same curvature at all models, and in all rounds? */
static bool is_constant(const trial *t) {
    const sl_experiment *e = t->experiment;
    bool all = e->model.kind == SL_MODEL_LINEAR && e->model.loss == SL_LOSS_SQUARED;
    for (uint32_t rank = 0; rank < t->nodes && all; rank++)
        all = sl_learner_samples(t->learner, rank) <= e->data.batch;
    return all || e->model.kind == SL_MODEL_QUADRATIC;
}

static void name_rate(stable_steps *out, const trial *t, const sl_stability *s) {
    const double curvature = sl_stability_curvature(&t->task, t->nodes);
    if (isnan(curvature) || curvature <= 0)
        return;
    out->known = is_constant(t);
    out->most = s->most / curvature;
    out->share = t->experiment->optimizer.learning_rate / out->most;
    snprintf(out->rate, sizeof out->rate, "learning rate < %s%.3g, at a curvature of %.3g%s",
             out->known ? "" : "about ", out->most, curvature,
             out->known ? "" : ", an estimate at the first models");
}

void stable_steps_find(stable_steps *out, const trial *t, double lambda_2, double lambda_n) {
    sl_stability s;
    sl_error error;
    *out = (stable_steps){.most = NAN, .share = NAN};
    if (sl_stability_find(&s, t->experiment, &t->plan, lambda_2, lambda_n, &error) != 0) {
        snprintf(out->why, sizeof out->why, "%.200s", error.text);
        return;
    }
    if (isinf(s.most))
        return;
    name_bound(out, t, &s);
    name_rate(out, t, &s);
}

void stable_steps_advise(const trial *t) {
    sl_spectrum spectrum;
    stable_steps steps;
    if (sl_spectrum_compute(&spectrum, t->experiment->topology, NULL, NULL) != 0)
        return;
    stable_steps_find(&steps, t, spectrum.lambda_2, spectrum.lambda_n);
    if (steps.bound[0] != '\0')
        complain("algorithm '%s' with this W is stable for %s%s%s", t->plan.config.name,
                 steps.bound, steps.rate[0] != '\0' ? ": " : "", steps.rate);
}
