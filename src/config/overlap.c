/* overlap.c - see overlap.h. */
#include "config/overlap.h"

#include <stdio.h>
#include <string.h>

#include "starling/layer_budget.h"

#define NAME(kind, text) text,
static const char *const overlaps[] = {SL_OVERLAPS(NAME)};
static const char *const bucketings[] = {SL_BUCKETINGS(NAME)};
#undef NAME

static int check_compressor(const sl_experiment *e, const char *name, sl_error *error) {
    const sl_compressor_config *c = &e->algorithm.compressor;
    if (sl_compressor_works_on_ranges(c, e->transport.chunk_bytes))
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "transport.overlap: \"%s\" sends what is there of a gradient, but compressor "
                   "%s looks at all of it first; set algorithm.compressor.per to \"tensor\"%s",
                   name, sl_compressor_name(c->kind),
                   sl_compressor_reads(c->kind, "bucket")
                       ? ", or algorithm.compressor.bucket to at most a part's elements"
                       : "");
}

static bool is_on_device(const sl_experiment *e) {
    return strcmp(e->device, "cpu") != 0;
}

static int check_overlap(const sl_experiment *e, const sl_algorithm *a, sl_error *error) {
    const char *name = overlaps[e->transport.overlap];
    if (!a->works_on_ranges)
        return sl_fail(error, SL_EINVAL,
                       "transport.overlap: \"%s\", but this form of algorithm '%s' publishes "
                       "nothing before its whole gradient is there; take d-psgd with "
                       "adapt-then-combine, all-reduce or parameter-server, or \"none\"",
                       name, a->name);
    if (e->optimizer.clip_norm > 0)
        return sl_fail(error, SL_EINVAL,
                       "optimizer.clip_norm: %g needs the norm of the whole gradient before a part "
                       "of it is used; set it to 0, or transport.overlap to \"none\"",
                       e->optimizer.clip_norm);
    if (is_on_device(e) && sl_buckets_of(e) == SL_OVERLAP_NONE)
        return sl_fail(error, SL_EINVAL,
                       "transport.overlap: \"%s\" with device \"%s\", from which only what is "
                       "exchanged by itself leaves before the rest; take no compressor and "
                       "transport.buckets \"auto\", or device \"cpu\", or \"none\"",
                       name, e->device);
    return check_compressor(e, name, error);
}

/* Each range is mixed, or summed up, as the whole is. What is compressed would draw other numbers.
 */
static bool takes_buckets(const sl_algorithm *a, const sl_experiment *e) {
    return a->works_on_ranges && e->algorithm.compressor.kind == SL_COMPRESSOR_IDENTITY;
}

static int check_buckets(const sl_experiment *e, const sl_algorithm *a, sl_error *error) {
    const sl_buckets buckets = e->transport.buckets;
    if (buckets == SL_BUCKETS_AUTO || buckets == SL_BUCKETS_WHOLE || takes_buckets(a, e))
        return 0;
    return sl_fail(
        error, SL_EINVAL,
        "transport.buckets: \"%s\" is for d-psgd with adapt-then-combine, all-reduce and "
        "parameter-server without a compressor, not for this form of algorithm '%s'; "
        "take \"auto\" or \"whole\"",
        bucketings[buckets], a->name);
}

/* What asks for a plan. */
static void name_planned(const sl_experiment *e, char *out, size_t bytes) {
    if (e->transport.overlap > SL_OVERLAP_LAYERS)
        snprintf(out, bytes, "transport.overlap: \"%s\"", overlaps[e->transport.overlap]);
    else if (e->transport.buckets > SL_BUCKETS_LAYERS)
        snprintf(out, bytes, "transport.buckets: \"%s\"", bucketings[e->transport.buckets]);
    else
        snprintf(out, bytes, "algorithm.compressor.fraction_min: %g",
                 e->algorithm.compressor.fraction_min);
}

