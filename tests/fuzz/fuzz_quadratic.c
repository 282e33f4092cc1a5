/* fuzz_quadratic.c - least-squares problems as JSON, for one to four nodes. Losses and gradients of
 * what is taken read and write only their own. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "learner/quadratic.h"

static void check(sl_quadratic *q) {
    float *g = malloc(q->dimension * sizeof *g);
    assert(g != NULL);
    for (uint32_t i = 0; i < q->nodes; i++) {
        const float *x0 = q->x0 + (size_t)i * q->dimension;
        for (uint32_t k = 0; k < q->dimension; k++)
            assert(isfinite(x0[k]));
        sl_quadratic_gradient(q, i, x0, g);
        sl_quadratic_mean(q, x0);
    }
    free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    /* The parser only reads; sl_bytes owns its bytes elsewhere, hence the cast. */
    sl_bytes file = {.data = (uint8_t *)data + 1, .size = size - 1, .name = "problem"};
    sl_quadratic q;
    sl_error error;
    if (sl_quadratic_parse(&q, &file, 1 + data[0] % 4, &error) != 0)
        return 0;
    check(&q);
    sl_quadratic_close(&q);
    return 0;
}
