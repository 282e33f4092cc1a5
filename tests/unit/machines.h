/* machines.h - a network on each of the machines that tests have, and its gradient there. */
#ifndef STARLING_TEST_MACHINES_H
#define STARLING_TEST_MACHINES_H

#include "harness.h"
#include "learner/layers/network.h"
#include "starling/device.h"
#include "starling/rng.h"

static sl_error error;

static inline void fill(float *x, size_t count, uint64_t seed, double scale) {
    sl_rng rng = sl_rng_open(seed, 0, 0, SL_PURPOSE_FAULT);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(scale * (2 * sl_rng_uniform(&rng) - 1));
}

/* What computes: this processor's fastest kernels, those of any, or a device: the emulated one,
 * unless STARLING_PLUGIN names another. */
typedef enum machine { FASTEST, PLAIN, DEVICE, MACHINES } machine;

static inline int open_on(sl_network *net, const sl_layers *table, machine where, uint32_t rows) {
    const sl_vec_ops *vec = sl_vec_cpu();
    if (where == DEVICE)
        EXPECT_WELL(sl_device_open(&vec, "cuda:0", 0, &error));
    int code = sl_network_open(net, table, vec, rows, &error);
    if (where == PLAIN && code == 0)
        net->backend = sl_layer_backend_plain();
    return code;
}

/* sl_network_gradient with x and g on the host. */
static inline double find_gradient(sl_network *net, uint32_t rows, const float *x, float *g) {
    const sl_vec_ops *vec = net->vec;
    size_t count = net->table.dimension;
    if (vec->on_host)
        return sl_network_gradient(net, rows, x, g);
    float *there = vec->allocate(count), *gradient = vec->allocate(count);
    vec->copy_in(there, x, count * sizeof *x);
    double loss = sl_network_gradient(net, rows, there, gradient);
    vec->copy_out(g, gradient, count * sizeof *g);
    EXPECT_WELL(vec->fence(&error));
    vec->release(there);
    vec->release(gradient);
    return loss;
}

#endif
