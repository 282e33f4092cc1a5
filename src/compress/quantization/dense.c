/* dense.c - parts, buckets and bits of the dense-coded compressors; see dense.h. */
#include "compress/quantization/dense.h"

#include <math.h>
#include <string.h>

#include "compress/lossless/pack.h"
#include "compress/lossless/symbols.h"
#include "compress/quantization/rotation.h"
#include "element/code.h"

/* ---- a compressor and its form ---- */

static const dense_coder *coder_of(const sl_codec *c) {
    return c->ops->dense;
}

static dense_form form_of(const sl_codec *c) {
    return coder_of(c)->form(&c->config, c->dimension);
}

size_t sl_dense_bucket(const sl_compressor_config *config, size_t dimension) {
    return config->bucket == 0 || config->bucket > dimension ? dimension : config->bucket;
}

int sl_dense_check_bucket(const sl_compressor_config *config, size_t dimension, sl_error *error) {
    (void)dimension;
    if (config->bucket == 0 || config->bucket >= DENSE_BUCKET_MIN)
        return 0;
    return sl_fail(error, SL_EINVAL,
                   "algorithm.compressor.bucket: %u: allowed are 0 (the whole vector) and %d or "
                   "more; fewer elements than that are as short as "
                   "their scale",
                   config->bucket, DENSE_BUCKET_MIN);
}

/* ---- codings ---- */

static part_numbers numbers_of(const dense_form *f, const sl_compressor_config *config) {
    const double levels = f->code == CODE_LEVELS ? config->levels : 1;
    return (part_numbers){.codes = f->code == CODE_NATURAL   ? CODES_POWERS
                                   : f->code == CODE_TERNARY ? CODES_TERNARY
                                                             : CODES_LEVELS,
                          .is_sparse = levels * levels < (double)f->bucket,
                          .width = f->width};
}

/* The largest magnitude of n normal elements, about. */
static double usual_largest(double n) {
    const double log_n = log(fmax(n, 3));
    return sqrt(fmax(1, 2 * log_n - log(log_n) - log(1.5707963)));
}

/* Of an element of a normal vector. */
static double coded_bits(const dense_form *f, const sl_compressor_config *config,
                         size_t dimension) {
    part_numbers n = numbers_of(f, config);
    const uint32_t levels = f->code == CODE_LEVELS ? config->levels : 1;
    const double bucket = (double)f->bucket;
    n.count = dimension < DENSE_PART_ELEMENTS ? dimension : DENSE_PART_ELEMENTS;
    const double largest = usual_largest(bucket), clip = config->clip_sigma;
    const double scale = f->scale->kind == SCALE_L2 ? sqrt(bucket)
                         : clip > 0                 ? fmin(clip, largest)
                                                    : largest;
    return sl_symbols_bits(config->coding, &n, levels / scale, levels);
}

double sl_dense_bits(const codec_ops *self, const sl_compressor_config *config, size_t dimension) {
    dense_form f = self->dense->form(config, dimension);
    const double each = self->numbers != NULL && config->coding != SL_ENTROPY_NONE
                            ? coded_bits(&f, config, dimension)
                            : f.width;
    return (double)dimension * each +
           32.0 * f.scale->floats * (double)((dimension - 1) / f.bucket + 1);
}

/* ---- parts ---- */

static size_t packed_bytes(size_t n, unsigned width) {
    return (n * width + 7) / 8;
}

