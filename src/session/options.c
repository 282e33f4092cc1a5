/* options.c - what a session is told; see starling/session.h. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "session/state.h"

void sl_session_defaults(sl_session_options *options, uint64_t size) {
    const sl_session_options defaults = {.size = size, .rank = -1, .nodes = -1};
    memset(options, 0, size);
    memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

/* No release has as many bytes: the struct was never filled. */
#define OPTIONS_BYTES_MAX 65536

static int check_peer(const sl_session_options *o, sl_error *error) {
    if (o->rank < -1 || o->rank >= SL_NODES_MAX)
        return sl_fail(error, SL_EINVAL,
                       "options.rank: %" PRId64 " is not allowed; it must be from 0 to %u, or -1: "
                       "from the launcher",
                       o->rank, SL_NODES_MAX - 1);
    if (o->nodes < -1 || o->nodes == 0 || o->nodes > SL_NODES_MAX)
        return sl_fail(error, SL_EINVAL,
                       "options.nodes: %" PRId64 " is not allowed; it must be from 1 to %u, or -1: "
                       "as many as the topology has",
                       o->nodes, SL_NODES_MAX);
    if (o->borrow && !o->overlap)
        return sl_fail(
            error, SL_EINVAL,
            "options.borrow: is for begin and end, and options.overlap is 0; leave it 0, "
            "or set both");
    if (isnan(o->deadline_s) || o->deadline_s < 0)
        return sl_fail(error, SL_EINVAL,
                       "options.deadline_s: %g is not allowed; it must be a number of seconds, or "
                       "0: none",
                       o->deadline_s);
    return 0;
}

static int check_lists(const sl_session_options *o, sl_error *error) {
    if (o->tensors == NULL && o->tensor_count > 0)
        return sl_fail(error, SL_EINVAL, "options.tensors: is NULL, and tensor_count is %" PRIu64,
                       o->tensor_count);
    if (o->overrides == NULL && o->override_count > 0)
        return sl_fail(error, SL_EINVAL,
                       "options.overrides: is NULL, and override_count is %" PRIu64,
                       o->override_count);
    for (uint64_t i = 0; i < o->override_count; i++)
        if (o->overrides[i] == NULL)
            return sl_fail(error, SL_EINVAL,
                           "options.overrides[%" PRIu64 "]: is NULL; it must be KEY=VALUE", i);
    return 0;
}

int sl_session_take_options(sl_session_options *out, const sl_session_options *given,
                            sl_error *error) {
    sl_session_options o;
    sl_session_defaults(&o, sizeof o);
    if (given != NULL &&
        (given->size < offsetof(sl_session_options, roster) || given->size > OPTIONS_BYTES_MAX))
        return sl_fail(error, SL_EINVAL,
                       "options.size: %" PRIu64 "; sl_session_defaults(&options, sizeof options) "
                       "comes before all else",
                       given->size);
    if (given != NULL) /* of this release, or of an older one that has fewer */
        memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
    o.size = sizeof o;
    int result = check_peer(&o, error);
    if (result == 0)
        result = check_lists(&o, error);
    if (result == 0)
        *out = o;
    return result;
}
