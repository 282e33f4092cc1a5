/* overlap.c - see overlap.h. */
#include "config/overlap.h"

#include <string.h>

static int check_compressor(const sl_experiment *e, sl_error *error) {
    const sl_compressor_config *c = &e->algorithm.compressor;
    if (sl_compressor_works_on_ranges(c, e->transport.chunk_bytes))
        return 0;
    return sl_fail(
        error, SL_EINVAL,
        "transport.overlap: \"layers\" sends what is there of a gradient, but compressor "
        "%s looks at all of it first; set algorithm.compressor.per to \"tensor\"%s",
        sl_compressor_name(c->kind),
        sl_compressor_reads(c->kind, "bucket")
            ? ", or algorithm.compressor.bucket to at most a part's elements"
            : "");
}

int sl_overlap_check(const sl_experiment *e, sl_error *error) {
    const sl_algorithm *a = sl_algorithm_of(&e->algorithm, error);
    if (a == NULL)
        return SL_EINVAL;
    if (e->transport.overlap == SL_OVERLAP_NONE)
        return 0;
    if (!a->works_on_ranges)
        return sl_fail(error, SL_EINVAL,
                       "transport.overlap: \"layers\", but this form of algorithm '%s' publishes "
                       "nothing before its whole gradient is there; take d-psgd with "
                       "adapt-then-combine, all-reduce or parameter-server, or \"none\"",
                       a->name);
    if (e->optimizer.clip_norm > 0)
        return sl_fail(error, SL_EINVAL,
                       "optimizer.clip_norm: %g needs the norm of the whole gradient before a part "
                       "of it is used; set it to 0, or transport.overlap to \"none\"",
                       e->optimizer.clip_norm);
    if (strcmp(e->device, "cpu") != 0)
        return sl_fail(error, SL_EINVAL,
                       "transport.overlap: \"layers\" is for vectors on the host, but device is "
                       "\"%s\"; take \"cpu\", or \"none\"",
                       e->device);
    return check_compressor(e, error);
}