static size_t smallest(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The smallest range of blocks that holds whole buckets. */
static size_t whole_buckets(size_t bucket, size_t block) {
    size_t a = bucket, b = block;
    while (b != 0) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return bucket / a * block;
}

static size_t bytes_of(const dense_form *f, size_t n, size_t buckets) {
    return sizeof(float) * f->scale->floats * buckets + packed_bytes(n, f->width);
}

/* Does each bucket lie within one part? */
static bool is_local(const sl_codec *c, const dense_form *f) {
    return c->parts == 1 || c->part_elements % f->bucket == 0;
}

/* So many elements, whatever fits of their codes: decoded they are no more than a payload may be,
 * or DENSE_PART_ELEMENTS. */
static size_t most_elements(size_t part_bytes) {
    const size_t as_floats = part_bytes / sizeof(float);
    return as_floats > DENSE_PART_ELEMENTS ? as_floats : (size_t)DENSE_PART_ELEMENTS;
}

/* The most elements of a part in steps of `unit`, with up to `more` scales beyond those of n /
 * bucket; 0: none. */
static size_t part_of(const dense_form *f, size_t unit, size_t more, size_t part_bytes) {
    size_t n = 0;
    while (n + unit <= most_elements(part_bytes) &&
           bytes_of(f, n + unit, (n + unit) / f->bucket + more) <= part_bytes)
        n += unit;
    return n;
}

void sl_dense_lay_out(sl_codec *c, size_t part_bytes) {
    dense_form f = form_of(c);
    const size_t block = c->ops->is_rotated ? ROTATION_PIECE : SL_BLOCK;
    size_t more = 0, d = c->dimension;
    c->part_elements = part_of(&f, whole_buckets(f.bucket, block), more, part_bytes);
    if (c->part_elements == 0) { /* a bucket's first and last element may lie in other parts */
        more = 2;
        c->part_elements = part_of(&f, block, more, part_bytes);
    }
    if (c->part_elements == 0) /* then it is longer than it may be */
        c->part_elements = block;
    size_t whole = bytes_of(&f, d, (d - 1) / f.bucket + 1);
    if (d <= most_elements(part_bytes) && whole <= part_bytes)
        c->part_elements = d;
    c->part_bytes_max = c->part_elements == d
                            ? whole
                            : bytes_of(&f, c->part_elements, c->part_elements / f.bucket + more);
    c->parts = (uint32_t)((d - 1) / c->part_elements + 1);
}

/* Scales, as floats, of the buckets that [from, from + count) touches. */
static size_t scales_of(const dense_form *f, size_t from, size_t count) {
    return f->scale->floats * ((from + count - 1) / f->bucket - from / f->bucket + 1);
}

void sl_dense_describe(const sl_codec *c, sl_coding *out) {
    const dense_form f = form_of(c);
    out->form = CODING_DENSE;
    out->code = f.code;
    out->scale = f.scale->kind;
    out->width = f.width;
    out->levels = f.code == CODE_TERNARY ? 1 : c->config.levels;
    out->scale_floats = f.scale->floats;
    out->bucket = f.bucket;
    out->magnitude_limit = f.limit;
    out->tau = (float)c->config.threshold;
    out->clip = c->config.clip_sigma;
}

void sl_dense_numbers(const sl_codec *c, uint32_t part, const sl_payload *plain,
                      part_numbers *out) {
    const dense_form f = form_of(c);
    size_t from;
    (void)plain;
    *out = numbers_of(&f, &c->config);
    sl_codec_part_range(c, part, &from, &out->count);
    out->ahead = sizeof(float) * scales_of(&f, from, out->count);
}

/* ---- encoding ---- */

enum { AHEAD = SL_BLOCK / 2, LINE = 16 };

/* Asks for AHEAD elements: the processor does so itself, but not over the end of a page, and a page
 * is a block. All of a block would be more lines than a core can wait for at once. NULL: for none.
 */
static void look_ahead(const float *v) {
    for (size_t i = 0; v != NULL && i < AHEAD; i += LINE)
        __builtin_prefetch(v + i);
}

/* Codes of a block [at, at + n), which is at v, into `out`. scales: of the buckets from the block's
 * first on; memory: where the vector has the block, or NULL. */
static void code_block(const sl_encoder *e, const dense_form *f, const float *scales,
                       const float *memory, const float *v, size_t at, size_t n, uint8_t *out) {
    const dense_coder *coder = coder_of(e->codec);
    const sl_rng_key key = sl_message_key(&e->message);
    uint32_t random[SL_BLOCK / 4];
    uint16_t codes[SL_BLOCK];
    look_ahead(memory != NULL ? memory + AHEAD : NULL);
    sl_rng_quick_blocks(&key, (uint32_t)(at / PHILOX_WINDOWS),
                        (n + PHILOX_WINDOWS - 1) / PHILOX_WINDOWS, random);
    look_ahead(memory != NULL ? memory + 2 * AHEAD : NULL);
    size_t left = f->bucket - at % f->bucket;
    for (size_t o = 0, run; o < n; o += run, left = f->bucket, scales += f->scale->floats) {
        run = smallest(left, n - o);
        coder->encode(&e->codec->config, scales, v + o, (windows){random, o}, run, codes + o);
    }
    sl_pack(codes, n, f->width, out);
}

/* So many of the elements [at, end) of one bucket, which has more, at once. */
static size_t sweep(const dense_coder *coder, bucket_sums *sums, const sl_source *source, size_t at,
                    size_t end, uint8_t *codes) {
    const bool can =
        coder->sweep != NULL && source->vector != NULL && sums->seen == 0 && at + 1 < end;
    return can ? coder->sweep(sums, source->vector + at, end - 1 - at, codes) : 0;
}

/* ahead: is the block that follows one that is summed not in the cache? */
static bucket_sums sums_of(const sl_source *source, bool ahead) {
    bucket_sums sums;
    sl_sum_begin(&sums, ahead && source->vector != NULL ? AHEAD : 0);
    return sums;
}

/* Looks at [from, from + count), which begins and ends with a bucket: the buckets' scales, and,
 * where the codes do not depend on those, the codes. sums: of nothing before and after. *last: the
 * last block that was read. */
static int measure(sl_encoder *e, const dense_form *f, const sl_source *source, size_t from,
                   size_t count, bucket_sums *sums, float *scales, uint8_t *codes,
                   const float **last) {
    const dense_coder *coder = coder_of(e->codec);
    size_t start = from, end = from + smallest(f->bucket, count);
    sums->clip = e->codec->config.clip_sigma;
    for (size_t at = from, n; at < from + count; at += n) {
        uint8_t *block = coder->pack != NULL ? codes + packed_bytes(at - from, f->width) : NULL;
        if ((n = sweep(coder, sums, source, at, end, block)) > 0)
            continue;
        n = smallest(from + count - at, SL_BLOCK);
        const float *v = *last = sl_encoder_read(e, source, at, n);
        for (size_t o = 0, run; o < n; o += run) {
            run = smallest(end - at - o, n - o);
            f->scale->see(sums, v + o, at + o, run);
            if (at + o + run < end)
                continue;
            if (!f->scale->result(sums, end - start, scales))
                return SL_EDIVERGED;
            if (source->scale != NULL)
                *scales = fmaxf(*scales, *source->scale);
            scales += f->scale->floats;
            start = end;
            end += smallest(f->bucket, from + count - end);
        }
        if (coder->pack != NULL)
            coder->pack(&e->codec->config, v, n, block);
    }
    return 0;
}

/* Scales, and codes that do not depend on them, of the whole vector, where buckets go over parts.
 */
static size_t shared_scales_bytes(const sl_codec *c, const dense_form *f) {
    return (sizeof(float) * scales_of(f, 0, c->dimension) + 7) / 8 * 8;
}

size_t sl_dense_encoder_bytes(const sl_codec *c) {
    dense_form f = form_of(c);
    if (is_local(c, &f))
        return 0;
    return shared_scales_bytes(c, &f) +
           (coder_of(c)->pack != NULL ? packed_bytes(c->dimension, f.width) : 0);
}

static uint8_t *shared_codes(const sl_encoder *e, const dense_form *f) {
    return (uint8_t *)e->memory + shared_scales_bytes(e->codec, f);
}

int sl_dense_begin(sl_encoder *e, const sl_source *source) {
    dense_form f = form_of(e->codec);
    const float *last;
    if (is_local(e->codec, &f))
        return 0;
    bucket_sums sums = sums_of(source, true);
    return measure(e, &f, source, 0, e->codec->dimension, &sums, e->memory, shared_codes(e, &f),
                   &last);
}

static const float *memory_of(const sl_source *source, size_t at) {
    return source->vector != NULL ? source->vector + at : NULL;
}

/* Codes of [from, from + count) with scales that are known, block by block; v: the only block,
 * where it has been read. */
static void code(sl_encoder *e, const dense_form *f, const sl_source *source, size_t from,
                 size_t count, const float *scales, const float *v, uint8_t *out) {
    for (size_t at = from, n; at < from + count; at += n) {
        n = smallest(from + count - at, SL_BLOCK);
        const float *block = v != NULL ? v : sl_encoder_read(e, source, at, n);
        const float *first = scales + f->scale->floats * (at / f->bucket - from / f->bucket);
        code_block(e, f, first, memory_of(source, at), block, at, n,
                   out + packed_bytes(at - from, f->width));
    }
}

/* Measures and codes a few blocks of whole buckets at a time, while they are in the cache. */
static int encode_local(sl_encoder *e, const dense_form *f, const sl_source *source, size_t from,
                        size_t count, float *scales, uint8_t *codes) {
    const bool packs = coder_of(e->codec)->pack != NULL;
    const size_t step = whole_buckets(f->bucket, SL_BLOCK);
    bucket_sums sums = sums_of(source, packs || step > SL_BLOCK);
    for (size_t at = from, n; at < from + count; at += n) {
        n = smallest(from + count - at, step);
        uint8_t *out = codes + packed_bytes(at - from, f->width);
        const float *v;
        if (measure(e, f, source, at, n, &sums, scales, out, &v) != 0)
            return SL_EDIVERGED;
        if (!packs)
            code(e, f, source, at, n, scales, n <= SL_BLOCK ? v : NULL, out);
        scales += scales_of(f, at, n);
    }
    return 0;
}

int sl_dense_encode(sl_encoder *e, uint32_t part, const sl_source *source, void *buffer,
                    sl_payload *out) {
    dense_form f = form_of(e->codec);
    size_t from, count;
    sl_codec_part_range(e->codec, part, &from, &count);
    const size_t floats = scales_of(&f, from, count);
    float *scales = buffer;
    uint8_t *codes = (uint8_t *)(scales + floats);
    *out = (sl_payload){buffer, sizeof(float) * floats + packed_bytes(count, f.width)};
    if (is_local(e->codec, &f))
        return encode_local(e, &f, source, from, count, scales, codes);
    memcpy(scales, (const float *)e->memory + from / f.bucket * f.scale->floats,
           sizeof(float) * floats);
    if (coder_of(e->codec)->pack != NULL)
        memcpy(codes, shared_codes(e, &f) + packed_bytes(from, f.width),
               packed_bytes(count, f.width));
    else
        code(e, &f, source, from, count, scales, NULL, codes);
    return 0;
}

/* ---- decoding ---- */

static bool scales_allowed(const dense_form *f, const float *scales, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, scales + i, sizeof bits);
        if ((f->scale->negative ? bits & FLOAT_MAGNITUDE : bits) >= FLOAT_INFINITY)
            return false;
    }
    return true;
}