static int check_costs(const sl_experiment *e, sl_error *error) {
    const sl_network_config *n = &e->network;
    char planned[96];
    name_planned(e, planned, sizeof planned);
    if (n->gradient_ms <= 0 && e->model.gflops <= 0)
        return sl_fail(error, SL_EINVAL,
                       "%s plans by the time of a gradient, which nothing says; set "
                       "network.gradient_ms",
                       planned);
    if (n->bandwidth_mbit <= 0 && n->latency_ms <= 0 && n->links.rows == 0)
        return sl_fail(error, SL_EINVAL,
                       "%s plans by what sending costs, which nothing says; set "
                       "network.bandwidth_mbit and network.latency_ms",
                       planned);
    return 0;
}

/* Each layer's message must be one of its own, that leaves as soon as its gradient is there. */
static int check_layer_budget(const sl_experiment *e, sl_error *error) {
    const sl_compressor_config *c = &e->algorithm.compressor;
    const char *way_out = c->scope != SL_SCOPE_TENSOR ? "set algorithm.compressor.per to \"tensor\""
                          : e->transport.overlap != SL_OVERLAP_LAYERS
                              ? "set transport.overlap to \"layers\""
                          : c->k > 0 ? "leave algorithm.compressor.k out"
                                     : NULL;
    if (way_out != NULL)
        return sl_fail(error, SL_EINVAL,
                       "algorithm.compressor.fraction_min: %g lets each layer send what is hidden "
                       "beside the backward pass below it; %s",
                       c->fraction_min, way_out);
    return c->fraction_min <= c->fraction
               ? 0
               : sl_fail(error, SL_EINVAL,
                         "algorithm.compressor.fraction_min: %g is above "
                         "algorithm.compressor.fraction, %g",
                         c->fraction_min, c->fraction);
}

int sl_overlap_check(const sl_experiment *e, sl_error *error) {
    const sl_algorithm *a = sl_algorithm_of(&e->algorithm, error);
    if (a == NULL)
        return SL_EINVAL;
    int result = e->transport.overlap != SL_OVERLAP_NONE ? check_overlap(e, a, error) : 0;
    if (result == 0)
        result = check_buckets(e, a, error);
    if (result == 0 && sl_has_layer_budget(&e->algorithm.compressor))
        result = check_layer_budget(e, error);
    return result == 0 && sl_sending_is_planned(e) ? check_costs(e, error) : result;
}

/* On the host a plain message leaves part by part, but in the steps of an all-reduce. */
static bool follows_overlap(const sl_experiment *e) {
    const sl_algorithm *a = sl_algorithm_of(&e->algorithm, NULL);
    const bool plans = e->transport.overlap > SL_OVERLAP_LAYERS;
    return a != NULL && takes_buckets(a, e) &&
           (is_on_device(e) || (plans && a->route != SL_ROUTE_TOPOLOGY));
}

void sl_buckets_resolve(sl_experiment *e) {
    static const sl_buckets same[] = {[SL_OVERLAP_NONE] = SL_BUCKETS_AUTO,
                                      [SL_OVERLAP_LAYERS] = SL_BUCKETS_LAYERS,
                                      [SL_OVERLAP_MERGED] = SL_BUCKETS_MERGED,
                                      [SL_OVERLAP_PARTITIONED] = SL_BUCKETS_PARTITIONED};
    if (e->transport.buckets == SL_BUCKETS_AUTO && follows_overlap(e))
        e->transport.buckets = same[e->transport.overlap];
}

sl_overlap sl_buckets_of(const sl_experiment *e) {
    switch (e->transport.buckets) {
    case SL_BUCKETS_AUTO:
    case SL_BUCKETS_WHOLE:
        break;
    case SL_BUCKETS_LAYERS:
        return SL_OVERLAP_LAYERS;
    case SL_BUCKETS_MERGED:
        return SL_OVERLAP_MERGED;
    case SL_BUCKETS_PARTITIONED:
        return SL_OVERLAP_PARTITIONED;
    }
    return SL_OVERLAP_NONE;
}

bool sl_sending_is_planned(const sl_experiment *e) {
    return e->transport.overlap > SL_OVERLAP_LAYERS || e->transport.buckets > SL_BUCKETS_LAYERS ||
           sl_has_layer_budget(&e->algorithm.compressor);
}
