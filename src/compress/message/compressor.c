/* compressor.c - the list of compressors, and what all of them do alike; see starling/compressor.h.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/round_up.h"
#include "base/words.h"
#include "compress/codec.h"
#include "compress/lossless/entropy.h"
#include "compress/own_keys.h"
#include "starling/rng.h"

static const size_t MANY = (size_t)1 << 30; /* elements, that are many parts */

static const codec_ops *const table[SL_COMPRESSOR_KINDS] = {
#define LISTED(kind, codec, name) [SL_COMPRESSOR_##kind] = &sl_##codec##_codec,
    SL_COMPRESSORS(LISTED) SL_OWN_COMPRESSORS(LISTED)
#undef LISTED
};

const char *sl_compressor_name(sl_compressor_kind kind) {
    static const char *const names[] = {
#define COMPRESSOR_NAME(kind, codec, name) [SL_COMPRESSOR_##kind] = name,
        SL_COMPRESSORS(COMPRESSOR_NAME) SL_OWN_COMPRESSORS(COMPRESSOR_NAME)
#undef COMPRESSOR_NAME
    };
    return names[kind];
}

bool sl_compressor_reads_fresh(sl_compressor_kind kind) {
    return table[kind]->reads_fresh;
}

bool sl_compressor_reads_drawn(sl_compressor_kind kind) {
    return table[kind]->reads_drawn;
}

const sl_key *sl_compressor_key(sl_compressor_kind kind, size_t index) {
    for (const sl_key *k = table[kind]->keys; k != NULL && k->path != NULL; k++)
        if (index-- == 0)
            return k;
    return NULL;
}

bool sl_compressor_reads(sl_compressor_kind kind, const char *key) {
    const sl_key *own;
    for (size_t i = 0; (own = sl_compressor_key(kind, i)) != NULL; i++)
        if (strcmp(own->path + strlen("algorithm.compressor."), key) == 0)
            return true;
    return false;
}

/* An unbiased C divided by 1 + omega is contractive with delta = 1/(1 + omega) (algorithms.md;
 * Koloskova et al. 2019). */
sl_quality sl_compressor_quality(const sl_compressor_config *config, size_t dimension) {
    sl_compressor_config least = *config;
    if (least.fraction_min > 0 && sl_compressor_reads(least.kind, "fraction_min"))
        least.fraction = least.fraction_min;
    sl_quality q = table[config->kind]->quality(&least, dimension);
    if (config->contractive && q.unbiased) {
        q.unbiased = q.omega == 0;
        q.is_contractive = true;
        q.delta = 1 / (1 + q.omega);
        q.omega = q.omega == 0 ? 0 : INFINITY;
    }
    return q;
}

double sl_compressor_bits(const sl_compressor_config *config, size_t dimension) {
    return table[config->kind]->bits(table[config->kind], config, dimension);
}

static int check_coding(const sl_compressor_config *config, sl_error *error) {
    const char *codings = table[config->kind]->codings;
    if (config->coding == SL_ENTROPY_NONE || codings == NULL ||
        sl_has_word(codings, sl_codings[config->coding]))
        return 0;
    return sl_fail(error, SL_EINVAL, "algorithm.compressor.coding: \"%s\": %s takes none and %s",
                   sl_codings[config->coding], sl_compressor_name(config->kind), codings);
}

int sl_compressor_check(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    const codec_ops *ops = table[config->kind];
    const int result = check_coding(config, error);
    return result == 0 && ops->check != NULL ? ops->check(config, dimension, error) : result;
}

/* One that looks at the vector beforehand, but for buckets that lie within parts, does not. */
bool sl_compressor_works_on_ranges(const sl_compressor_config *config, size_t part_bytes) {
    sl_codec c = {.config = *config, .ops = table[config->kind], .dimension = MANY};
    if (config->scope == SL_SCOPE_TENSOR)
        return true;
    c.ops->lay_out(&c, part_bytes);
    const bool is_local =
        c.ops->dense != NULL && !c.ops->is_rotated && c.ops->encoder_bytes(&c) == 0;
    return !c.sparse && (c.ops->begin == NULL || is_local);
}

