/* codecs.c - see codecs.h. */
#include "node/codecs.h"

#include <stdlib.h>

static const sl_compressor_config identity = {.kind = SL_COMPRESSOR_IDENTITY},
                                  nonzeros = {.kind = SL_COMPRESSOR_NONZEROS};

/* Of stages that are never compressed; else NULL. */
static const sl_compressor_config *lossless(const sl_stage *stage) {
    return stage->plain ? &identity : stage->sparse ? &nonzeros : NULL;
}

/* Those that the plan goes through; NULL: there are no more. */
static const sl_compressor_config *planned(const sl_plan *plan, uint32_t i) {
    return i == 0 ? &plan->config.compressor : i <= plan->phase_count ? &plan->phases[i - 1] : NULL;
}

static sl_codec_set *find(const sl_codecs *codecs, size_t count,
                          const sl_compressor_config *compressor) {
    for (size_t i = 0; i < codecs->set_count; i++)
        if (codecs->sets[i].count == count && codecs->sets[i].compressor == compressor)
            return &codecs->sets[i];
    return NULL;
}

static const sl_compressor_config *compressor_of(const sl_codecs *codecs,
                                                 const sl_exchange_step *step, uint64_t exchange) {
    const sl_node_settings *s = codecs->settings;
    const sl_compressor_config *always = lossless(step->stage);
    return always != NULL             ? always
           : step->compressor != NULL ? step->compressor
                                      : sl_plan_compressor(s->plan, s->epoch_rounds, exchange);
}

bool sl_codec_sends_vector(const sl_codec *codec, const sl_stage *stage) {
    return sl_codec_borrows(codec) && stage->vector != NULL && stage->own == NULL;
}

const sl_codec_set *sl_codecs_find(const sl_codecs *codecs, size_t count,
                                   const sl_exchange_step *step, uint64_t exchange) {
    return find(codecs, count, compressor_of(codecs, step, exchange));
}

static int open_decoders(sl_codec_set *set, const sl_codecs *codecs, sl_error *error) {
    const uint32_t peers = codecs->route->peer_count;
    set->decoders = calloc(peers + 1u, sizeof *set->decoders);
    int result = set->decoders == NULL
                     ? sl_fail(error, SL_ENOMEM, "out of memory for %u decoders", peers)
                     : sl_decoder_open(&set->own, set->codec, codecs->settings->vec, error);
    for (uint32_t i = 0; i < peers && result == 0; i++)
        result = sl_decoder_open(&set->decoders[i], set->codec, codecs->settings->vec, error);
    return result;
}

/* Parts of a range leave the last one first, those of a tensor that is compressed by itself in
 * their order. A part is of the range that its first element is in. What is a shard of the vector
 * is one range. */
static int put_in_order(sl_codec_set *set, const sl_ranges *leaves, size_t dimension,
                        sl_error *error) {
    const uint32_t parts = sl_codec_parts(set->codec);
    const size_t ranges = set->count == dimension ? leaves->count : 1;
    size_t *of = calloc(parts, sizeof *of);
    set->order = calloc(parts, sizeof *set->order);
    const bool complete = of != NULL && set->order != NULL;
    for (uint32_t i = 0; complete && i < parts && ranges > 1; i++) {
        size_t from, count;
        sl_codec_part_source(set->codec, sl_codec_last_first(set->codec, i), &from, &count);
        of[i] = sl_ranges_find(leaves, from);
    }
    for (size_t r = 0, next = 0; complete && r < ranges; r++)
        for (uint32_t i = 0; i < parts; i++)
            if (of[i] == r)
                set->order[next++] = sl_codec_last_first(set->codec, i);
    free(of);
    return complete ? 0
                    : sl_fail(error, SL_ENOMEM, "out of memory for the order of %u parts", parts);
}

static void note_longest(sl_codecs *codecs, const sl_codec *codec) {
    const uint32_t parts = sl_codec_parts(codec);
    const size_t bytes = sl_codec_part_bytes_max(codec);
    codecs->parts_max = parts > codecs->parts_max ? parts : codecs->parts_max;
    codecs->part_bytes_max = bytes > codecs->part_bytes_max ? bytes : codecs->part_bytes_max;
}

static int open_set(sl_codec_set *set, const sl_codecs *codecs, sl_error *error) {
    const sl_node_settings *s = codecs->settings;
    const bool split = set->compressor->scope == SL_SCOPE_TENSOR && s->tensor_count > 1;
    int result =
        split ? sl_codec_open_split(&set->codec, set->compressor, s->tensor_ends,
                                    s->tensor_fractions, s->tensor_count, s->part_bytes, error)
              : sl_codec_open(&set->codec, set->compressor, set->count, s->part_bytes, error);
    if (result == 0 && s->leaves != NULL && s->buckets == NULL)
        result = put_in_order(set, s->leaves, s->dimension, error);
    if (result == 0)
        result = sl_encoder_open(&set->encoder, set->codec, s->vec, error);
    return result != 0 ? result : open_decoders(set, codecs, error);
}

