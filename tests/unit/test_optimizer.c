/* test_optimizer.c - trust of tensors one by one, worked out by hand. test_outer.py has the
 * formulas of all optimizers, on one tensor. */
#include "harness.h"
#include "optim/direction.h"
#include "starling/optimizer.h"

/* Two tensors, of two elements and one; 3-4-5 triangles. */
static void expect_direction(const sl_optimizer_config *o, const float want[3]) {
    static const size_t ends[] = {2, 3};
    sl_direction d = {.optimizer = o,
                      .vec = sl_vec_cpu(),
                      .dimension = 3,
                      .tensor_ends = ends,
                      .tensor_count = 2};
    ck_assert(sl_direction_open(&d));
    float *g = d.vec->allocate(3), *x = d.vec->allocate(3);
    memcpy(g, (const float[]){3, -4, 2}, 3 * sizeof *g);
    memcpy(x, (const float[]){6, 8, 0.5f}, 3 * sizeof *x);
    sl_direction_clip(&d, g);
    sl_direction_take(&d, g, x, 2, 3);
    sl_direction_take(&d, g, x, 0, 2);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(fabsf(g[i] - want[i]) < 1e-6f, "%d: %.9g, not %.9g", i, g[i], want[i]);
    d.vec->release(g);
    d.vec->release(x);
    sl_direction_close(&d);
}

START_TEST(lars_trusts_each_tensor_on_its_own) {
    sl_optimizer_config o = {.kind = SL_OPTIMIZER_LARS, .trust = 0.5};
    expect_direction(&o, (const float[]){3, -4, 0.25f});
    o.weight_decay = 2; /* 0.5 * 10 / (5 + 20) = 0.2, and 0.5 * 0.5 / (2 + 1) */
    expect_direction(&o, (const float[]){0.2f * 15, 0.2f * 12, 0.25f});
    o.trust = 0; /* 0.001 */
    expect_direction(&o, (const float[]){0.0004f * 15, 0.0004f * 12, 0.0005f});
}
