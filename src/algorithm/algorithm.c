/* algorithm.c - the list of algorithms, and whether a topology suits one; see starling/algorithm.h. */
#include "algorithm/algorithms.h"

#include <string.h>

static const sl_algorithm *const algorithms[] = {
    &sl_d_psgd_adapt_then_combine,
    &sl_d_psgd_combine_while_adapt,
};

const sl_algorithm *sl_algorithm_find(const char *name, sl_algorithm_variant variant) {
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        if (strcmp(algorithms[i]->name, name) == 0 && algorithms[i]->variant == variant)
            return algorithms[i];
    return NULL;
}

int sl_algorithm_check(const sl_algorithm *algorithm, const sl_topology *topology, sl_error *error) {
    sl_stochasticity w = sl_topology_stochasticity(topology);
    if (algorithm->doubly_stochastic && !(w.row && w.column))
        return sl_fail(error, SL_EINVAL,
                       "algorithm '%s' needs a doubly stochastic W, but this topology's %s sum to 1 only within %.3g; use "
                       "weights \"metropolis\", or correct the listed weights",
                       algorithm->name, w.row ? "columns" : "rows", w.row ? w.column_residual : w.row_residual);
    return 0;
}