static int add_set(sl_codecs *codecs, const sl_stage *stage, size_t count,
                   const sl_compressor_config *compressor, sl_error *error) {
    int result = 0;
    sl_codec_set *set = find(codecs, count, compressor);
    if (count > 0 && set == NULL) {
        sl_codec_set *sets = realloc(codecs->sets, (codecs->set_count + 1) * sizeof *sets);
        if (sets == NULL)
            return sl_fail(error, SL_ENOMEM, "out of memory for a codec");
        codecs->sets = sets;
        set = &sets[codecs->set_count++];
        *set = (sl_codec_set){.count = count, .compressor = compressor};
        result = open_set(set, codecs, error);
    }
    if (result != 0 || set == NULL)
        return result;
    note_longest(codecs, set->codec);
    set->encodes = set->encodes || !sl_codec_sends_vector(set->codec, stage);
    return 0;
}

/* For what goes out in the step, and for what comes. The longest message of any node is there, too:
 * receive buffers, and so the parts of a sum (agent/collectives/reduce.h), are equally long
 * everywhere. */
static int add_step(sl_codecs *codecs, const sl_exchange_step *step,
                    const sl_compressor_config *compressor, sl_error *error) {
    int result = add_set(codecs, step->stage, sl_route_longest(codecs->route), compressor, error);
    if (result == 0)
        result = add_set(codecs, step->stage, step->published.count, compressor, error);
    for (uint32_t i = 0; i < step->in.count && result == 0; i++)
        result = add_set(codecs, step->stage,
                         sl_route_range(codecs->route, step, step->in.peers[i]).count, compressor,
                         error);
    return result;
}

/* For each phase of the plan, and what comes after them; or for the edge. */
static int add_phases(sl_codecs *codecs, const sl_exchange_step *step, sl_error *error) {
    const sl_compressor_config *always = lossless(step->stage), *c;
    if (always != NULL)
        return add_step(codecs, step, always, error);
    if (step->compressor != NULL)
        return add_set(codecs, step->stage, step->published.count, step->compressor, error);
    int result = 0;
    for (uint32_t i = 0; result == 0 && (c = planned(codecs->settings->plan, i)) != NULL; i++)
        result = add_step(codecs, step, c, error);
    return result;
}

/* Fewer members have longer ranges, up to the whole vector. */
static int foresee(sl_codecs *codecs, const sl_compressor_config *compressor, sl_error *error) {
    const sl_node_settings *s = codecs->settings;
    sl_codec *whole;
    const int result = sl_codec_open(&whole, compressor, s->dimension, s->part_bytes, error);
    if (result != 0)
        return result;
    note_longest(codecs, whole);
    sl_codec_close(&whole);
    return 0;
}

static int foresee_all(sl_codecs *codecs, sl_error *error) {
    const sl_compressor_config *c;
    int result = foresee(codecs, &identity, error);
    if (result == 0 && sl_algorithm_sums_sparse(codecs->route->algorithm))
        result = foresee(codecs, &nonzeros, error);
    for (uint32_t i = 0; result == 0 && (c = planned(codecs->settings->plan, i)) != NULL; i++)
        result = foresee(codecs, c, error);
    return result;
}

int sl_codecs_open(sl_codecs *codecs, const sl_node_settings *settings, const sl_route *route,
                   bool later, sl_error *error) {
    *codecs = (sl_codecs){.settings = settings, .route = route};
    int result = settings->turns && sl_algorithm_voids(route->algorithm)
                     ? foresee_all(codecs, error)
                 : route->of_edge != NULL ? foresee(codecs, &identity, error) /* none is longer */
                                          : 0;
    sl_exchange_step step;
    for (uint32_t e = 1; e <= sl_route_period(route); e++)
        for (uint32_t k = 0; result == 0 && sl_route_step(route, e, k, &step); k++)
            if (later || !step.stage->restates)
                result = add_phases(codecs, &step, error);
    return result;
}

void sl_codecs_close(sl_codecs *codecs) {
    for (size_t i = 0; i < codecs->set_count; i++) {
        sl_codec_set *set = &codecs->sets[i];
        for (uint32_t p = 0; set->decoders != NULL && p < codecs->route->peer_count; p++)
            sl_decoder_close(&set->decoders[p]);
        free(set->decoders);
        sl_decoder_close(&set->own);
        sl_encoder_close(&set->encoder);
        sl_codec_close(&set->codec);
        free(set->order);
    }
    free(codecs->sets);
    codecs->sets = NULL;
    codecs->set_count = 0;
}