static float factor_of(const sl_compressor_config *config, size_t dimension) {
    sl_quality raw = table[config->kind]->quality(config, dimension);
    return config->contractive && raw.unbiased ? (float)(1 / (1 + raw.omega)) : 1.0f;
}

int sl_codec_open(sl_codec **out, const sl_compressor_config *config, size_t dimension,
                  size_t part_bytes, sl_error *error) {
    int result = sl_compressor_check(config, dimension, error);
    if (result != 0)
        return result;
    sl_codec *c = calloc(1, sizeof *c);
    if (c == NULL)
        return sl_fail(error, SL_ENOMEM, "compressor %s: out of memory",
                       sl_compressor_name(config->kind));
    c->config = *config;
    c->ops = table[config->kind];
    c->dimension = dimension;
    c->factor = factor_of(config, dimension);
    c->ops->lay_out(c, part_bytes);
    if (c->part_bytes_max > part_bytes) {
        result = sl_fail(error, SL_EINVAL,
                         "transport.chunk_bytes: %zu: the parts of %s cannot be shorter than %zu",
                         part_bytes, sl_compressor_name(config->kind), c->part_bytes_max);
        sl_codec_close(&c);
        return result;
    }
    *out = c;
    return 0;
}

void sl_codec_close(sl_codec **codec) {
    if (*codec != NULL && (*codec)->ops->pieces != NULL)
        (*codec)->ops->pieces->close(*codec);
    free(*codec);
    *codec = NULL;
}

uint32_t sl_codec_parts(const sl_codec *codec) {
    return codec->parts;
}

size_t sl_codec_part_bytes_max(const sl_codec *codec) {
    return codec->part_bytes_max;
}

bool sl_codec_borrows(const sl_codec *codec) {
    return codec->borrows;
}

size_t sl_codec_stride(const sl_codec *codec) {
    return sl_round_up(codec->part_bytes_max, SL_VEC_ALIGNMENT);
}

/* Messages that a device is given at once. */
enum { TOGETHER = 8 };

/* Parts of entries may hold the same element: they are added in order by one call, or not at
 * once. */
bool sl_codec_joins(const sl_codec *codec, uint32_t messages) {
    return codec->ops->pieces == NULL && (!codec->sparse || messages <= TOGETHER);
}

void sl_codec_coding(const sl_codec *c, sl_coding *out) {
    *out = (sl_coding){.dimension = c->dimension,
                       .part_elements = c->part_elements,
                       .part_bytes_max = c->part_bytes_max,
                       .stride = sl_codec_stride(c),
                       .parts = c->parts,
                       .by_entries = c->sparse,
                       .k = c->k,
                       .value_factor = 1};
    c->ops->describe(c, out);
}

static bool is_coded(const sl_codec *c) {
    return c->config.coding != SL_ENTROPY_NONE && c->ops->numbers != NULL;
}

/* SL_EDEVICE: the vectors are on a device that has no kernel for this codec. */
static int check_kernel(const sl_codec *c, const sl_vec_ops *vec, sl_error *error) {
    sl_coding coding;
    if (vec->coder == NULL || c->ops->pieces != NULL)
        return 0;
    if (is_coded(c))
        return sl_fail(error, SL_EDEVICE,
                       "algorithm.compressor.coding: has no kernel for %s; set it to \"none\", or "
                       "device to \"cpu\"",
                       vec->name);
    sl_codec_coding(c, &coding);
    if (coding.form != CODING_DENSE || coding.code != CODE_NONE)
        return 0;
    return sl_fail(error, SL_EDEVICE,
                   "algorithm.compressor.name: \"%s\" has no kernel for %s; set device to \"cpu\"",
                   sl_compressor_name(c->config.kind), vec->name);
}

/* ---- encoding ---- */

static bool allocate(void **out, size_t bytes) {
    *out = bytes > 0 ? calloc(1, bytes) : NULL;
    return bytes == 0 || *out != NULL;
}

static bool allocate_plain(uint8_t **out, const sl_codec *c) {
    void *memory;
    const bool done = allocate(&memory, is_coded(c) ? c->part_bytes_max : 0);
    *out = memory;
    return done;
}

