/* task.c - is a task complete? See starling/task.h. */
#include "starling/task.h"

#include <math.h>

static int refuse(const char *field, const char *what, sl_error *error) {
    return sl_fail(error, SL_EINVAL, "task.%s: is %s", field, what);
}

static int check_rows(const sl_task *t, sl_error *error) {
    if (t->tensor_rows != NULL && t->tensor_ends == NULL)
        return refuse("tensor_rows", "given, but tensor_ends is NULL", error);
    for (size_t i = 0; t->tensor_rows != NULL && i < t->tensor_count; i++) {
        const size_t size = t->tensor_ends[i] - (i > 0 ? t->tensor_ends[i - 1] : 0);
        if (t->tensor_rows[i] == 0 || size % t->tensor_rows[i] != 0)
            return sl_fail(error, SL_EINVAL,
                           "task.tensor_rows[%zu]: %zu; it must divide the tensor's size, %zu", i,
                           t->tensor_rows[i], size);
    }
    return 0;
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
    int result = check_tensors(t, error);
    return result != 0 ? result : check_rows(t, error);
}

sl_shapes sl_task_shapes(const sl_task *t) {
    return (sl_shapes){t->dimension, t->tensor_ends, t->tensor_rows, t->tensor_count};
}
