/* asked.c - see asked.h. */
#include "vec/asked.h"

#include <math.h>

#include "vec/finite.h"

bool sl_vec_are_finite(const sl_vec_ops *vec, const float *v, size_t count) {
    return vec->on_host ? sl_vec_is_finite(v, count) : isfinite(vec->norm2_squared(v, count));
}

int sl_vec_ask(const sl_vec_ops *vec, bool waits, uint32_t rank, uint64_t round, sl_error *error) {
    const int result = vec->async != NULL && !waits ? vec->async->status(error) : vec->fence(error);
    return result != 0 && error != NULL
               ? sl_fail_node(error, result, rank, round, "%s", error->text)
               : result;
}