/* The working memory that there is on the host, or that the device has. */
static bool allocate_encoder(sl_encoder *e) {
    const sl_codec *c = e->codec;
    if (e->coder == NULL)
        return allocate(&e->memory, c->ops->encoder_bytes ? c->ops->encoder_bytes(c) : 0) &&
               allocate_plain(&e->plain, c);
    sl_coding coding;
    if (c->ops->pieces != NULL)
        return true;
    sl_codec_coding(c, &coding);
    e->device = e->coder->encoder_open(&coding);
    return e->device != NULL;
}

int sl_encoder_open(sl_encoder **out, const sl_codec *codec, const sl_vec_ops *vec,
                    sl_error *error) {
    int result = check_kernel(codec, vec, error);
    if (result != 0)
        return result;
    sl_encoder *e = calloc(1, sizeof *e);
    if (e != NULL)
        *e = (sl_encoder){.codec = codec,
                          .coder = vec->coder,
                          .scratch = aligned_alloc(SL_VEC_ALIGNMENT, SL_BLOCK * sizeof(float))};
    if (e == NULL || e->scratch == NULL || !allocate_encoder(e))
        result =
            sl_vec_no_memory(vec, error, "compressor %s", sl_compressor_name(codec->config.kind));
    else if (codec->ops->pieces != NULL)
        result = codec->ops->pieces->encoders_open(e, vec, error);
    if (result != 0)
        sl_encoder_close(&e);
    else
        *out = e;
    return result;
}

void sl_encoder_close(sl_encoder **encoder) {
    if (*encoder != NULL) {
        if ((*encoder)->codec->ops->pieces != NULL)
            (*encoder)->codec->ops->pieces->encoders_close(*encoder);
        if ((*encoder)->device != NULL)
            (*encoder)->coder->encoder_close((*encoder)->device);
        free((*encoder)->scratch);
        free((*encoder)->memory);
        free((*encoder)->plain);
    }
    free(*encoder);
    *encoder = NULL;
}

void sl_encoder_stage(sl_encoder *e, void *host) {
    e->host = host;
    if (e->codec->ops->pieces != NULL)
        e->codec->ops->pieces->encoders_stage(e, host);
}

/* As its random choices know it. */
static sl_message known(const sl_codec *codec, const sl_message *message) {
    sl_message out = *message;
    if (codec->ops->draws_for_all)
        out.sender = 0;
    return out;
}

int sl_encoder_begin(sl_encoder *e, const sl_message *message, const sl_source *source) {
    e->message = known(e->codec, message);
    if (e->device != NULL) {
        const sl_rng_key key = sl_message_key(&e->message);
        e->coder->begin(e->device, &key, source, e->host);
        return 0;
    }
    return e->codec->ops->begin != NULL ? e->codec->ops->begin(e, source) : 0;
}

static int encode_coded(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                        sl_payload *out) {
    const sl_codec *c = e->codec;
    sl_payload plain;
    part_numbers numbers;
    const int result = c->ops->encode(e, part, source, e->plain, &plain);
    if (result != 0)
        return result;
    c->ops->numbers(c, part, &plain, &numbers);
    *out = (sl_payload){buffer, sl_entropy_encode(c->config.coding, &numbers, plain, buffer)};
    return 0;
}

int sl_encoder_part(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                    sl_payload *out) {
    assert(part < e->codec->parts);
    if (e->device != NULL)
        return e->coder->part(e->device, part, out, &e->local);
    int result = is_coded(e->codec) ? encode_coded(e, part, source, buffer, out)
                                    : e->codec->ops->encode(e, part, source, buffer, out);
    if (e->codec->ops->pieces == NULL)
        e->local = *out;
    return result;
}

bool sl_encoder_ready(sl_encoder *e, uint32_t part, int notify_fd) {
    if (e->codec->ops->pieces != NULL)
        return e->codec->ops->pieces->encoders_ready(e, part, notify_fd);
    return e->device == NULL || e->coder->ready(e->device, part, notify_fd);
}

void sl_encoder_sizes(const sl_encoder *e, uint32_t *sizes) {
    e->coder->sizes(e->device, sizes);
}

sl_payload sl_encoder_local(const sl_encoder *e) {
    return e->local;
}

/* ---- decoding ---- */