static bool codes_allowed(const dense_form *f, const uint8_t *packed, size_t count) {
    unsigned used = count * f->width % 8;
    if (used != 0 && packed[packed_bytes(count, f->width) - 1] >> used != 0)
        return false;
    return f->max >= f->mask || sl_packed_largest(packed, count, f->width, f->mask) <= f->max;
}

/* A part's elements, and what its payload says of them. */
typedef struct part_view {
    size_t from, count, floats;
    const float *scales; /* (floats), from the bucket of the first element on */
    const uint8_t *packed;
} part_view;

static part_view view_of(const sl_codec *c, const dense_form *f, uint32_t part,
                         const void *payload) {
    part_view v = {.scales = payload};
    sl_codec_part_range(c, part, &v.from, &v.count);
    v.floats = scales_of(f, v.from, v.count);
    v.packed = (const uint8_t *)(v.scales + v.floats);
    return v;
}

int sl_dense_check_part(sl_decoder *d, uint32_t part, sl_payload payload) {
    dense_form f = form_of(d->codec);
    const part_view v = view_of(d->codec, &f, part, payload.data);
    if (payload.bytes != sizeof(float) * v.floats + packed_bytes(v.count, f.width))
        return SL_EPROTO;
    return scales_allowed(&f, v.scales, v.floats) && codes_allowed(&f, v.packed, v.count)
               ? 0
               : SL_EPROTO;
}

