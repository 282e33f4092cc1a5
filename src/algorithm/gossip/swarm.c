/* swarm.c - AD-PSGD with quantized models: SwarmSGD (Nadiradze, Sabour, Davies, Li, Alistarh,
 * "Asynchronous Decentralized SGD with Quantized and Local Updates", NeurIPS 2021), with the
 * modulus of Moniqua (Lu, De Sa, ICML 2020) as its quantizer: its error goes by how far two models
 * are apart, and not by how large they are.
 *
 *   an average: both send Q(x), what is left of x by the modulus, as moniqua.c says;
 *   r_j = mod_B(Q_j - x_i), r_i = mod_B(Q_i - x_i):  x_i <- x_i + (r_j - r_i)/2, and j likewise
 *
 * What one of them adds the other takes away, so the mean stays, to rounding, as long as no two
 * elements lie more than algorithm.theta apart. A difference beyond 0.45 B is counted. All else is
 * ad_psgd.c's. Memory beside x, g, momentum: xhat, one decoded message. Wire: bits d each way.
 */
#include "algorithm/algorithms.h"
#include "algorithm/gossip/ad_psgd.h"
#include "base/kernels.h"
#include "compress/quantization/modular.h"

enum { DECODED = SL_PAIRS_VECTORS };

static const double near = 0.45; /* of B, whose half is what a difference is never above */

static bool quantizes(const sl_algorithm_config *config) {
    return config->bits != SL_COUNT_AUTO;
}

/* x += (mod_B(theirs - x) - mod_B(own - x))/2; returns how many of the former lie beyond `limit`.
 */
FOR_EACH_CPU(size_t, meet_halfway,
             (const sl_modulus *m, double limit, const float *theirs, const float *own, float *x,
              size_t n),
             (m, limit, theirs, own, x, n)) {
    size_t far = 0;
    for (size_t i = 0; i < n; i++) {
        const double there = sl_modulus_rest(m, (double)theirs[i] - (double)x[i]),
                     here = sl_modulus_rest(m, (double)own[i] - (double)x[i]);
        x[i] += 0.5f * ((float)there - (float)here);
        far += there > limit || there < -limit;
    }
    return far;
}

static void average(sl_state *s, const sl_mix *mix, size_t from, size_t count) {
    const sl_modulus m = sl_modulus_of(&s->config->compressor);
    float *x = s->x + from, *theirs = s->extra[DECODED] + from, *own = s->scratch;
    s->vec->fill(theirs, 0, count);
    sl_part_add(&mix->parts[0], 1, s->extra[DECODED]);
    for (size_t done = 0, some; done < count; done += some) {
        some = count - done < s->block ? count - done : s->block;
        sl_modulus_round(&m, x + done, some, own);
        s->doubtful += meet_halfway(&m, near * m.b, theirs + done, own, x + done, some);
    }
}

static void tune(sl_algorithm_config *c) {
    c->compressor.bits = (uint32_t)c->bits;
    c->compressor.theta = c->theta;
}

static const sl_stage halves[] = {
    {.in_place = true, .vector = sl_publish_model, .combine = average}};

const sl_algorithm sl_swarm = {
    SL_AD_PSGD,
    .when = quantizes,
    .host_only = true,
    .compressor = SL_TAKES_ANY,
    .own_compressor = SL_COMPRESSOR_MODULAR,
    .tune = tune,
    .extra_vectors = SL_PAIRS_VECTORS + 1,
    .stages = halves,
};