/* What checks a part works on the host, wherever it is then added. */
static bool allocate_decoder(sl_decoder *d) {
    const sl_codec *c = d->codec;
    sl_coding coding;
    if (!allocate(&d->memory, c->ops->decoder_bytes ? c->ops->decoder_bytes(c) : 0) ||
        !allocate_plain(&d->plain, c))
        return false;
    if (d->coder == NULL || c->ops->pieces != NULL)
        return true;
    sl_codec_coding(c, &coding);
    d->device = d->coder->decoder_open(&coding);
    return d->device != NULL;
}

int sl_decoder_open(sl_decoder **out, const sl_codec *codec, const sl_vec_ops *vec,
                    sl_error *error) {
    sl_decoder *d = calloc(1, sizeof *d);
    if (d != NULL)
        *d = (sl_decoder){.codec = codec, .coder = vec->coder};
    int result = 0;
    if (d == NULL || !allocate_decoder(d))
        result =
            sl_vec_no_memory(vec, error, "compressor %s", sl_compressor_name(codec->config.kind));
    else if (codec->ops->pieces != NULL)
        result = codec->ops->pieces->decoders_open(d, vec, error);
    if (result != 0)
        sl_decoder_close(&d);
    else
        *out = d;
    return result;
}

void sl_decoder_close(sl_decoder **decoder) {
    if (*decoder != NULL) {
        if ((*decoder)->codec->ops->pieces != NULL)
            (*decoder)->codec->ops->pieces->decoders_close(*decoder);
        if ((*decoder)->device != NULL)
            (*decoder)->coder->decoder_close((*decoder)->device);
        free((*decoder)->memory);
        free((*decoder)->plain);
    }
    free(*decoder);
    *decoder = NULL;
}

/* The payload without its coding; what was checked once is so again. */
static bool decode_coded(sl_decoder *d, uint32_t part, sl_payload *payload) {
    part_numbers numbers;
    if (!is_coded(d->codec))
        return true;
    d->codec->ops->numbers(d->codec, part, NULL, &numbers);
    return sl_entropy_decode(d->codec->config.coding, numbers, *payload, d->plain, payload);
}

int sl_decoder_check(sl_decoder *d, const sl_message *message, uint32_t part, sl_payload payload) {
    if (part >= d->codec->parts || payload.bytes > d->codec->part_bytes_max)
        return SL_EPROTO;
    d->message = known(d->codec, message);
    return decode_coded(d, part, &payload) ? d->codec->ops->check_part(d, part, payload)
                                           : SL_EPROTO;
}

static void add_here(const sl_run *run, float *acc) {
    sl_decoder *d = run->decoder;
    sl_payload payload = run->payload;
    d->message = known(d->codec, &run->message);
    const bool is_right = decode_coded(d, run->first, &payload);
    assert(is_right && run->count == 1);
    d->codec->ops->add(d, run->first, payload, run->weight * d->codec->factor, acc);
}

static coding_run run_there(const sl_run *run) {
    const sl_message message = known(run->decoder->codec, &run->message);
    return (coding_run){.decoder = run->decoder->device,
                        .key = sl_message_key(&message),
                        .first = run->first,
                        .count = run->count,
                        .payload = run->payload,
                        .sizes = run->sizes,
                        .weight = run->weight * run->decoder->codec->factor};
}

void sl_decoder_add_runs(const sl_run *runs, size_t count, float *acc) {
    coding_run there[TOGETHER];
    for (size_t done = 0, given = 0; done < count; done++) {
        const sl_decoder *d = runs[done].decoder;
        if (d->device == NULL) {
            add_here(&runs[done], acc);
            continue;
        }
        there[given++] = run_there(&runs[done]);
        if (given == TOGETHER || done + 1 == count) {
            d->coder->add(there, given, acc);
            given = 0;
        }
    }
}

void sl_decoder_add(sl_decoder *d, const sl_message *message, uint32_t part, sl_payload payload,
                    float weight, float *acc) {
    sl_decoder_add_runs(&(sl_run){.decoder = d,
                                  .message = *message,
                                  .first = part,
                                  .count = 1,
                                  .payload = payload,
                                  .weight = weight},
                        1, acc);
}
