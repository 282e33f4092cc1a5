/* task.c - is a task complete? See starling/task.h. */
#include "starling/task.h"

#include <math.h>

static int refuse(const char *field, const char *what, sl_error *error) {
    return sl_fail(error, SL_EINVAL, "task.%s: is %s", field, what);
}

static int check_tensors(const sl_task *t, sl_error *error) {
    if (t->tensor_ends == NULL)
        return t->tensor_count == 0
                   ? 0
                   : refuse("tensor_ends", "NULL, but tensor_count is not 0", error);
    if (t->tensor_count == 0)
        return refuse("tensor_count", "0, but tensor_ends is not NULL", error);
    size_t before = 0;
    for (size_t i = 0; i < t->tensor_count; i++) {
        if (t->tensor_ends[i] <= before)
            return refuse("tensor_ends", "not rising from above 0", error);
        before = t->tensor_ends[i];
    }
    return before == t->dimension
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "task.tensor_ends: ends at %zu; it must end at task.dimension, %zu",
                         before, t->dimension);
}

int sl_task_check(const sl_task *t, sl_error *error) {
    if (t->dimension == 0)
        return refuse("dimension", "0; a model has at least one parameter", error);
    if (t->rounds == 0)
        return refuse("rounds", "0; a run has at least one round", error);
    if (!(t->gradient_seconds >= 0 && t->gradient_seconds < INFINITY))
        return refuse("gradient_seconds", "no finite number of at least 0", error);
    if (t->initial == NULL)
        return refuse("initial", "NULL; it must write the first model", error);
    if (t->gradient == NULL)
        return refuse("gradient", "NULL; it must compute a loss and its gradient", error);
    if (t->evaluate == NULL)
        return refuse("evaluate", "NULL; it must score a model on held-out data", error);
    return check_tensors(t, error);
}