float sl_dense_largest_scale(const sl_codec *c, uint32_t part, sl_payload payload) {
    dense_form f = form_of(c);
    const part_view v = view_of(c, &f, part, payload.data);
    float largest = 0;
    for (size_t i = 0; i < v.floats; i++)
        largest = fmaxf(largest, fabsf(v.scales[i]));
    return largest;
}

/* Bucket by bucket, straight from the packed codes. */
static void add_by_table(const sl_codec *c, const dense_form *f, const part_view *v, float weight,
                         float *acc) {
    const float *scale = v->scales;
    float table[TABLE_CODES];
    for (size_t o = 0, run; o < v->count; o += run, scale += f->scale->floats) {
        run = smallest(f->bucket - (v->from + o) % f->bucket, v->count - o);
        coder_of(c)->table(&c->config, scale, weight, table);
        sl_table_add(table, f->width, v->packed, o, run, acc + o);
    }
}

/* Block by block, by way of codes of 16 bits. */
static void add_by_codes(const sl_codec *c, const dense_form *f, const part_view *v, float weight,
                         float *acc) {
    uint16_t room[SL_BLOCK];
    for (size_t at = v->from, n; at < v->from + v->count; at += n) {
        n = smallest(v->from + v->count - at, SL_BLOCK);
        const uint16_t *codes =
            sl_unpack(v->packed + packed_bytes(at - v->from, f->width), n, f->width, room);
        const float *scale = v->scales + f->scale->floats * (at / f->bucket - v->from / f->bucket);
        size_t left = f->bucket - at % f->bucket;
        for (size_t o = 0, run; o < n; o += run, left = f->bucket, scale += f->scale->floats) {
            run = smallest(left, n - o);
            coder_of(c)->add(&c->config, scale, weight, codes + o, run, acc + (at - v->from) + o);
        }
    }
}

