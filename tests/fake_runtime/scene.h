/* scene.h - the device, and vectors there, for tests of the plug-in over fake.h. */
#ifndef FAKE_SCENE_H
#define FAKE_SCENE_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device.h"
#include "gpu/emulated/fake.h"
#include "unit/harness.h"

enum { N = 1000, BYTES = N * sizeof(float) };

static char text[DEVICE_TEXT_MAX];

static inline void open_device(void) {
    fake_set_devices(2, cudaSuccess);
    ck_assert_msg(device_open(0, text), "%s", text);
}

static inline void open_products(void) {
    void *space = device_allocate(device_product_bytes());
    ck_assert_msg(device_open_products(space, text), "%s", text);
}

static inline float *host_vector(float first) {
    float *v = device_allocate_host(BYTES);
    ck_assert_ptr_nonnull(v);
    for (int i = 0; i < N; i++)
        v[i] = first + (float)i;
    return v;
}

static inline void fill(float *v, float value) {
    launch_fill_four(&(fill_four_args){v, value, N, device_is_aligned(v)}, (N + FOUR - 1) / FOUR);
}

static inline void expect_all(const float *v, float value) {
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(v[i], value);
}

static inline void multiply(float *v) {
    device_multiply(&(device_product){.a = {.at = v, .line = 1},
                                      .b = {.at = v, .line = 1},
                                      .c = v,
                                      .c_line = 1,
                                      .m = 1,
                                      .n = 1,
                                      .k = 1,
                                      .count = 1,
                                      .scale = 1});
}

#endif