void sl_dense_add_part(const sl_codec *c, uint32_t part, sl_payload payload, float weight,
                       float *out) {
    dense_form f = form_of(c);
    const part_view v = view_of(c, &f, part, payload.data);
    if (coder_of(c)->table != NULL)
        add_by_table(c, &f, &v, weight, out);
    else
        add_by_codes(c, &f, &v, weight, out);
}

void sl_dense_add(sl_decoder *d, uint32_t part, sl_payload payload, float weight, float *acc) {
    size_t from, count;
    sl_codec_part_range(d->codec, part, &from, &count);
    sl_dense_add_part(d->codec, part, payload, weight, acc + from);
}

/* ---- bricks ---- */

static bool max_norm(bucket_sums *sums, size_t n, float *scale) {
    (void)n;
    const uint32_t largest = sl_sum_take_largest(sums);
    memcpy(scale, &largest, sizeof *scale);
    return largest < FLOAT_INFINITY;
}

const dense_scale sl_dense_max_norm = {
    .kind = SCALE_MAX, .floats = 1, .see = sl_sum_largest, .result = max_norm};

void sl_dense_ternary_table(float unit, float table[TABLE_CODES]) {
    for (uint32_t code = 0; code < TABLE_CODES; code++)
        table[code] = unit * ternary_value(code);
}
